"""The buffer of a capture's changes: in memory, then on disk; when both are full the feed waits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Condition
from typing import Final, TypeAlias

import pyarrow as pa
from msgspec import Struct

from ...actors import Clock
from ...errors import TidemillError
from ...sources.source import Rank
from ..offsets.offset import Offset
from .entry import CaptureEntry, SharedRows
from .place import LogPoint
from .segment import Segment

SEGMENT_PART: Final = 4
"""A segment has about a quarter of the memory quota: large enough to make its header negligible, small
enough to free disk space soon."""
LOOK_SECONDS: Final = 0.2
"""Poll interval for detecting a disconnected client."""


NewFile: TypeAlias = Callable[[], Path]
"""Returns a new, unused file path."""


class Closed(TidemillError):
    """The buffer is closed."""


class RangeUnavailable(TidemillError):
    """The range isn't buffered, or didn't arrive in time; the message says which."""


class BufferStatistics(Struct, frozen=True):
    base: Offset | None
    """Start of the buffered range, exclusive; None before the feed's first position."""
    reached: Offset | None
    """End of the buffered range, inclusive."""
    rows: int
    memory_bytes: int
    disk_bytes: int
    blocked_since: float | None
    """Time at which the feed began to wait for room, by the clock's `now()`; None if it doesn't wait."""


