"""A bucket of an S3-compatible store."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.fs as pafs

from ...errors import Retryable, SinkError
from .address import BucketAddress
from .options import BucketAccess
from .store import StoredFile

_CODE: Final = re.compile(r"AWS Error (\w+)(?: \(HTTP status (\d+)\))?")
_ATTEMPTS: Final = 2
"""Attempts of a request before the feed is told, and waits."""
_CONNECT_SECONDS: Final = 5.0

_MISSING: Final = frozenset({"NO_SUCH_KEY", "RESOURCE_NOT_FOUND"})
_LOGIN: Final = frozenset(
    {
        "INVALID_ACCESS_KEY_ID",
        "INVALID_CLIENT_TOKEN_ID",
        "INVALID_SIGNATURE",
        "MISSING_AUTHENTICATION_TOKEN",
        "SIGNATURE_DOES_NOT_MATCH",
        "UNRECOGNIZED_CLIENT",
    }
)
_BUSY: Final = frozenset(
    {
        "INTERNAL_FAILURE",
        "NETWORK_CONNECTION",
        "REQUEST_TIMEOUT",
        "SERVICE_UNAVAILABLE",
        "SLOW_DOWN",
        "THROTTLING",
    }
)
"""Errors that end by themselves."""


class Bucket:
    """Objects below a prefix of a bucket."""

    def __init__(self, address: BucketAddress, options: BucketAccess) -> None:
        self._bucket: Final = address.bucket
        self._root: Final = address.root
        self._options: Final = options
        self._made: pafs.FileSystem | None = None
        self.name: Final = f"s3:{options.endpoint.rstrip('/')}/{address.root}"
        self.url: Final = f"s3://{address.root}"
        self.is_remote: Final = True

    @property
    def _fs(self) -> pafs.FileSystem:
        if self._made is None:
            self._made = self._connected()
        return self._made

    def _connected(self) -> pafs.FileSystem:
        options = self._options
        scheme, _, host = options.endpoint.rstrip("/").partition("://")
        region = options.region or ("us-east-1" if host else self._found_region())
        return pafs.S3FileSystem(
            access_key=options.access_key or None,
            secret_key=options.secret_key or None,
            session_token=options.session_token or None,
            role_arn=options.role or None,
            region=region,
            scheme=scheme or "https",
            endpoint_override=host or None,
            force_virtual_addressing=bool(host) and not options.path_style,
            tls_ca_file_path=options.tls_ca or None,
            connect_timeout=min(options.timeout_seconds, _CONNECT_SECONDS),
            request_timeout=options.timeout_seconds,
            allow_delayed_open=True,  # one request for an object of less than a part
            background_writes=False,
            retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        )

    def _found_region(self) -> str:
        try:
            return str(pafs.resolve_s3_region(self._bucket))
        except OSError as error:
            if "not found" in str(error):
                raise SinkError(self._no_bucket()) from error
            raise

    @property
    def access(self) -> Mapping[str, str]:
        options = self._options
        known = {
            "AWS_ACCESS_KEY_ID": options.access_key,
            "AWS_SECRET_ACCESS_KEY": options.secret_key,
            "AWS_SESSION_TOKEN": options.session_token,
            "AWS_REGION": options.region or ("us-east-1" if options.endpoint else self._found_region()),
            "AWS_ENDPOINT_URL": options.endpoint.rstrip("/"),
            "AWS_IAM_ROLE_ARN": options.role,
            "timeout": f"{options.timeout_seconds:g}s",
            "conditional_put": "etag",  # a commit of a table isn't made twice
        }
        if options.endpoint:
            known["AWS_ALLOW_HTTP"] = "true"
            known["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = str(not options.path_style).lower()
        return {name: value for name, value in known.items() if value}

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        with self._explained(), self._fs.open_input_file(self._path(name)) as file:
            self._check_size(file, name)
            yield file

    def check(self) -> None:
        with self._explained():
            if self._fs.get_file_info(self._bucket).type == pafs.FileType.NotFound:
                raise SinkError(self._no_bucket())

    def entries(self) -> list[str]:
        with self._explained():
            infos = self._listed(pafs.FileSelector(self._root, allow_not_found=True))
        return [info.base_name for info in infos]

    def names(self, folder: str) -> list[str]:
        return [file.name for file in self.listed(folder)]

    def listed(self, folder: str) -> list[StoredFile]:
        base = f"{self._root}/{folder}"
        with self._explained():
            infos = self._listed(pafs.FileSelector(base, recursive=True, allow_not_found=True))
        return [
            StoredFile(info.path[len(base) + 1 :], info.size, (info.mtime_ns or 0) // 1_000_000)
            for info in infos
            if info.type == pafs.FileType.File
        ]

    def read(self, name: str) -> bytes | None:
        with self._explained():
            try:
                with self._fs.open_input_file(self._path(name)) as file:
                    self._check_size(file, name)
                    return bytes(file.read())
            except FileNotFoundError:
                return None

    def write(self, name: str, content: Any) -> None:
        with self._explained():
            stream = self._fs.open_output_stream(self._path(name))
            stream.write(content)
            stream.close()  # not after an error: it would complete an object with a part of the content

    def create(self, name: str, content: bytes) -> bool:
        from .conditional_put import put_if_absent  # its package comes with the extra "lake"

        return put_if_absent(self.name, self.url, self.access, name, content)

    def copy(self, name: str, to: str) -> None:
        with self._explained():
            self._fs.copy_file(self._path(name), self._path(to))

    def publish(self, staged: str, name: str) -> None:
        with self._explained():
            try:
                self._fs.copy_file(self._path(staged), self._path(name))
            except OSError as error:
                if _code(error)[0] not in _MISSING:
                    raise

    def remove(self, name: str) -> None:
        with self._explained():
            try:
                self._fs.delete_file(self._path(name))
            except FileNotFoundError:
                return

    def remove_folder(self, folder: str) -> None:
        with self._explained():
            try:
                self._fs.delete_dir(self._path(folder))
            except FileNotFoundError:
                return

    # An answer that ends within its head, after the status, is one of success without a body for the SDK.

    def _listed(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """Return what is listed; nothing only if that is answered twice."""
        infos: list[pafs.FileInfo] = self._fs.get_file_info(selector)
        return infos or self._fs.get_file_info(selector)

    def _check_size(self, file: pa.NativeFile, name: str) -> None:
        """Raise Retryable for an object of no bytes: no sink writes one."""
        if not file.size():
            raise Retryable(f"{self.name}: the store's answer about {name} broke off")

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _no_bucket(self) -> str:
        return f"{self.name}: there is no bucket {self._bucket!r}: create it, or correct the URL"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise errors of the store as Retryable or SinkError."""
        try:
            yield
        except OSError as error:
            code, status = _code(error)
            if code == "NO_SUCH_BUCKET":
                raise SinkError(self._no_bucket()) from error
            if code in _LOGIN:
                raise SinkError(
                    f"{self.name}: the store rejects the credentials ({code}): correct access_key and "
                    "secret_key, or what stands in the environment for them"
                ) from error
            if code == "ACCESS_DENIED" or status == 403:
                raise SinkError(
                    f"{self.name}: access is denied: correct the credentials, or grant the right to list the "
                    "bucket and to get, put and delete its objects"
                ) from error
            if status == 301:
                raise SinkError(f"{self.name}: the bucket is in another region: give `region`") from error
            if code in _BUSY or not code or status >= 500 or status in (0, 408, 429):
                raise Retryable(f"{self.name}: the store doesn't answer as it should: {error}") from error
            raise SinkError(f"{self.name}: the store refuses a request: {error}") from error


def _code(error: OSError) -> tuple[str, int]:
    """Return the store's code for an error, and the status of HTTP; "" and 0 if unknown."""
    code = _CODE.search(str(error))
    return (code[1], int(code[2] or 0)) if code else ("", 0)
