"""Bytes received from a store and not yet processed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from threading import Lock
from typing import Final

MOST_BYTES: Final = 4 << 20
"""Limit of the backlog. A message has up to 6 MiB, and its parsed changes take about three times that."""


class Backlog:
    """The loop's thread adds the bytes received on a stream, other threads subtract those they have
    processed.

    Mailboxes are bounded in messages, which may be large, so reading stops at this number of bytes.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Event()
        self._lock = Lock()
        self._bytes = 0
        self._waiting = False

    async def add(self, size: int) -> None:
        """Wait for room, and add a message's size; a message of any size is admitted if there is any room."""
        while True:
            with self._lock:
                if self._bytes < MOST_BYTES:
                    self._bytes += size
                    return
                self._waiting = True
                self._room.clear()
            await self._room.wait()

    def done(self, size: int) -> None:
        """Subtract processed bytes. Thread-safe; does nothing after the loop is closed."""
        with self._lock:
            self._bytes -= size
            wake = self._waiting and self._bytes < MOST_BYTES
            if wake:
                self._waiting = False
        if wake:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._room.set)
