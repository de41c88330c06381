"""How much a store has sent that nobody has finished with."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from threading import Lock
from typing import Final

MOST_BYTES: Final = 4 << 20
"""A message has up to 6 MiB, and taken apart its changes take about three times that."""


class Backlog:
    """The loop's thread adds what comes on a stream, others take away what they have handled.

    Mailboxes are bounded in messages, which may be large: so no more is read than this.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Event()
        self._lock = Lock()
        self._bytes = 0
        self._waiting = False

    async def add(self, size: int) -> None:
        """Wait for room; a message goes in if there is any."""
        while True:
            with self._lock:
                if self._bytes < MOST_BYTES:
                    self._bytes += size
                    return
                self._waiting = True
                self._room.clear()
            await self._room.wait()

    def done(self, size: int) -> None:
        """From any thread. Nothing happens once the loop is closed."""
        with self._lock:
            self._bytes -= size
            wake = self._waiting and self._bytes < MOST_BYTES
            if wake:
                self._waiting = False
        if wake:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._room.set)
