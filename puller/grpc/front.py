"""A TCP port in front of a gRPC server, which bounds its connections and the requests that they send."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

from .frames import PREFACE, UnansweredRequests

REQUEST_SECONDS: Final = 10.0
"""Timeout for the first bytes of a connection, and for an HTTP request and its answer."""
CLOSE_SECONDS: Final = 2.0
_CHUNK_BYTES: Final = 256 << 10

Read: TypeAlias = Callable[[], Awaitable[bytes]]
Other: TypeAlias = Callable[[bytes, Read, asyncio.StreamWriter], Awaitable[None]]
"""Answers a connection without HTTP/2, which begins with these bytes; returns before it is closed."""


class _Connection:
    """A connection of a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.requests = UnansweredRequests()
        self.task: asyncio.Task[None] | None = None


class Front:
    """Copies the bytes of connections at `listen` ("host:port"; port 0: any free one) to the server on a Unix
    socket. For one loop's thread only.

    The server receives a request before it knows who sent it. So requests without an answer may have at most
    `max_request_bytes` per connection and `max_bytes` in total; beyond that, the connection with most of them
    is closed. Beyond `max_connections`, the connection that was idle longest is closed.
    """

    def __init__(
        self,
        listen: str,
        inner: Path,
        *,
        tls: ssl.SSLContext | None,
        max_connections: int,
        max_request_bytes: int,
        max_bytes: int,
        other: Other | None = None,
    ) -> None:
        host, _, port = listen.rpartition(":")
        self._host, self.port = host.strip("[]"), int(port)
        self._inner = inner
        self._tls = tls
        self._max_connections = max_connections
        self._max_request_bytes = max_request_bytes
        self._max_bytes = max_bytes
        self._other = other
        self._tasks: set[asyncio.Task[None]] = set()
        self._active: dict[_Connection, None] = {}
        """Connections that weren't closed by force; those that sent something last come last."""
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        """Address that is listened at."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self.port}"

    async def start(self) -> None:
        """Listen. Raises OSError if the address can't be used."""
        self._server = await asyncio.start_server(
            self._accept,
            self._host,
            self.port,
            ssl=self._tls,
            ssl_handshake_timeout=REQUEST_SECONDS if self._tls is not None else None,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and its connections. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection in a task of its own, which `stop` knows before it has begun."""
        if len(self._active) >= self._max_connections:
            self._evict(next(iter(self._active)))
        connection = _Connection(reader, writer)
        connection.task = task = asyncio.create_task(self._serve(connection))
        self._tasks.add(task)
        self._active[connection] = None

        def ended(_task: object) -> None:
            self._tasks.discard(task)
            self._active.pop(connection, None)
            writer.close()  # a task that is cancelled before it has begun hasn't

        task.add_done_callback(ended)

    def _evict(self, connection: _Connection) -> None:
        del self._active[connection]
        connection.writer.transport.abort()
        if connection.task is not None:
            connection.task.cancel()

    async def _read(self, connection: _Connection) -> bytes:
        """Return what the client sent next; empty at the end."""
        data = await connection.reader.read(_CHUNK_BYTES)
        if connection in self._active:
            self._active[connection] = self._active.pop(connection)
        return data

    async def _serve(self, connection: _Connection) -> None:
        # the client left, or was too slow, or this port is closed
        with suppress(OSError, TimeoutError, asyncio.CancelledError):
            async with _closing(connection.writer):
                await self._answer(connection)

    async def _answer(self, connection: _Connection) -> None:
        async with asyncio.timeout(REQUEST_SECONDS):
            first = b""
            while len(first) < len(PREFACE) and PREFACE.startswith(first):
                data = await self._read(connection)
                if not data:
                    return
                first += data
            if not first.startswith(PREFACE):
                if self._other is not None:
                    await self._other(first, lambda: self._read(connection), connection.writer)
                    await connection.writer.drain()
                return
        await self._copy(first, connection)

    async def _copy(self, first: bytes, connection: _Connection) -> None:
        reader, writer = await asyncio.open_unix_connection(self._inner)
        async with _closing(writer):
            copies = [
                asyncio.create_task(self._forward(first, connection, writer)),
                asyncio.create_task(_return(reader, connection)),
            ]
            try:
                await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in copies:
                    each.cancel()
                await asyncio.gather(*copies, return_exceptions=True)

    async def _forward(self, data: bytes, connection: _Connection, writer: asyncio.StreamWriter) -> None:
        requests = connection.requests
        while data:
            before = requests.bytes
            requests.sent(data)
            if requests.bytes > self._max_request_bytes:
                return
            if requests.bytes > before and sum(one.requests.bytes for one in self._active) > self._max_bytes:
                self._evict(max(self._active, key=lambda one: one.requests.bytes))
            writer.write(data)
            await writer.drain()
            data = await self._read(connection)


async def _return(reader: asyncio.StreamReader, connection: _Connection) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        connection.requests.answered(data)
        connection.writer.write(data)
        await connection.writer.drain()


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
