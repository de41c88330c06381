"""A private etcd on loopback, for tests."""

from __future__ import annotations

import shutil
import signal
import socket
import ssl
import subprocess
import urllib.request
from pathlib import Path
from typing import Self

from ..emulator.server import Tls
from .private_server import reserve, until_it_answers


def missing() -> str:
    """Return the reason why no etcd can be started on this machine; empty if one can."""
    return "" if shutil.which("etcd") else "etcd not found: apt-get install etcd-server"


class Etcd:
    """A cluster of one member with its own data directory. It keeps its ports over kill() and start()."""

    def __init__(self, directory: Path, tls: Tls | None = None) -> None:
        """With `tls`, clients need a certificate."""
        self._tls = tls
        self.directory = directory.absolute()
        self._reserved: list[socket.socket] = []
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port(0)}"

    def start(self) -> Self:
        """Start the server and wait until it answers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if not self._reserved:
            self._reserved = [reserve(0), reserve(0)]
        peer = f"http://127.0.0.1:{self._port(1)}"
        client = f"{self._scheme}://{self.address}"
        log_path = self.directory / "etcd.log"
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    "etcd",
                    f"--data-dir={self.directory / 'data'}",
                    f"--listen-client-urls={client}",
                    f"--advertise-client-urls={client}",
                    f"--listen-peer-urls={peer}",
                    f"--initial-advertise-peer-urls={peer}",
                    f"--initial-cluster=default={peer}",
                    *self._tls_flags(),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            until_it_answers(self._process, self._silence, log_path)
        except BaseException:
            self.stop()
            raise
        return self

    def kill(self) -> None:
        """Kill the server (-9); its ports stay reserved for the next start()."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def pause(self) -> None:
        """Stop the process without ending it: connections stay open, and nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kill the server and release its ports; does nothing if it isn't running."""
        self.kill()
        for held in self._reserved:
            held.close()
        self._reserved = []

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def _port(self, index: int) -> int:
        return int(self._reserved[index].getsockname()[1])

    @property
    def _scheme(self) -> str:
        return "http" if self._tls is None else "https"

    def _tls_flags(self) -> list[str]:
        tls = self._tls
        if tls is None:
            return []
        files = [f"--cert-file={tls.cert_path}", f"--key-file={tls.key_path}"]
        return [*files, f"--trusted-ca-file={tls.ca_path}", "--client-cert-auth"]

    def _context(self) -> ssl.SSLContext | None:
        tls = self._tls
        if tls is None:
            return None
        context = ssl.create_default_context(cafile=tls.ca_path)
        context.load_cert_chain(tls.cert_path, tls.key_path)
        return context

    def _silence(self) -> str:
        """Return why the server doesn't answer yet; empty if it does."""
        try:
            url = f"{self._scheme}://{self.address}/health"
            with urllib.request.urlopen(url, timeout=5, context=self._context()) as answer:
                return "" if b'"true"' in answer.read() else "it is not healthy"
        except OSError as error:
            return str(error)
