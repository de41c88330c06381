"""An S3-compatible store in this process: moto's, with faults."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from socket import SHUT_RDWR
from threading import Thread
from typing import Any, Final, Self

import pyarrow.fs as pafs
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

LOGIN: Final = {"AWS_ACCESS_KEY_ID": "tidemill", "AWS_SECRET_ACCESS_KEY": "secret"}
"""Environment variables for clients; any login is accepted."""

_DENIED: Final = (
    b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
)
Fault = Callable[[dict[str, object], Callable[[], object]], None]
"""Called with a request's WSGI environment and a function that handles it without an answer. May wait, or
raise Broken; otherwise the request is handled and answered."""


class Broken(Exception):
    """The connection is cut without an answer."""


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002
        pass


class S3Client:
    """Clients of a store that aren't the sink's: buckets, URLs, and the objects that are there."""

    endpoint: str

    def files(self) -> pafs.FileSystem:
        """Return another client than the sink's."""
        return self._client()

    def _client(self, **options: object) -> pafs.FileSystem:
        return pafs.S3FileSystem(
            access_key=LOGIN["AWS_ACCESS_KEY_ID"],
            secret_key=LOGIN["AWS_SECRET_ACCESS_KEY"],
            region="us-east-1",
            scheme="http",
            endpoint_override=self.endpoint.removeprefix("http://"),
            allow_bucket_creation=True,
            **options,
        )

    def bucket(self, name: str) -> str:
        """Make a bucket and return its name."""
        self.files().create_dir(name)
        return name

    def delete_bucket(self, name: str) -> None:
        """Remove a bucket and everything in it."""
        self._client(allow_bucket_deletion=True).delete_dir(name)

    def url(self, path: str, **options: object) -> str:
        """Return the URL of a sink."""
        settings = {"endpoint": self.endpoint} | options
        return f"s3://{path}?{'&'.join(f'{name}={value}' for name, value in settings.items())}"

    def objects(self, path: str, *, hidden: bool = False) -> dict[str, bytes]:
        """Return the objects below a bucket or folder; without those of the sink itself, unless `hidden`."""
        files = self.files()
        infos = files.get_file_info(pafs.FileSelector(path, recursive=True, allow_not_found=True))
        names = sorted(info.path for info in infos if info.type == pafs.FileType.File)
        wanted = [name for name in names if hidden or "/_tidemill/" not in name]
        return {name.removeprefix(f"{path}/"): _read(files, name) for name in wanted}


class S3Store(S3Client):
    """A server with one bucket for each user of `bucket`."""

    def __init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._handle, True, request_handler=_Quiet)
        self._thread = Thread(target=self._server.serve_forever, name="s3", daemon=True)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.fault: Fault | None = None
        self.denies = False
        """True to answer requests that write with 403."""
        self.requests = 0
        """Requests so far."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handle(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self.requests += 1
        if self.fault is not None:
            try:
                self.fault(environ, lambda: list(self._app(environ, lambda *_: None)))
            except Broken:
                environ["werkzeug.socket"].shutdown(SHUT_RDWR)
                start_response("200 OK", [])
                return []
        if self.denies and environ["REQUEST_METHOD"] in ("PUT", "POST"):
            start_response("403 Forbidden", [("Content-Type", "application/xml")])
            return [_DENIED]
        content: Iterable[bytes] = self._app(environ, start_response)
        return content


class S3Process(S3Client):
    """The same server in a process of its own, without faults: for clients that hold the interpreter's lock
    while they wait for it."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-c", f"from {__name__} import serve; serve()"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.endpoint = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate()  # closes its input, by which it ends


def serve() -> None:
    """Serve until the input ends; print the endpoint first."""
    with S3Store() as store:
        sys.stdout.write(f"{store.endpoint}\n")
        sys.stdout.flush()
        sys.stdin.read()


def _read(files: pafs.FileSystem, name: str) -> bytes:
    with files.open_input_file(name) as file:
        return bytes(file.read())
