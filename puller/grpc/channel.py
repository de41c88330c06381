"""Connections to PD and the stores, and calls over them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final, Protocol

import grpc
from grpc import aio

from ...actors import Clock
from ...codec.proto import Message, Method
from ...errors import Retryable, SourceError
from .security import Security, handshake_advice
from .transport import SOCKETS, Transport

KEEPALIVE_MS: Final = 10_000
KEEPALIVE_TIMEOUT_MS: Final = 3_000
"""Time to wait for the answer to a keepalive ping, after which the connection is closed (TiCDC's value)."""

_FINAL: Final = {
    grpc.StatusCode.UNIMPLEMENTED: "it doesn't know this call; check that TiDB's version is supported",
    grpc.StatusCode.UNAUTHENTICATED: "it rejects the client certificate; check cert_path and key_path",
    grpc.StatusCode.PERMISSION_DENIED: "permission denied; check the common names that it accepts",
}


_COMPRESSION: Final = {"none": None, "gzip": grpc.Compression.Gzip}
"""Compression by its name in options."""


class ChannelOptions(Protocol):
    """The options of a source that connections use."""

    @property
    def security(self) -> Security: ...
    @property
    def stream_window_bytes(self) -> int: ...
    @property
    def max_receive_bytes(self) -> int: ...
    @property
    def streams_per_connection(self) -> int: ...
    @property
    def idle_seconds(self) -> float: ...
    @property
    def dial_seconds(self) -> float: ...


class CallFailed(Retryable):
    """A call failed without an answer from `address`: the connection, a timeout or the server's state."""

    def __init__(self, message: str, address: str, code: grpc.StatusCode) -> None:
        super().__init__(message)
        self.address = address
        self.code = code


class TooLarge(SourceError):
    """An answer is larger than `max_receive_bytes`; ask for fewer items."""


class _Connection:
    """One HTTP/2 connection and the number of its users."""

    __slots__ = ("channel", "last_used", "users")

    def __init__(self, channel: aio.Channel, now: float) -> None:
        self.channel = channel
        self.users = 0
        self.last_used = now


class Channels:
    """The connections of one feed, by address ("host:port"). To be used in the loop's thread only.

    Unary calls and streams use separate connections: a stream that isn't read must not delay a call. Raises
    ConfigError if a file of the security options can't be used.
    """

    def __init__(self, options: ChannelOptions, clock: Clock, transport: Transport = SOCKETS) -> None:
        self._options = options
        self._transport = transport
        self._clock = clock
        self._credentials = options.security.credentials()
        self._connections: dict[tuple[str, bool], list[_Connection]] = {}
        self._swept = clock.now()
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    async def call(self, address: str, method: Method, request: Message, timeout_seconds: float) -> Any:
        """Send a unary call and return its answer.

        Raises CallFailed if a retry may succeed, here or elsewhere, and SourceError if it can't. Both name
        the address and the call.
        """
        connection = self._use(address, stream=False)
        call = connection.channel.unary_unary(method.path, _serialize, method.response.FromString)
        try:
            return await call(request, timeout=timeout_seconds)
        except aio.AioRpcError as error:
            raise self.failure(address, method, error) from error
        finally:
            self._release(connection)

    def stream(
        self,
        address: str,
        method: Method,
        *,
        raw: bool = False,
        metadata: Iterable[tuple[str, str]] = (),
        timeout_seconds: float | None = None,
    ) -> aio.StreamStreamCall[Any, Any]:
        """Open a bidirectional stream; its connection is released when the call is done or cancelled.

        With `raw`, messages are read as unparsed bytes. The stream's methods raise grpc's errors: see
        `failure`.
        """
        connection = self._use(address, stream=True)
        open_stream = connection.channel.stream_stream(
            method.path, _serialize, None if raw else method.response.FromString
        )
        call = open_stream(None, metadata=tuple(metadata), timeout=timeout_seconds)
        call.add_done_callback(lambda _: self._release(connection))
        return call

    def pull(
        self, address: str, method: Method, request: Message, *, compression: str = "none"
    ) -> aio.UnaryStreamCall[Message, bytes]:
        """Send one request and return the stream of answers, read as unparsed bytes; see `stream`."""
        connection = self._use(address, stream=True)
        open_stream = connection.channel.unary_stream(method.path, _serialize, None)
        call = open_stream(request, compression=_COMPRESSION[compression])
        call.add_done_callback(lambda _: self._release(connection))
        return call

    def failure(self, address: str, method: Method, error: grpc.RpcError) -> CallFailed | SourceError:
        """Translate a gRPC error; the message names the address and the call."""
        code, details = error.code(), error.details() or ""
        what = f"{address}: {method.path.rpartition('/')[2]}"
        if code is grpc.StatusCode.UNAVAILABLE and (advice := handshake_advice(details)):
            return SourceError(f"{what}: no TLS connection: {advice} ({details})")
        if code in _FINAL:
            return SourceError(f"{what}: {_FINAL[code]} ({details})")
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in details:
            return TooLarge(f"{what}: an answer is too large for max_receive_bytes ({details})")
        hint = self._options.security.hint(details)
        return CallFailed(f"{what}: {code.name}: {details or 'no details'}{hint}", address, code)

    async def close(self) -> None:
        """Close every connection. Running calls and streams end as cancelled, new ones are refused."""
        self._closed = True
        connections = [c for group in self._connections.values() for c in group]
        self._connections.clear()
        await asyncio.gather(*(c.channel.close(None) for c in connections), *self._closing)

    @property
    def connections(self) -> int:
        return sum(map(len, self._connections.values()))

    def _use(self, address: str, *, stream: bool) -> _Connection:
        if self._closed:
            raise CallFailed(f"{address}: the connections are closed", address, grpc.StatusCode.CANCELLED)
        self._sweep()
        group = self._connections.setdefault((address, stream), [])
        room = (c for c in group if c.users < self._options.streams_per_connection)
        connection = next(room, None)
        if connection is None:
            connection = _Connection(self._dial(address), self._clock.now())
            group.append(connection)
        connection.users += 1
        return connection

    def _release(self, connection: _Connection) -> None:
        connection.users -= 1
        connection.last_used = self._clock.now()

    def _dial(self, address: str) -> aio.Channel:
        return self._transport.dial(address, self._credentials, _arguments(self._options))

    def _sweep(self) -> None:
        """Close connections idle for longer than `idle_seconds`; runs on use, at most once per tenth of that
        time."""
        now = self._clock.now()
        if now - self._swept < self._options.idle_seconds / 10:
            return
        self._swept = now
        for key, group in list(self._connections.items()):
            idle = [c for c in group if not c.users and now - c.last_used >= self._options.idle_seconds]
            for connection in idle:
                group.remove(connection)
                task = asyncio.ensure_future(connection.channel.close(None))
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)
            if not group:
                del self._connections[key]


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


def _arguments(options: ChannelOptions) -> list[tuple[str, int]]:
    return [
        ("grpc.use_local_subchannel_pool", 1),  # without it, channels to one address share a connection
        ("grpc.http2.lookahead_bytes", options.stream_window_bytes),
        ("grpc.http2.bdp_probe", 0),  # without it, the window grows with the bandwidth-delay product
        ("grpc.max_receive_message_length", options.max_receive_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.min_reconnect_backoff_ms", round(options.dial_seconds * 1000)),  # connection timeout
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 3_000),  # a restarted store is found soon
        ("grpc.keepalive_time_ms", KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.http2.max_pings_without_data", 0),  # a change feed may be silent for long
        ("grpc.enable_http_proxy", 0),
    ]
