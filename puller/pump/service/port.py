"""One TCP port for gRPC and HTTP/1, told apart by the first bytes of a connection.

Pumps call a drainer, and TiDB-Binlog's tools send it HTTP requests, at the one address in its record.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import ExitStack
from typing import Final

from grpc import GenericRpcHandler, aio

from ....errors import ConfigError
from ....store.temporary import temporary_directory
from ...grpc.front import Front, Read
from ...grpc.security import Security
from .http import Routes, serve

MAX_CONNECTIONS: Final = 128
_MAX_MESSAGE_BYTES: Final = 64 << 10
_MAX_REQUEST_BYTES: Final = 1 << 20
_MAX_BYTES: Final = 16 << 20


class Port:
    """Accepts connections at `listen` ("host:port"; port 0: any free one). For one loop's thread only.

    The gRPC server listens on a Unix socket in a private directory, and the connections' bytes are copied.
    """

    def __init__(
        self,
        listen: str,
        grpc_handlers: GenericRpcHandler[object, object],
        routes: Routes,
        security: Security,
    ) -> None:
        self._listen = listen
        self._handlers = grpc_handlers
        self._routes = routes
        self._tls = _tls(security)
        self._front: Front | None = None
        self._grpc: aio.Server | None = None
        self._stack = ExitStack()

    @property
    def address(self) -> str:
        """Address that is listened at."""
        return self._listen if self._front is None else self._front.address

    async def start(self) -> None:
        """Listen. Raises ConfigError if the address can't be used."""
        inner = self._stack.enter_context(temporary_directory("port")) / "grpc.sock"
        self._front = Front(
            self._listen,
            inner,
            tls=self._tls,
            max_connections=MAX_CONNECTIONS,
            max_request_bytes=_MAX_REQUEST_BYTES,
            max_bytes=_MAX_BYTES,
            other=self._answer,
        )
        try:
            await self._front.start()
        except OSError as error:
            await self.stop()
            raise ConfigError(f"source.listen = {self._listen!r}: {error.strerror or error}") from None
        self._grpc = aio.server(options=[("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES)])
        self._grpc.add_generic_rpc_handlers((self._handlers,))
        self._grpc.add_insecure_port(f"unix:{inner}")
        await self._grpc.start()

    async def stop(self) -> None:
        """Close the port and its connections; calls under way end. Idempotent."""
        if self._front is not None:
            await self._front.stop()
        grpc_server, self._grpc = self._grpc, None
        if grpc_server is not None:
            await grpc_server.stop(None)
        self._stack.close()

    async def _answer(self, head: bytes, read: Read, writer: asyncio.StreamWriter) -> None:
        await serve(head, read, writer, self._routes)


def _tls(security: Security) -> ssl.SSLContext | None:
    """Return the port's TLS: with a certificate of its own, for clients with one. None without a CA."""
    if security.credentials() is None:  # also checks the files
        return None
    assert security.cert_path is not None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=security.ca_path)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(security.cert_path, security.key_path)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context
