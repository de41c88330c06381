"""The network in memory: connections of simulated machines to emulated servers; those of gRPC are here.

A message takes a while, drawn by the seed; those of one call stay in order, as those of an HTTP/2 stream.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import grpc
from grpc import aio

from ...emulator.server import RpcMethodHandler, Server
from .machine import Machine
from .scheduler import Scheduler

if TYPE_CHECKING:
    from .sockets import MemoryListener, Stream

WINDOW: Final = 6
"""Maximum number of messages of a stream that wait for the reader."""
REFUSED_SECONDS: Final = 0.02
"""Time until a client knows that no server listens."""
NOTICE_SECONDS: Final = 3.0
"""Maximum time until a server notices that a client is gone."""


class Network:
    """All servers and calls. Faults are those of the paths to a server."""

    def __init__(self, scheduler: Scheduler, latency_seconds: float) -> None:
        self.scheduler = scheduler
        self.latency_seconds = latency_seconds
        """Maximum latency of most messages; 0: none have any."""
        self.servers: dict[str, MemoryServer] = {}
        self.calls: list[Call] = []
        self.listeners: dict[str, MemoryListener] = {}
        """Of servers without gRPC, by their address."""
        self.streams: list[Stream] = []
        """Connections to them."""
        self.held_until: dict[str, float] = {}
        """Until when nothing passes to and from a server, by its address."""
        self._ports = 20_000

    def serve(
        self, handlers: Mapping[str, RpcMethodHandler], *, host: str, port: int = 0, **_tls: object
    ) -> MemoryServer:
        """Return a server, as `Cluster(serve=…)` takes it."""
        return MemoryServer(self, handlers, f"{host}:{port or self.new_port()}")

    def new_port(self) -> int:
        self._ports += 1
        return self._ports

    def cut(self, address: str) -> int:
        """Break all connections to a server; return the number of calls and streams that end."""
        calls = [call for call in self.calls if call.address == address]
        streams = self.streams_to(address)
        for call in calls:
            call.fail(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        for stream in streams:
            stream.fail()
        return len(calls) + len(streams)

    def streams_to(self, address: str) -> list[Stream]:
        return [stream for stream in self.streams if stream.address == address]

    def hold(self, address: str, seconds: float) -> None:
        """Let nothing pass to and from a server for a while; then everything comes."""
        self.held_until[address] = self.scheduler.clock.now() + seconds

    def leave(self, machine: Machine) -> None:
        """A client was killed: the servers of its calls notice it after a while."""
        for call in [call for call in self.calls if call.machine is machine]:
            call.abandon(self.scheduler.random.random() * NOTICE_SECONDS)
        for stream in [stream for stream in self.streams if stream.machine is machine]:
            stream.abandon(self.scheduler.random.random() * NOTICE_SECONDS)

    def arrival(self, address: str, after: float) -> float:
        """Return when a message that is sent now arrives, not before `after`."""
        random, now = self.scheduler.random, self.scheduler.clock.now()
        delay = 0.0
        if self.latency_seconds:
            delay = random.random() * self.latency_seconds * (20 if random.random() < 0.02 else 1)
        return max(after, now + delay, self.held_until.get(address, 0.0))


class MemoryServer(Server):
    """A server of the cluster, on no port."""

    def __init__(self, network: Network, handlers: Mapping[str, RpcMethodHandler], address: str) -> None:
        self._network = network
        self._address = address
        self.handlers = handlers
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def address(self) -> str:
        return self._address

    @property
    def up(self) -> bool:
        return self.loop is not None

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._network.servers[self._address] = self

    async def stop(self) -> None:
        self.loop = None
        self._network.servers.pop(self._address, None)
        self._network.cut(self._address)


class Wire:
    """One direction of a connection to an address. What it carries arrives in order."""

    def __init__(self, network: Network, address: str) -> None:
        self._network = network
        self._address = address
        self._last = 0.0
        self._on_the_way: deque[Callable[[], None]] = deque()

    def carry(self, loop: asyncio.AbstractEventLoop, arrive: Callable[[], None]) -> None:
        now = self._network.scheduler.clock.now()
        self._last = self._network.arrival(self._address, self._last)
        self._on_the_way.append(arrive)
        if self._last <= now:
            loop.call_soon_threadsafe(self._arrive)
        else:
            when = self._last
            loop.call_soon_threadsafe(lambda: loop.call_at(when, self._arrive))

    def _arrive(self) -> None:
        """Let the next one arrive, whichever timer this is: a loop doesn't order those of one time."""
        self._on_the_way.popleft()()


