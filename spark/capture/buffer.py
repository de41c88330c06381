"""What a capture keeps of its feed: in memory, then on disk, then the feed has to wait."""

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
from .entry import Entry, Span
from .place import Place, Rank
from .segment import Segment

SEGMENT_PART: Final = 4
"""A segment is this part of what memory holds: large enough that its header doesn't count, small enough
that disk is given back soon."""
LOOK_SECONDS: Final = 0.2
"""How often one who waits looks whether he is still wanted."""


NewFile: TypeAlias = Callable[[], Path]
"""Where a file may be written that nobody else uses."""


class Closed(TidemillError):
    """Nothing is kept any more."""


class RangeUnavailable(TidemillError):
    """What was asked for isn't here, or didn't come in time; the sentence says which."""


class BufferStatistics(Struct, frozen=True):
    base: Place | None
    """Everything behind it is kept; None before the feed's first answer."""
    reached: Place | None
    rows: int
    memory_bytes: int
    disk_bytes: int
    blocked_since: float | None
    """Since when the feed waits for room, by the clock's `now()`."""


class ChangeBuffer:
    """Pieces in commit order, of everything in (base, reached].

    One thread appends, any number read; whoever acknowledges frees. A transaction that alone is larger than
    the quota is not kept: what is held then begins behind it.
    """

    def __init__(self, memory_bytes: int, disk_bytes: int, new_file: NewFile, clock: Clock) -> None:
        self.changed: Final = Condition()
        self._memory_limit, self._disk_limit = memory_bytes, disk_bytes
        self.piece_bytes: Final = memory_bytes // (2 * SEGMENT_PART)
        """About the most that should be appended at once: the quota is kept to within this."""
        self._new_file = new_file
        self._clock = clock
        self._entries: dict[int, Entry] = {}
        self._first = self._next = 0  # numbers of the first piece, and of the one to come
        self._memory = self._disk = self._rows = 0
        self._base: Place | None = None
        self._reached: Place | None = None
        self._freed: Place | None = None
        self._acknowledged: Rank | None = None
        self._blocked_since: float | None = None
        self._closed = ""

    # --- the feed's side -------------------------------------------------------------------------

    def begin(self, base: Place | None) -> None:
        """Keep nothing of before; `base` is where the feed goes on, None: with its first place."""
        with self.changed:
            self._drop(len(self._entries))
            self._base = self._reached = self._freed = base
            self.changed.notify_all()

    def append(self, batch: pa.RecordBatch, span: Span) -> None:
        """Keep rows that follow those before; waits for room. Raises Closed, StoreError."""
        if not batch.num_rows:
            return
        size = batch.nbytes
        with self.changed:
            self._await_room(size, span)
            if span.dropped:
                return
            self._entries[self._next] = Entry(batch, span, size)
            self._next += 1
            self._rows += batch.num_rows
            self._memory += size
            if self._memory > self._memory_limit:
                self._spill()

    @property
    def begun(self) -> bool:
        """Whether it has a base."""
        with self.changed:
            return self._base is not None

    def reach(self, place: Place, span: Span | None = None) -> None:
        """All up to `place` was appended; `span` ends there."""
        with self.changed:
            if span is not None:
                span.end = place
            if self._base is None or (span is not None and span.dropped):
                self._base = place
            self._reached = place
            self._free()
            self.changed.notify_all()

    def _await_room(self, size: int, span: Span) -> None:
        while self._entries and not self._has_room(size) and not self._closed and not span.dropped:
            if self._entries[self._first].span.end is None:
                # There is nothing else: no acknowledgement will ever make room.
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
        """How many of the latest pieces make a segment, and their bytes, `more` included."""
        count, size = 0, more
        for number in range(self._next - 1, self._first - 1, -1):
            piece = self._entries[number]
            if piece.segment is not None or size >= self._memory_limit // SEGMENT_PART:
                break
            count, size = count + 1, size + piece.bytes
        return count, size

    def _spill(self) -> None:
        """Bring the latest pieces to disk: the oldest are asked for next."""
        count, size = self._to_spill()
        pieces = [self._entries[number] for number in range(self._next - count, self._next)]
        segment = Segment(self._new_file(), [piece.batch for piece in pieces])
        for place, piece in enumerate(pieces):
            piece.move_to(segment, place)
        self._memory -= size
        self._disk += segment.bytes

    def close(self, why: str) -> None:
        """Everybody who waits goes on, with Closed or RangeUnavailable."""
        with self.changed:
            self._closed = why
            self._drop(len(self._entries))
            self.changed.notify_all()

    # --- acknowledgements ------------------------------------------------------------------------

    def acknowledge(self, rank: Rank) -> None:
        """Nobody asks again for what is at or before `rank`, which may be still to come."""
        with self.changed:
            if self._acknowledged is None or rank > self._acknowledged:
                self._acknowledged = rank
                self._free()
                self.changed.notify_all()

    @property
    def freed(self) -> Place | None:
        """The last place at or before what was acknowledged: from there the feed can go on."""
        with self.changed:
            return self._freed

    def _free(self) -> None:
        upto = self._acknowledged
        if upto is None:
            return
        count = 0
        for number in range(self._first, self._next):
            piece = self._entries[number]
            end = piece.span.end
            if end is None or end.rank > upto:
                if piece.span.whole and (inside := piece.place_before(upto)) is not None:
                    self._freed = inside
                break
            count, self._freed = count + 1, end
        self._drop(count)
        if self._reached is not None and self._reached.rank <= upto:
            self._freed = self._reached
        if self._freed is not None and (self._base is None or self._base.rank < self._freed.rank):
            self._base = self._freed

    def _drop(self, count: int) -> None:
        for _ in range(count):
            piece = self._entries.pop(self._first)
            self._first += 1
            self._rows -= piece.rows
            if piece.segment is None:
                self._memory -= piece.bytes
            else:
                self._disk -= piece.segment.release()

    # --- readers ---------------------------------------------------------------------------------

    def wait(self, start: Rank, end: Rank, seconds: float, wanted: Callable[[], bool]) -> None:
        """Until (start, end] is here, while it is `wanted`. Raises RangeUnavailable in the end."""
        until = self._clock.now() + seconds
        with self.changed:
            while True:
                base, reached = self._base, self._reached
                if self._closed:
                    raise RangeUnavailable(self._closed)
                if base is not None and start < base.rank:
                    raise RangeUnavailable(f"what is kept begins behind {base}, and the range before that")
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
                    raise RangeUnavailable("nobody waits for the answer")
                self.changed.wait(min(left, LOOK_SECONDS))

    def _piece_at(self, start: Rank) -> int:
        """The number of the first piece with something behind `start`."""
        numbers = range(self._first, self._next)

        def is_behind(number: int) -> bool:
            end = self._entries[number].span.end
            return end is None or end.rank > start

        return self._first + bisect_left(numbers, True, key=is_behind)

    def read(self, start: Rank, end: Rank) -> Iterator[pa.RecordBatch]:
        """Yield the rows of (start, end], which `wait` found here.

        Raises RangeUnavailable if they are freed meanwhile.
        """
        with self.changed:
            first = number = self._piece_at(start)
        while True:
            with self.changed:
                if number == self._next:
                    return
                piece = self._entries.get(number)
                if piece is None:
                    raise RangeUnavailable(self._closed or "what is being read was acknowledged meanwhile")
                place, batch = piece.span.end, piece.load()
            if place is None or (place.rank > end and not piece.span.whole):
                return
            inside = number > first and place.rank <= end
            yield batch if inside or not piece.span.whole else piece.cut(batch, start, end)
            if place.rank >= end and piece.span.whole:
                return
            number += 1

    def statistics(self) -> BufferStatistics:
        with self.changed:
            return BufferStatistics(
                self._base, self._reached, self._rows, self._memory, self._disk, self._blocked_since
            )
