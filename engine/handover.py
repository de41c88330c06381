"""Queue from the thread of a sink to the thread of a program."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import BoundedSemaphore

from ..errors import TidemillError
from ..events import Item

WAITING_BATCHES = 4
"""Maximum number of batches that wait for the program; beyond it the source is slowed down."""


class HandoverClosed(TidemillError):
    """The reader has stopped."""


class Handover:
    """A bounded queue of batches from one thread to another, with an end."""

    def __init__(self, capacity: int = WAITING_BATCHES) -> None:
        self._room = BoundedSemaphore(capacity)
        self._batches: SimpleQueue[Sequence[Item] | None] = SimpleQueue()
        self._closed = False

    def put(self, batch: Sequence[Item]) -> None:
        """Add a batch, waiting for room. Raises HandoverClosed."""
        self._room.acquire()
        if self._closed:
            self._room.release()
            raise HandoverClosed("the feed is being closed")
        self._batches.put(batch)

    def get(self) -> Sequence[Item] | None:
        """Wait for and return a batch; None at the end."""
        batch = self._batches.get()
        if batch is None:
            self._batches.put(None)  # later calls return the end again
        else:
            self._room.release()
        return batch

    def finish(self) -> None:
        """End the queue: the reader ends after the batches that wait."""
        self._batches.put(None)

    def close(self) -> None:
        """Stop reading: a thread that waits for room gets HandoverClosed."""
        self._closed = True
        with suppress(Empty):
            while True:
                if self._batches.get_nowait() is not None:
                    self._room.release()
        self.finish()
