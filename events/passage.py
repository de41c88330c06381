"""When changes passed the stages of a pipeline: what lags are computed from.

Each log is written once per batch, in one thread at a time, and is bounded: beyond `MARKS` marks, neighbours
are merged, so that a long wait is known less exactly.
"""

from __future__ import annotations

from bisect import bisect_left
from threading import Lock
from typing import Final

from msgspec import Struct

from .ts import Ts

MARKS: Final = 256
"""Maximum number of marks of a log."""
MERGED_SECONDS: Final = 0.002
"""Changes that pass a stage within this time are one mark."""


class Receipt(Struct, gc=False):
    """Changes that were received together."""

    first: Ts
    """Their lowest commit ts."""
    last: Ts
    """Their highest commit ts."""
    at: float
    """The clock's `now()` when the first of them was received."""


class Receipts:
    """When changes were received, in any order of their timestamps. Any thread may read it."""

    __slots__ = ("_lock", "_marks", "bytes", "changes", "last_at")

    def __init__(self) -> None:
        self.changes = 0
        """Number of changes received."""
        self.bytes = 0
        """Their bytes in memory."""
        self.last_at: float | None = None
        """The clock's `now()` at the last receipt; None before the first."""
        self._marks: list[Receipt] = []
        self._lock = Lock()

    def note(self, first: Ts, last: Ts, now: float, changes: int, size: int) -> None:
        """Note `changes` changes, of `size` bytes, with timestamps from `first` to `last`."""
        with self._lock:
            self.changes += changes
            self.bytes += size
            self.last_at = now
            marks = self._marks
            if marks and now - marks[-1].at < MERGED_SECONDS:
                mark = marks[-1]
                mark.first, mark.last = min(mark.first, first), max(mark.last, last)
                return
            if len(marks) >= MARKS:
                marks[:] = [_merged(*marks[number : number + 2]) for number in range(0, len(marks), 2)]
            marks.append(Receipt(first, last, now))

    def oldest(self, ts: Ts) -> Receipt | None:
        """Return the changes above `ts` that were received first; None if there are none."""
        with self._lock:
            for mark in self._marks:
                if mark.last > ts:
                    return Receipt(max(mark.first, ts + 1), mark.last, mark.at)
        return None

    def forget(self, ts: Ts) -> None:
        """Forget everything at or below `ts`."""
        with self._lock:
            marks = self._marks
            if marks and marks[0].last <= ts:
                marks[:] = [mark for mark in marks if mark.last > ts]


def _merged(one: Receipt, other: Receipt | None = None) -> Receipt:
    if other is None:
        return one
    return Receipt(min(one.first, other.first), max(one.last, other.last), one.at)


class WatermarkLog:
    """When a growing ts reached its values. Any thread may read it."""

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        self._marks: list[tuple[Ts, float]] = []

    def note(self, ts: Ts, now: float) -> None:
        """Note that `ts` is reached; one that isn't above the last one changes nothing."""
        marks = self._marks
        if marks and ts <= marks[-1][0]:
            return
        if len(marks) >= MARKS:
            marks = self._marks = [*marks[1 : MARKS // 2 : 2], *marks[MARKS // 2 :]]
        marks.append((ts, now))

    def reached(self, ts: Ts) -> float | None:
        """Return the clock's `now()` when a ts at or above this one was reached; None if none was."""
        marks = self._marks
        place = bisect_left(marks, (ts,))
        return marks[place][1] if place < len(marks) else None
