"""A TCP proxy for a network that can be frozen by hand, and that has faults by a seed."""

from __future__ import annotations

import socket
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from select import select
from struct import pack
from threading import Event, Thread
from time import monotonic
from typing import Final, Self, assert_never

from .network_faults import WAYS, NetworkFault, NetworkFaults, Way

LOOK_SECONDS: Final = 0.05
READ_BYTES: Final = 1 << 16
HELD_BYTES: Final = 1 << 20
"""Bytes of a direction that wait in the proxy before their sender has to."""

_RESET: Final = pack("ii", 1, 0)
"""SO_LINGER of a socket that sends RST when it is closed."""
_TOLD_SECONDS: Final = 1.0
"""Time for the ends of a cut connection to close it."""


class Proxy:
    """Passes connections on to an address, from a port of its own on loopback.

    Bytes that were held are passed later, also if their sender has closed its connection meanwhile.
    """

    host = "127.0.0.1"

    def __init__(
        self, host: str, port: int, *, faults: NetworkFaults | None = None, own_port: int = 0
    ) -> None:
        """`own_port` is the port to listen at; 0: any."""
        self._target = host, port
        self._faults = faults
        self._stopping = Event()
        self._open = Event()
        self._open.set()
        self._listener = socket.create_server((self.host, own_port))
        self.port: int = self._listener.getsockname()[1]
        self._accepting = Thread(target=self._accept, name="proxy", daemon=True)
        self._pairs: list[Thread] = []
        self.connections = 0
        """Number of connections to the target so far."""

    def freeze(self) -> None:
        """Pass nothing from now on, also for new connections."""
        self._open.clear()

    def thaw(self) -> None:
        self._open.set()

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self._stopping.set()
        self._accepting.join()
        for thread in self._pairs:
            thread.join()
        self._listener.close()

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def _accept(self) -> None:
        while not self.is_stopping:
            if not select([self._listener], [], [], LOOK_SECONDS)[0]:
                continue
            client, _ = self._listener.accept()
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            pair = _Pair(self, client, server, _Fate(self._faults, self.connections))
            self.connections += 1
            self._pairs = [thread for thread in self._pairs if thread.is_alive()]
            self._pairs.append(Thread(target=pair.run, name="proxy-pair", daemon=True))
            self._pairs[-1].start()


class _Fate:
    """The next fault of a connection."""

    def __init__(self, faults: NetworkFaults | None, connection: int) -> None:
        self._faults = faults
        self._drawn: Iterator[NetworkFault] = iter(()) if faults is None else faults.draw(connection)
        self._next = next(self._drawn, None)
        self._passed = dict.fromkeys(WAYS, 0)  # since the last fault
        self._requests = 0  # those with what the next fault is aimed at
        self._tail = b""
        self._is_aimed = False

    def passed(self, way: Way, data: bytes) -> None:
        self._passed[way] += len(data)
        if way == "to server" and (aim := self._next.aim if self._next is not None else b""):
            text = self._tail + data
            self._requests += text.count(aim)
            self._tail = text[1 - len(aim) :] if len(aim) > 1 else b""

    def room(self, way: Way, data: bytes) -> int:
        """Return how many of the next bytes are passed before a fault; 0: it is due."""
        fault = self._next
        if fault is None or fault.way != way:
            return READ_BYTES
        room = max(0, fault.after_bytes - self._passed[way])
        if (first := self._aimed_at(fault, data)) is None or first > room:
            return room
        self._is_aimed = first == 0
        return first

    def _aimed_at(self, fault: NetworkFault, data: bytes) -> int | None:
        """Return the number of bytes before the aim; None if it isn't there."""
        if not fault.aim or self._requests < fault.spared:
            return None
        if fault.way == "to client":
            return 0 if self._requests > fault.spared else None
        first = data.find(fault.aim)
        return None if first < 0 else first

    def take(self) -> NetworkFault | None:
        """Return the fault that is due, once; None if there are no more faults."""
        fault, self._next = self._next, next(self._drawn, None)
        is_aimed, self._is_aimed = self._is_aimed, False
        self._passed = dict.fromkeys(WAYS, 0)
        self._requests, self._tail = 0, b""
        if fault is None or self._faults is None or not self._faults.take(fault.kind, aimed=is_aimed):
            self._next = None
            return None
        return fault


