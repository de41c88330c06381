"""A socket of the emulated server: moves bytes between a session and a client, and does the faults."""

from __future__ import annotations

import asyncio
from threading import RLock
from typing import Final, NamedTuple

from .session import Session

_PIECE_BYTES: Final = 1 << 16
_SLOW_SECONDS: Final = 0.01
"""Pause between two pieces of a slow connection."""
_HEADER_BYTES: Final = 4


class Fault(NamedTuple):
    is_silent: bool = False
    bytes_per_second: float = 0.0
    """Limit of each connection; 0: none."""


class Faults:
    """The present fault of all connections; changed in the loop's thread."""

    now = Fault()


class Connection(asyncio.Protocol):
    """Used in the loop's thread only; `lock` guards the server's state, which scripts change too."""

    def __init__(self, session: Session, lock: RLock, faults: Faults, seek_seconds: float) -> None:
        """A client that requests the log gets nothing for `seek_seconds`."""
        self.session: Final = session
        self._seek_seconds = seek_seconds
        self._lock = lock
        self._faults = faults
        self._pending = b""
        self._is_paused = False
        self._pause: asyncio.TimerHandle | None = None
        self._heartbeat: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self.ended: Final = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.pump()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._transport = None
        for timer in (self._pause, self._heartbeat):
            if timer is not None:
                timer.cancel()
        self.ended.set()

    def data_received(self, data: bytes) -> None:
        was_following = self.session.is_following
        with self._lock:
            self.session.receive(data)
        if self._seek_seconds and self.session.is_following and not was_following and self._pause is None:
            self._pause = asyncio.get_running_loop().call_later(self._seek_seconds, self._go_on)
        self.pump()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self.pump()

    def pump(self) -> None:
        """Send what there is to send, as far as the client and the faults let it."""
        while self._transport is not None and not (
            self._is_paused or self._faults.now.is_silent or self._pause is not None
        ):
            data = self._pending or self._take(_PIECE_BYTES)
            if not data:
                break
            self._send(data, self._faults.now.bytes_per_second)
        if self._transport is not None and self.session.is_closed and not self._pending:
            self._transport.close()
        elif self._heartbeat is None and self._pause is None and self.session.is_following:
            self._await_heartbeat()

    def cut(self) -> None:
        """End the connection in the middle of the next packet."""
        if self._transport is None:
            return
        data = self._pending or self._take(1)
        if not data:
            self.session.beat()
            data = self._take(1)
        size = int.from_bytes(data[:3], "little")
        self._transport.write(data[: _HEADER_BYTES + size // 2])
        self._transport.close()
        self._transport = None

    def end(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _take(self, max_bytes: int) -> bytes:
        with self._lock:
            return self.session.take(max_bytes)

    def _send(self, data: bytes, rate: float) -> None:
        assert self._transport is not None
        size = max(1, int(rate * _SLOW_SECONDS)) if rate else len(data)
        self._transport.write(data[:size])
        self._pending = data[size:]
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            self._heartbeat = None
        if rate:
            self._pause = asyncio.get_running_loop().call_later(size / rate, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self.pump()

    def _await_heartbeat(self) -> None:
        seconds = self.session.heartbeat_seconds
        self._heartbeat = asyncio.get_running_loop().call_later(seconds, self._beat)

    def _beat(self) -> None:
        self._heartbeat = None
        if not self._pending:
            self.session.beat()
        self.pump()
