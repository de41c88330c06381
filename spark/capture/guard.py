"""The port of a capture that requires a token: Flight receives a whole request before it checks the token."""

from __future__ import annotations

import resource
import ssl
from contextlib import ExitStack
from typing import Final

from ...errors import ConfigError
from ...puller.grpc.front import Front
from ...puller.grpc.loop import LoopThread
from ...store.temporary import temporary_directory
from .options import CaptureOptions

MAX_REQUEST_BYTES: Final = 4 << 20
"""Maximum size of a connection's requests without an answer; a ticket has a name for each table at most."""
MAX_BYTES: Final = 64 << 20
_MAX_CONNECTIONS: Final = 4096


class Guard:
    """Accepts connections at the capture's address, and passes them on to its Flight server at `location`."""

    def __init__(self, options: CaptureOptions) -> None:
        """Listen. Raises ConfigError."""
        tls = _tls(options)
        self._stack = ExitStack()
        inner = self._stack.enter_context(temporary_directory("capture")) / "flight.sock"
        self.location: Final = f"grpc+unix://{inner}"
        self._front = Front(
            options.listen,
            inner,
            tls=tls,
            max_connections=min(_MAX_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4),
            max_request_bytes=MAX_REQUEST_BYTES,
            max_bytes=MAX_BYTES,
        )
        self._loop = LoopThread("tidemill-capture-port")
        self._loop.start()
        self._stack.callback(self._loop.stop)
        self._stack.callback(lambda: self._loop.run(self._front.stop()))
        try:
            self._loop.run(self._front.start())
        except OSError as error:
            self.close()
            raise ConfigError(f"capture.listen: {options.listen}: {error.strerror or error}") from None

    @property
    def port(self) -> int:
        return self._front.port

    def close(self) -> None:
        """Close the port and its connections. Idempotent."""
        self._stack.close()


def _tls(options: CaptureOptions) -> ssl.SSLContext | None:
    if options.tls_cert is None or options.tls_key is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["h2"])
    try:
        context.load_cert_chain(options.tls_cert, options.tls_key)
    except OSError as error:  # SSLError is one
        where = error.filename or options.tls_cert
        raise ConfigError(f"capture.tls_cert: {where}: {error.strerror or error}") from None
    return context
