"""Pumps without transactions: all of them send a fake binlog at once, whose commit ts is the time."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from ..actors import SystemClock
from ..events import Ts

IDLE_TS: Final = 1
"""A stream above this ts has fake binlogs only."""
PAUSE_SECONDS: Final = 0.01
COUNT: Final = 200
"""Number of latencies that are measured."""
_now = SystemClock().now


class Idle:
    """Sends on all streams at once, as soon as there is one for each pump. In the server's loop."""

    def __init__(self, pumps: int) -> None:
        self._pumps = pumps
        self._streams: set[asyncio.Queue[Ts]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(PAUSE_SECONDS)
                if len(self._streams) == self._pumps:
                    ts = int(_now() * 1e6)
                    for stream in self._streams:
                        stream.put_nowait(ts)

    async def send(self, write: Callable[[Ts], Awaitable[object]]) -> None:
        """Send until the stream is cancelled."""
        stream: asyncio.Queue[Ts] = asyncio.Queue()
        self._streams.add(stream)
        try:
            while True:
                await write(await stream.get())
        finally:
            self._streams.discard(stream)


class Latencies:
    """Seconds between the commit timestamps of fake binlogs, and the time when everything up to them was
    there."""

    def __init__(self) -> None:
        self._last: Ts = IDLE_TS
        self._seconds: list[float] = []

    def note(self, ts: Ts) -> bool:
        """Note that everything up to `ts` is there; return True once enough is known."""
        if ts > self._last:
            self._seconds.append(_now() - ts / 1e6)
            self._last = ts
        return len(self._seconds) >= COUNT

    def median(self) -> float:
        return statistics.median(self._seconds)
