"""The HTTP server, in a thread of its own."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Final, Self

import uvicorn

from ..config.address import host_and_port
from ..errors import ConfigError
from .asgi import Application

MAX_CONNECTIONS: Final = 1_000
"""Open connections above which further requests are refused."""
CLOSE_SECONDS: Final = 5
"""Time for which requests may go on when the server ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """PEM files of the server's certificate and its key."""

    cert: Path
    key: Path


class HttpServer:
    """Serves an application at host:port, port 0 for a free one: while its context lasts, until `close`."""

    def __init__(self, made: Application, listen: str, tls: Tls | None = None) -> None:
        """Raises ConfigError if the address can't be used."""
        self._application = made
        self._socket = _bound(listen)
        host, port = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if tls else 'http'}://{shown}:{port}"
        """Address of the page."""
        config = uvicorn.Config(
            made.asgi,
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=CLOSE_SECONDS,
            ssl_certfile=tls.cert if tls else None,
            ssl_keyfile=tls.key if tls else None,
        )
        try:
            config.load()
        except (OSError, ValueError) as error:
            self._socket.close()
            raise ConfigError(f"--tls-cert, --tls-key: {error}") from None
        self._server = uvicorn.Server(config)
        self._thread = Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="tidemill-http", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self._application.broadcast.is_closed = True
        self._server.should_exit = True
        self._thread.join()

    def close(self) -> None:
        """Leave the address. Safe to repeat."""
        self._socket.close()


def _bound(listen: str) -> socket.socket:
    host, port = host_and_port(listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        raise ConfigError(f"--http {listen}: {error.strerror or error}") from None