class Side:
    """One end of a call: the messages that it has received, and the end with its status."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.messages: deque[bytes] = deque()
        self.status: tuple[grpc.StatusCode, str] | None = None
        self.is_finished = False
        """True once the other side sends nothing more."""
        self._waiting: list[asyncio.Future[None]] = []

    def wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    async def changed(self) -> None:
        woken: asyncio.Future[None] = self.loop.create_future()
        self._waiting.append(woken)
        await woken

    def receive(self, message: bytes) -> None:
        self.messages.append(message)
        self.wake()

    def finish(self) -> None:
        self.is_finished = True
        self.wake()

    def end(self, code: grpc.StatusCode, details: str) -> None:
        if self.status is None:
            self.status = code, details
            self.wake()


class Call:
    """One call of any kind: a client's side and a server's."""

    def __init__(
        self, network: Network, machine: Machine, address: str, path: str, metadata: Sequence[tuple[str, str]]
    ) -> None:
        self.network = network
        self.machine = machine
        self.address = address
        self.path = path
        self.metadata = metadata
        self.client = Side(asyncio.get_running_loop())
        self.server: Side | None = None
        self.in_flight = 0
        """Messages to the client that it hasn't read."""
        self._up, self._down = Wire(network, address), Wire(network, address)
        self._task: asyncio.Task[None] | None = None
        self._callbacks: list[Callable[[Any], object]] = []
        self._is_over = False
        server = network.servers.get(address)
        if server is None or server.loop is None:
            self._refuse(grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses")
        elif path not in server.handlers:
            self._refuse(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
        else:
            network.calls.append(self)
            self.server = Side(server.loop)
            handler, side = server.handlers[path], self.server
            self._up.carry(server.loop, lambda: self._begin(handler, side))

    def _refuse(self, code: grpc.StatusCode, details: str) -> None:
        self.client.loop.call_later(REFUSED_SECONDS, self._over, code, details)

    def _begin(self, handler: RpcMethodHandler, side: Side) -> None:
        if not self._is_over:
            self._task = asyncio.ensure_future(_answer(self, handler, side))

    # --- both sides ------------------------------------------------------------------------------

    def to_server(self, message: bytes) -> None:
        if (side := self.server) is not None:
            self._up.carry(side.loop, lambda: side.receive(message))

    def finish(self) -> None:
        if (side := self.server) is not None:
            self._up.carry(side.loop, side.finish)

    def to_client(self, message: bytes) -> None:
        self.in_flight += 1
        self._down.carry(self.client.loop, lambda: self.client.receive(message))

    def answered(self, code: grpc.StatusCode, details: str) -> None:
        """The server's end, after its messages."""
        self._down.carry(self.client.loop, lambda: self._over(code, details))

    def fail(self, code: grpc.StatusCode, details: str) -> None:
        """Break the connection: both sides notice it now, and messages on the way are lost."""
        self._stop_server()
        self.client.loop.call_soon_threadsafe(self._over, code, details)

    def cancel(self) -> None:
        """The client's cancellation."""
        if self._is_over:
            return
        self._over(grpc.StatusCode.CANCELLED, "Locally cancelled by application!")
        if (side := self.server) is not None:
            self._up.carry(side.loop, self._stop_server)

    def abandon(self, seconds: float) -> None:
        """The client was killed."""
        self._is_over = True
        if (side := self.server) is not None:
            side.loop.call_soon_threadsafe(lambda: side.loop.call_later(seconds, self._stop_server))
        if self in self.network.calls:
            self.network.calls.remove(self)

    def _stop_server(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._is_over = True
        if self.server is not None:
            self.server.end(grpc.StatusCode.CANCELLED, "")

    def _over(self, code: grpc.StatusCode, details: str) -> None:
        """In the client's loop."""
        if self in self.network.calls:
            self.network.calls.remove(self)
        self._is_over = True
        if self.client.status is None:
            self.client.end(code, details)
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback(self)

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        if self.client.status is not None:
            callback(self)
        else:
            self._callbacks.append(callback)

    def error(self) -> BaseException:
        assert self.client.status is not None
        code, details = self.client.status
        if code is grpc.StatusCode.CANCELLED:
            return asyncio.CancelledError()
        return rpc_error(code, details)


def rpc_error(code: grpc.StatusCode, details: str) -> aio.AioRpcError:
    return aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), details, "")


# --- the server's side ---------------------------------------------------------------------------


class _Aborted(Exception):
    """The handler has ended its call with a status."""


class ServerContext:
    """The part of a servicer's context that the emulated cluster uses."""

    def __init__(self, call: Call, side: Side, serialize: Callable[[Any], bytes] | None) -> None:
        self._call = call
        self._side = side
        self._serialize = serialize or bytes

    def invocation_metadata(self) -> Sequence[tuple[str, str]]:
        return self._call.metadata

    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        self._call.answered(code, details)
        raise _Aborted

    async def write(self, message: Any) -> None:
        while self._call.in_flight >= WINDOW and self._side.status is None:
            await self._side.changed()
        self._call.to_client(self._serialize(message))


async def _answer(call: Call, handler: Any, side: Side) -> None:
    context = ServerContext(call, side, handler.response_serializer)
    parse = handler.request_deserializer or bytes
    try:
        if handler.request_streaming:
            await handler.stream_stream(_requests(side, parse), context)
        else:
            while not side.messages:
                if side.status is not None:
                    return
                await side.changed()
            answer = await handler.unary_unary(parse(side.messages.popleft()), context)
            await context.write(answer)
        call.answered(grpc.StatusCode.OK, "")
    except _Aborted:
        pass
    except Exception as error:
        call.answered(grpc.StatusCode.UNKNOWN, f"{type(error).__name__}: {error}")


async def _requests(side: Side, parse: Callable[[bytes], Any]) -> AsyncIterator[Any]:
    while True:
        while side.messages:
            yield parse(side.messages.popleft())
        if side.status is not None or side.is_finished:
            return
        await side.changed()
