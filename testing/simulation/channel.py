"""The client's side of gRPC in memory: what grpc.aio offers, as far as the engine uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import grpc
from grpc import aio

from ...puller.grpc.loop import LoopThread
from .loop import ClientLoop
from .machine import Machine
from .network import Call, Network, rpc_error


class StreamCall:
    """A call with a stream of answers, as grpc.aio returns it."""

    def __init__(self, call: Call, serialize: Callable[[Any], bytes], parse: Callable[[bytes], Any]) -> None:
        self._call = call
        self._serialize = serialize
        self._parse = parse

    async def write(self, message: Any) -> None:
        await asyncio.sleep(0)
        if self._call.client.status is not None:
            raise self._call.error()
        self._call.to_server(self._serialize(message))

    async def done_writing(self) -> None:
        self._call.finish()

    async def read(self) -> Any:
        side = self._call.client
        while not side.messages:
            if side.status is not None:
                if side.status[0] is grpc.StatusCode.OK:
                    return None
                raise self._call.error()
            await side.changed()
        message = side.messages.popleft()
        self._call.in_flight -= 1
        if self._call.server is not None:
            self._call.server.loop.call_soon_threadsafe(self._call.server.wake)
        return self._parse(message)

    def cancel(self) -> bool:
        self._call.cancel()
        return True

    def done(self) -> bool:
        return self._call.client.status is not None

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        self._call.add_done_callback(callback)


class MemoryChannel:
    """A connection, as grpc.aio returns it."""

    def __init__(self, network: Network, machine: Machine, address: str) -> None:
        self._network = network
        self._machine = machine
        self._address = address
        self._calls: list[Call] = []
        self._is_closed = False

    def _call(self, path: str, metadata: Iterable[tuple[str, str]] = ()) -> Call:
        if self._is_closed:
            raise aio.UsageError("Channel is closed.")
        call = Call(self._network, self._machine, self._address, path, tuple(metadata))
        self._calls.append(call)
        call.add_done_callback(self._calls.remove)
        return call

    def unary_unary(
        self, path: str, serialize: Callable[[Any], bytes], parse: Callable[[bytes], Any]
    ) -> Callable[..., Any]:
        async def call(request: Any, *, timeout: float | None = None) -> Any:
            made = self._call(path)
            made.to_server(serialize(request))
            made.finish()
            try:
                async with asyncio.timeout(timeout):
                    return await StreamCall(made, serialize, parse).read()
            except TimeoutError:
                late = grpc.StatusCode.DEADLINE_EXCEEDED
                raise rpc_error(late, "Deadline Exceeded") from None
            finally:
                made.cancel()

        return call

    def stream_stream(
        self, path: str, serialize: Callable[[Any], bytes], parse: Callable[[bytes], Any] | None
    ) -> Callable[..., StreamCall]:
        def call(
            _requests: None, *, metadata: Iterable[tuple[str, str]] = (), **_timeout: float | None
        ) -> StreamCall:
            return StreamCall(self._call(path, metadata), serialize, parse or bytes)

        return call

    async def close(self, _grace: float | None) -> None:
        self._is_closed = True
        for call in list(self._calls):
            call.cancel()


class MemoryTransport:
    """The loop and the connections of a machine's clients."""

    def __init__(self, network: Network, machine: Machine) -> None:
        self._network = network
        self._machine = machine

    def loop(self, on_error: Callable[[BaseException], None]) -> LoopThread:
        return LoopThread(on_error=on_error, running=self._running)

    def _running(self, name: str) -> ClientLoop:
        made = ClientLoop(name, self._machine, self._network.scheduler)
        self._machine.loops.append(made._virtual)
        return made

    def random(self) -> Any:
        return self._network.scheduler.random

    def dial(self, address: str, _credentials: object, _options: object) -> Any:
        return MemoryChannel(self._network, self._machine, address)
