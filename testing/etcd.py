"""A private etcd on loopback, for tests."""

from __future__ import annotations

import shutil
import signal
import socket
import ssl
import urllib.request
from pathlib import Path
from typing import Self

from ..emulator.server import Tls
from .private_server import PrivateServer, reserve


def missing() -> str:
    """Return the reason why no etcd can be started on this machine; empty if one can."""
    return "" if shutil.which("etcd") else "etcd not found: apt-get install etcd-server"


class Etcd(PrivateServer):
    """A cluster of one member."""

    stop_signal = signal.SIGKILL

    def __init__(self, directory: Path, tls: Tls | None = None) -> None:
        """With `tls`, clients need a certificate."""
        super().__init__(directory)
        self._tls = tls
        self._peer: socket.socket | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def start(self) -> Self:
        self._peer = self._peer or reserve(0)
        return super().start()

    def stop(self) -> None:
        super().stop()
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    def install_to(self, data_directory: Path) -> None:
        data_directory.mkdir(mode=0o700)

    def command(self) -> list[str]:
        assert self._peer is not None
        peer = f"http://{self.host}:{self._peer.getsockname()[1]}"
        client = f"{self._scheme}://{self.address}"
        return [
            "etcd",
            f"--data-dir={self.data_directory}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            *self._tls_flags(),
        ]

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

    def silence(self) -> str:
        try:
            url = f"{self._scheme}://{self.address}/health"
            with urllib.request.urlopen(url, timeout=5, context=self._context()) as answer:
                return "" if b'"true"' in answer.read() else "it is not healthy"
        except OSError as error:
            return str(error)
