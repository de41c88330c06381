"""One TCP port for gRPC and HTTP/1, told apart by the first bytes of a connection.

Pumps call a drainer, and TiDB-Binlog's tools send it HTTP requests, at the one address in its record.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from grpc import GenericRpcHandler, aio

from ....errors import ConfigError
from ....store.temporary import temporary_directory
from ...grpc.security import Security
from .http import Routes, serve

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""First bytes of a connection with HTTP/2 (RFC 9113, 3.4)."""
MAX_CONNECTIONS: Final = 128
"""Maximum number of open connections; one more is closed at once."""
REQUEST_SECONDS: Final = 10.0
"""Timeout for the first bytes of a connection, and for an HTTP request and its answer."""
CLOSE_SECONDS: Final = 2.0
_CHUNK_BYTES: Final = 64 << 10


class Port:
    """Accepts connections at `listen` ("host:port"; port 0: any free one). For one loop's thread only.

    The gRPC server listens on a Unix socket in a private directory, and the connections' bytes are copied.
    """

    def __init__(
        self, listen: str, grpc_handlers: GenericRpcHandler[Any, Any], routes: Routes, security: Security
    ) -> None:
        host, _, port = listen.rpartition(":")
        self._host, self._port = host.strip("[]"), int(port)
        self._handlers = grpc_handlers
        self._routes = routes
        self._tls = _tls(security)
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._grpc: aio.Server | None = None
        self._directory: Path | None = None
        self._stack = ExitStack()

    @property
    def address(self) -> str:
        """Address that is listened at."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port}"

    async def start(self) -> None:
        """Listen. Raises ConfigError if the address can't be used."""
        self._directory = self._stack.enter_context(temporary_directory("port"))
        try:
            self._server = await asyncio.start_server(self._accept, self._host, self._port, ssl=self._tls)
        except OSError as error:
            await self.stop()
            raise ConfigError(f"source.listen = {self.address!r}: {error.strerror or error}") from None
        self._port = self._server.sockets[0].getsockname()[1]
        self._grpc = aio.server(options=[("grpc.max_receive_message_length", _CHUNK_BYTES)])
        self._grpc.add_generic_rpc_handlers((self._handlers,))
        self._grpc.add_insecure_port(f"unix:{self._socket}")
        await self._grpc.start()

    async def stop(self) -> None:
        """Close the port and its connections; calls under way end. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)
        grpc_server, self._grpc = self._grpc, None
        if grpc_server is not None:
            await grpc_server.stop(None)
        self._stack.close()

    @property
    def _socket(self) -> Path:
        assert self._directory is not None
        return self._directory / "grpc.sock"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection in a task of its own, which `stop` knows before it has begun."""
        if len(self._connections) >= MAX_CONNECTIONS:
            writer.close()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)

        def ended(_task: object) -> None:
            self._connections.discard(task)
            writer.close()  # a task that is cancelled before it has begun hasn't

        task.add_done_callback(ended)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # the client left, or was too slow, or this port is closed
        with suppress(OSError, TimeoutError, asyncio.CancelledError):
            async with _closing(writer):
                await self._answer(reader, writer)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(REQUEST_SECONDS):
            first = b""
            while len(first) < len(PREFACE) and PREFACE.startswith(first):
                data = await reader.read(_CHUNK_BYTES)
                if not data:
                    return
                first += data
            if not first.startswith(PREFACE):
                await serve(first, reader, writer, self._routes)
                await writer.drain()
                return
        await self._copy(first, reader, writer)

    async def _copy(self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(self._socket)
        async with _closing(inner_writer):
            inner_writer.write(first)
            copies = [
                asyncio.create_task(_pump(reader, inner_writer)),
                asyncio.create_task(_pump(inner_reader, writer)),
            ]
            try:
                await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in copies:
                    each.cancel()
                await asyncio.gather(*copies, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        writer.write(data)
        await writer.drain()


@asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Close a connection at the end, once what was written to it is sent, or after CLOSE_SECONDS."""
    try:
        yield
    finally:
        writer.close()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await writer.wait_closed()
        except TimeoutError:
            writer.transport.abort()
        except OSError:
            pass


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