class _Direction:
    """The bytes from one end of a connection to the other."""

    def __init__(self, way: Way, sender: socket.socket, receiver: socket.socket) -> None:
        self.way: Way = way
        self.sender = sender
        self.receiver = receiver
        self.has_ended = False
        """True after the sender's last byte."""
        self.is_over = False
        """True once the receiver knows the end, or is gone itself."""
        self.is_lost = False
        """True if nothing arrives any more."""
        self.delay_seconds = 0.0
        self._held: deque[tuple[float, bytes]] = deque()
        self._held_bytes = 0

    @property
    def may_read(self) -> bool:
        return not self.has_ended and self._held_bytes < HELD_BYTES

    @property
    def next(self) -> bytes:
        """The bytes that are passed next."""
        return self._held[0][1]

    def is_due(self, now: float) -> bool:
        return bool(self._held) and self._held[0][0] <= now

    def read(self) -> None:
        try:
            data = self.sender.recv(READ_BYTES)
        except OSError:  # it was reset
            data = b""
        self.has_ended = not data
        if data and not self.is_lost:
            self._held.append((monotonic() + self.delay_seconds, data))
            self._held_bytes += len(data)

    def write(self, most: int) -> bytes:
        """Pass at most `most` bytes; return those that were passed."""
        at, data = self._held.popleft()
        try:
            sent = self.receiver.send(data[:most], socket.MSG_DONTWAIT)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.lose()
            self.is_over = True
            return b""
        self._held_bytes -= sent
        if rest := data[sent:]:
            self._held.appendleft((at, rest))
        return data[:sent]

    def lose(self) -> None:
        self.is_lost = True
        self._held.clear()
        self._held_bytes = 0

    def tell_end(self) -> None:
        """Pass on that the sender has closed, after its bytes."""
        if self.has_ended and not self._held and not self.is_over and not self.is_lost:
            self.is_over = True
            self.end()

    def end(self) -> None:
        with suppress(OSError):
            self.receiver.shutdown(socket.SHUT_WR)


class _Pair:
    """A client's connection and the one to the server, in a thread of its own."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket, fate: _Fate) -> None:
        self._proxy = proxy
        self._ends = client, server
        self._fate = fate
        self._frozen_until = 0.0
        self._waits_for = 0  # this number of connections; not longer than it is frozen
        self._reset_at = float("inf")

    def run(self) -> None:
        client, server = self._ends
        with client, server:
            both = [_Direction("to server", client, server), _Direction("to client", server, client)]
            while not self._proxy.is_stopping and not all(one.is_over for one in both):
                if monotonic() >= self._reset_at:
                    for end in self._ends:
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    return
                self._pass(both)

    def _pass(self, both: list[_Direction]) -> None:
        """Pass what may be passed now, or wait a little."""
        now, is_open = monotonic(), self._is_open()
        reading = [one for one in both if one.may_read]
        writing = [one for one in both if is_open and one.is_due(now)]
        is_delayed = any(one.delay_seconds for one in both)
        readable, writable, _ = select(
            [one.sender for one in reading],
            [one.receiver for one in writing],
            [],
            LOOK_SECONDS / 10 if is_delayed else LOOK_SECONDS,
        )
        for one in reading:
            if one.sender in readable:
                one.read()
        for one in writing:
            if one.receiver in writable and one.is_due(now) and self._is_open():
                self._write(one, both)
        if self._is_open():
            for one in both:
                one.tell_end()

    def _is_open(self) -> bool:
        is_frozen = monotonic() < self._frozen_until and self._proxy.connections <= self._waits_for
        return self._proxy.is_open and not is_frozen

    def _write(self, one: _Direction, both: list[_Direction]) -> None:
        """Pass bytes up to the next fault, or make the one that is due."""
        if room := self._fate.room(one.way, one.next):
            self._fate.passed(one.way, one.write(room))
        elif (fault := self._fate.take()) is not None:
            self._make(fault, one, both)

    def _make(self, fault: NetworkFault, one: _Direction, both: list[_Direction]) -> None:
        now = monotonic()
        for direction in both:
            direction.delay_seconds = 0.0
        match fault.kind:
            case "drop":
                for lost in both if fault.both else [one]:
                    lost.lose()
                self._reset_at = now + fault.seconds
            case "freeze":
                self._frozen_until, self._waits_for = now + fault.seconds, sys.maxsize
            case "reorder":
                self._frozen_until, self._waits_for = now + fault.seconds, self._proxy.connections
            case "reset":
                self._reset_at = now
            case "cut":
                for direction in both:
                    direction.lose()
                    direction.end()
                self._reset_at = now + _TOLD_SECONDS
            case "delay":
                one.delay_seconds = fault.seconds
            case _:
                assert_never(fault.kind)