class ChangeBuffer:
    """Entries in commit order with all changes in (base, reached].

    One thread appends, any number of threads read, and acknowledgements free entries. A transaction larger
    than the quota is dropped with everything before it: the buffered range then starts after it.
    """

    def __init__(self, memory_bytes: int, disk_bytes: int, new_file: NewFile, clock: Clock) -> None:
        self.changed: Final = Condition()
        self._memory_limit, self._disk_limit = memory_bytes, disk_bytes
        self.entry_bytes: Final = memory_bytes // (2 * SEGMENT_PART)
        """Maximum bytes to append at once; the quota is exceeded by at most this."""
        self._new_file = new_file
        self._clock = clock
        self._entries: dict[int, CaptureEntry] = {}
        self._first = self._next = 0  # numbers of the first entry and of the next one
        self._memory = self._disk = self._rows = 0
        self._base: LogPoint | None = None
        self._reached: LogPoint | None = None
        self._freed: LogPoint | None = None
        self._acknowledged: Rank | None = None
        self._blocked_since: float | None = None
        self._closed = ""
        self.source = ""
        """Identity of the source; empty before the first transaction. Set by the sink that appends."""

    # --- the feed's side -------------------------------------------------------------------------

    def begin(self, base: LogPoint | None) -> None:
        """Drop all entries; `base` is the place after which the feed resumes, None: its first place."""
        with self.changed:
            self._drop(len(self._entries))
            self._base = self._reached = self._freed = base
            self.changed.notify_all()

    def append(self, batch: pa.RecordBatch, span: SharedRows) -> None:
        """Append the next rows; waits for room. Raises Closed, StoreError."""
        if not batch.num_rows:
            return
        size = batch.nbytes
        with self.changed:
            self._await_room(size, span)
            if span.dropped:
                return
            self._entries[self._next] = CaptureEntry(batch, span, size)
            self._next += 1
            self._rows += batch.num_rows
            self._memory += size
            if self._memory > self._memory_limit:
                self._spill()

    @property
    def begun(self) -> bool:
        """True if the buffer has a base."""
        with self.changed:
            return self._base is not None

    def reach(self, place: LogPoint, span: SharedRows | None = None) -> None:
        """Note that all changes up to `place` were appended, and that `span` ends there."""
        with self.changed:
            if span is not None:
                span.end = place
            if self._base is None or (span is not None and span.dropped):
                self._base = place
            self._reached = place
            self._free()
            self.changed.notify_all()

    def _await_room(self, size: int, span: SharedRows) -> None:
        while self._entries and not self._has_room(size) and not self._closed and not span.dropped:
            if self._entries[self._first].span.end is None:
                # The open transaction is all there is: no acknowledgement can make room.
                span.dropped = True
                self._drop(len(self._entries))
                break
            if self._blocked_since is None:
                self._blocked_since = self._clock.now()
                self.changed.notify_all()
            self.changed.wait()
        self._blocked_since = None
        if self._closed:
            raise Closed(self._closed)

    def _has_room(self, size: int) -> bool:
        if self._memory + size <= self._memory_limit:
            return True
        return self._disk + self._to_spill(size)[1] <= self._disk_limit

    def _to_spill(self, more: int = 0) -> tuple[int, int]:
        """Return the number of latest entries that make a segment, and their bytes plus `more`."""
        count, size = 0, more
        for number in range(self._next - 1, self._first - 1, -1):
            entry = self._entries[number]
            if entry.segment is not None or size >= self._memory_limit // SEGMENT_PART:
                break
            count, size = count + 1, size + entry.bytes
        return count, size

    def _spill(self) -> None:
        """Move the latest entries to disk: the oldest will be read next."""
        count, size = self._to_spill()
        entries = [self._entries[number] for number in range(self._next - count, self._next)]
        segment = Segment(self._new_file(), [entry.batch for entry in entries])
        for number, entry in enumerate(entries):
            entry.move_to(segment, number)
        self._memory -= size
        self._disk += segment.bytes

    def close(self, why: str) -> None:
        """Drop everything and wake all waiting threads with Closed or RangeUnavailable."""
        with self.changed:
            self._closed = why
            self._drop(len(self._entries))
            self.changed.notify_all()

    # --- acknowledgements ------------------------------------------------------------------------

    def acknowledge(self, rank: Rank) -> None:
        """Free everything up to `rank`, also changes that arrive later: nobody reads it again."""
        with self.changed:
            if self._acknowledged is None or rank > self._acknowledged:
                self._acknowledged = rank
                self._free()
                self._blocked_since = None  # the feed's thread sets it again if it still waits
                self.changed.notify_all()

    @property
    def freed(self) -> LogPoint | None:
        """The place from which the feed can resume: the last one at or before the acknowledged rank, or the
        base if that is later. None before the first acknowledgement."""
        with self.changed:
            return self._freed

    def _free(self) -> None:
        upto = self._acknowledged
        if upto is None:
            return
        count = 0
        for number in range(self._first, self._next):
            entry = self._entries[number]
            end = entry.span.end
            if end is None or end.rank > upto:
                if entry.span.whole and (inside := entry.place_before(upto)) is not None:
                    self._freed = inside
                break
            count, self._freed = count + 1, end
        self._drop(count)
        if self._reached is not None and self._reached.rank <= upto:
            self._freed = self._reached
        if self._freed is not None and (self._base is None or self._base.rank < self._freed.rank):
            self._base = self._freed
        if self._freed is None:
            self._freed = self._base  # the query is behind: a restart mustn't begin even later

    def _drop(self, count: int) -> None:
        for _ in range(count):
            entry = self._entries.pop(self._first)
            self._first += 1
            self._rows -= entry.rows
            if entry.segment is None:
                self._memory -= entry.bytes
            else:
                self._disk -= entry.segment.release()

    # --- readers ---------------------------------------------------------------------------------

    def wait(self, start: Rank, end: Rank, seconds: float, wanted: Callable[[], bool]) -> None:
        """Wait up to `seconds` until (start, end] is buffered, as long as `wanted()` is true.

        Raises RangeUnavailable.
        """
        until = self._clock.now() + seconds
        with self.changed:
            while True:
                base, reached = self._base, self._reached
                if self._closed:
                    raise RangeUnavailable(self._closed)
                if base is not None and start < base.rank:
                    raise RangeUnavailable(f"the buffer starts after {base}, and the range before it")
                if reached is not None and reached.rank >= end:
                    return
                if self._blocked_since is not None:
                    raise RangeUnavailable(f"the quota is full at {reached}, before the range's end")
                left = until - self._clock.now()
                if left <= 0:
                    raise RangeUnavailable(
                        f"the feed has come to {reached or 'nothing'} only, after {seconds:g} s"
                    )
                if not wanted():
                    raise RangeUnavailable("the client has disconnected")
                self.changed.wait(min(left, LOOK_SECONDS))

    def _entry_at(self, start: Rank) -> int:
        """Return the number of the first entry that ends after `start`."""
        numbers = range(self._first, self._next)

        def is_after(number: int) -> bool:
            end = self._entries[number].span.end
            return end is None or end.rank > start

        return self._first + bisect_left(numbers, True, key=is_after)

    def place_at(self, rank: Rank) -> LogPoint:
        """Return the last buffered place at or before `rank`. Raises RangeUnavailable if it was freed."""
        with self.changed:
            number = self._entry_at(rank)
            entry = self._entries.get(number)
            if entry is not None and entry.span.whole and (inside := entry.place_before(rank)) is not None:
                return inside
            place = self._entries[number - 1].span.end if number > self._first else self._base
            if place is None or place.rank > rank:
                raise RangeUnavailable(self._closed or "the range was acknowledged meanwhile")
            return place

    def read(self, start: Rank, end: Rank) -> Iterator[pa.RecordBatch]:
        """Yield the rows of (start, end], after `wait` has returned.

        Raises RangeUnavailable if they are freed meanwhile.
        """
        with self.changed:
            first = number = self._entry_at(start)
        while True:
            with self.changed:
                if number == self._next:
                    return
                entry = self._entries.get(number)
                if entry is None:
                    raise RangeUnavailable(self._closed or "what is being read was acknowledged meanwhile")
                place, batch = entry.span.end, entry.load()
            if place is None or (place.rank > end and not entry.span.whole):
                return
            inside = number > first and place.rank <= end
            yield batch if inside or not entry.span.whole else entry.cut(batch, start, end)
            if place.rank >= end and entry.span.whole:
                return
            number += 1

    def statistics(self) -> BufferStatistics:
        with self.changed:
            base, reached = self._offset(self._base), self._offset(self._reached)
            return BufferStatistics(base, reached, self._rows, self._memory, self._disk, self._blocked_since)

    def _offset(self, place: LogPoint | None) -> Offset | None:
        return None if place is None else Offset(place.ts, place.position, self.source)
