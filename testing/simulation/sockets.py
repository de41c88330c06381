"""TCP in memory: a client's socket on a simulated machine, and an asyncio server's transport."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from typing import Any, Final

import pymysql
from pymysql.constants import CR

from ...puller.mysql.options import MysqlOptions
from .machine import Machine
from .network import REFUSED_SECONDS, Network, Wire

HOST: Final = "127.0.0.1"


class MemoryListener:
    """Accepts connections to a port."""

    def __init__(self, network: Network, connected: Callable[[], asyncio.Protocol], port: int) -> None:
        self.network = network
        self.connected = connected
        self.address = f"{HOST}:{port}"
        self.loop = asyncio.get_running_loop()
        network.listeners[self.address] = self

    def close(self) -> None:
        del self.network.listeners[self.address]


async def listen(
    network: Network, connected: Callable[[], asyncio.Protocol], port: int
) -> tuple[MemoryListener, int]:
    """Return a listener at a port, 0 for any, and its port, as an emulated server takes it."""
    port = port or network.new_port()
    return MemoryListener(network, connected, port), port


class ServerTransport(asyncio.Transport):
    """The server's end of a connection; in its loop's turns."""

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream

    def write(self, data: Any) -> None:
        self._stream.to_client(bytes(data))

    def close(self) -> None:
        self._stream.end_of_server(ends_now=False)

    def abort(self) -> None:
        self._stream.end_of_server(ends_now=True)


class Stream:
    """A connection: bytes on their way in both directions, and how it ended."""

    def __init__(self, listener: MemoryListener, machine: Machine) -> None:
        self.network = listener.network
        self.machine = machine
        self.address = listener.address
        self.received = bytearray()
        """Bytes that the client hasn't read."""
        self.is_reset = False
        """True if the client gets an error."""
        self._loop = listener.loop
        self._up, self._down = (Wire(self.network, self.address) for _ in range(2))
        self.protocol: asyncio.Protocol | None = None
        """The server's side, while it is connected."""
        self._arrived = bytearray()  # bytes for the client that a stall holds back
        self._has_end = False
        self._until_stall: int | None = None  # bytes that still pass; None: all
        self._is_stalled = False
        self._after_stall = self.flow
        self._stall_seconds = 0.0
        self.network.streams.append(self)
        self._up.carry(self._loop, lambda: self._accept(listener))

    def _accept(self, listener: MemoryListener) -> None:
        if not self.is_reset:
            self.protocol = listener.connected()
            self.protocol.connection_made(ServerTransport(self))

    @property
    def is_ended(self) -> bool:
        """True if the client gets no more than what it has received."""
        return self._has_end and not self._arrived

    # --- of the client ---------------------------------------------------------------------------

    def to_server(self, data: bytes) -> None:
        self._up.carry(self._loop, lambda: self._arrive(data))

    def close(self) -> None:
        """The client sends nothing more, and reads nothing more."""
        if not self.is_reset:
            self._has_end = True
            self._up.carry(self._loop, self._lose)

    def abandon(self, seconds: float) -> None:
        """The client was killed; the server notices it after a while."""
        self.is_reset = True
        self._loop.call_soon_threadsafe(lambda: self._loop.call_later(seconds, self._lose))

    # --- of the server ---------------------------------------------------------------------------

    def to_client(self, data: bytes) -> None:
        self._down.carry(self._loop, lambda: self._receive(data))

    def end_of_server(self, *, ends_now: bool) -> None:
        if ends_now:
            self.is_reset = True
        else:
            self._down.carry(self._loop, self._end)
        self._loop.call_soon(self._lose)

    def _end(self) -> None:
        self._has_end = True

    def _receive(self, data: bytes) -> None:
        self._arrived += data
        self._let_through()

    def _arrive(self, data: bytes) -> None:
        if self.protocol is not None:
            self.protocol.data_received(data)

    def _lose(self) -> None:
        if self in self.network.streams:
            self.network.streams.remove(self)
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.connection_lost(None)

    # --- of the path -----------------------------------------------------------------------------

    def fail(self) -> None:
        """Break: both sides notice it now, and what is on the way is lost."""
        self.is_reset = True
        self._loop.call_soon_threadsafe(self._lose)

    def stall(self, after_bytes: int, seconds: float, *, breaks: bool) -> None:
        """Let some more bytes to the client pass, then nothing for a while; then go on, or break."""
        self._until_stall, self._stall_seconds = after_bytes, seconds
        self._after_stall = self.fail if breaks else self.flow

    def flow(self) -> None:
        """End a stall, or call it off: everything arrives."""
        self._until_stall = None
        self._is_stalled = False
        self._let_through()

    def _let_through(self) -> None:
        arrived, most = self._arrived, self._until_stall
        size = len(arrived) if most is None else min(len(arrived), most)
        self.received += arrived[:size]
        del arrived[:size]
        if most is not None:
            self._until_stall = most - size
            if arrived and not self._is_stalled:
                self._is_stalled = True
                self._loop.call_later(self._stall_seconds, self._after_stall)


class MemorySocket:
    """The part of a client's socket that PyMySQL and the engine use; in fibers of a machine."""

    family: Final = socket.AF_INET

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._timeout: float | None = None
        self._is_closed = False

    def settimeout(self, seconds: float | None) -> None:
        self._timeout = seconds

    def gettimeout(self) -> float | None:
        return self._timeout

    def setsockopt(self, *_: object) -> None:
        pass

    def getpeername(self) -> tuple[str, int]:
        host, _, port = self._stream.address.partition(":")
        return host, int(port)

    def sendall(self, data: bytes | bytearray) -> None:
        if self._stream.is_reset or self._is_closed:
            raise BrokenPipeError("broken pipe")
        self._stream.to_server(bytes(data))

    def recv(self, size: int) -> bytes:
        stream = self._stream
        if not stream.machine.scheduler.wait(self._is_readable, self._timeout):
            raise TimeoutError("timed out")
        if self._is_closed:
            return b""
        if stream.is_reset:
            raise ConnectionResetError("connection reset by peer")
        data = bytes(stream.received[:size])
        del stream.received[: len(data)]
        return data

    def _is_readable(self) -> bool:
        stream = self._stream
        return self._is_closed or stream.is_reset or stream.is_ended or bool(stream.received)

    def shutdown(self, _how: int) -> None:
        self.close()

    def close(self) -> None:
        if not (self._is_closed or self._stream.machine.is_dead):
            self._is_closed = True
            self._stream.close()

    def makefile(self, _mode: str) -> BufferedReader:
        return BufferedReader(_Raw(self))


class _Raw(RawIOBase):
    def __init__(self, stream: MemorySocket) -> None:
        self._socket = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._socket.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedOptions(MysqlOptions):
    """A server that a machine reaches by the simulated network."""

    network: Network
    machine: Machine

    def dial(self) -> Any:
        scheduler = self.machine.scheduler
        listener = self.network.listeners.get(self.address)
        if listener is None:
            scheduler.sleep(REFUSED_SECONDS)
            raise pymysql.err.OperationalError(CR.CR_CONN_HOST_ERROR, f"{self.address} refuses connections")
        return MemorySocket(Stream(listener, self.machine))
