"""A group whose sources share a queue."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from threading import Condition
from typing import Final

from .entry import Entry
from .group import Consume, GroupOptions
from .merge_queue import MergeQueue

_AFTER_ALL: Final = 1 << 63
_AGAIN_SECONDS: Final = 0.1
"""Time after which entries that weren't taken come again: there may be no further heartbeat."""


class QueueGroup:
    """Entries are consumed in the thread of the source that completes the queue.

    No thread waits for its turn, only for room. One thread at a time consumes; what others put meanwhile it
    consumes, too.
    """

    def __init__(
        self, sources: Collection[str], consume: Consume, options: GroupOptions, now: Callable[[], float]
    ) -> None:
        self._queue = MergeQueue(
            sources, transactions=options.transactions, now=now, idle_seconds=options.limit
        )
        self._consume = consume
        self._max_waiting = options.max_waiting
        self._changed = Condition()
        self._is_consuming = False
        self._refused: Sequence[tuple[str, Entry]] = ()
        """Entries that the consumer didn't take yet."""
        self._interrupted: set[str] = set()

    def sink(self, source: str, entries: Sequence[Entry]) -> bool:
        with self._changed:
            while self._queue.waiting(source) >= self._max_waiting and source not in self._interrupted:
                self._changed.wait()
            if source in self._interrupted:
                return False
            self._queue.put(source, entries)
        self._drain(source)
        return True

    def advance(self, source: str, ts: int) -> bool:
        with self._changed:
            if source in self._interrupted and ts < _AFTER_ALL:
                return False
            self._queue.advance(source, ts)
        self._drain(source)
        return True

    def _drain(self, source: str) -> None:
        """Consume what may pass, in the thread of `source`, until it is interrupted."""
        while ready := self._next():
            took = 0
            try:
                took = self._consume(ready)
            finally:
                with self._changed:
                    self._is_consuming = False
                    taken = {id(entry) for _, entry in ready[:took]}
                    self._refused = [one for one in self._refused if id(one[1]) not in taken]
            if took < len(ready):
                with self._changed:
                    if self._changed.wait_for(lambda: source in self._interrupted, _AGAIN_SECONDS):
                        return

    def _next(self) -> Sequence[tuple[str, Entry]]:
        """Return what may pass, to be consumed by this thread; nothing if another one consumes."""
        with self._changed:
            if self._is_consuming:
                return ()
            self._refused = self._refused or self._queue.take()
            if self._refused:
                self._is_consuming = True
                self._changed.notify_all()
            return self._refused

    def interrupt(self, source: str) -> None:
        with self._changed:
            self._interrupted.add(source)
            self._changed.notify_all()

    def resume(self, source: str) -> None:
        with self._changed:
            self._interrupted.discard(source)
            self._queue.forget(source)
            self._refused = [one for one in self._refused if one[0] != source]

    def leave(self, source: str) -> None:
        self.advance(source, _AFTER_ALL)

    def silent(self) -> dict[str, float]:
        with self._changed:
            return self._queue.silent()

    @property
    def regressions(self) -> int:
        return self._queue.regressions
