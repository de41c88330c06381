"""A group whose sources' threads wait at a barrier."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from threading import Lock

from .barrier import Interrupted
from .entry import Entry
from .group import Consume, GroupOptions
from .timeline_barrier import TimelineBarrier
from .transaction_barrier import TimelineTransactionBarrier


class BarrierGroup:
    """Each entry is consumed in its source's thread, when the barrier lets it pass."""

    def __init__(
        self, sources: Collection[str], consume: Consume, options: GroupOptions, now: Callable[[], float]
    ) -> None:
        kind = TimelineTransactionBarrier if options.transactions else TimelineBarrier
        self._barrier = kind(sources, now=now, idle_seconds=options.limit)
        self._consume = consume
        self._consuming = Lock()

    def sink(self, source: str, entries: Sequence[Entry]) -> bool:
        return all(self._pass(source, entry) for entry in entries)

    def advance(self, source: str, ts: int) -> bool:
        return self._pass(source, Entry(ts))

    def _pass(self, source: str, entry: Entry) -> bool:
        try:
            self._barrier.wait(source, entry)
        except Interrupted:
            return False
        took = False
        try:
            # Entries with the same ts pass together, and a heartbeat is no matter of the consumer.
            with self._consuming:
                took = entry.item is None or self._consume([(source, entry)]) == 1
        finally:
            (self._barrier.clear if took else self._barrier.withdraw)(source, entry)
        return took

    def interrupt(self, source: str) -> None:
        self._barrier.interrupt(source)

    def resume(self, source: str) -> None:
        self._barrier.resume(source)

    def leave(self, source: str) -> None:
        self._barrier.leave(source)

    def silent(self) -> dict[str, float]:
        return self._barrier.silent()

    @property
    def regressions(self) -> int:
        return self._barrier.regressions
