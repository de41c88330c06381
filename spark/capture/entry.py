"""A buffered batch, in memory or on disk, and the place at which it ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

import pyarrow as pa

from ...errors import StoreError
from ...events import Ts
from ...sources.source import Rank
from .place import LogPoint, RankOf
from .segment import Segment


class SharedRows:
    """Rows kept or freed together: the transactions of one entry, or the entries of one transaction."""

    __slots__ = ("dropped", "end", "rank_of", "whole")

    def __init__(self, rank_of: RankOf, *, whole: bool) -> None:
        self.rank_of = rank_of
        self.whole = whole
        """True if the span is a single entry, which may be cut between two of its transactions."""
        self.end: LogPoint | None = None
        """Place of the span's end; None while the span is open."""
        self.dropped = False
        """True if the span was dropped because it alone exceeds the quota."""


class CaptureEntry:
    """One batch of the buffer. All methods but `cut` need the buffer's lock."""

    __slots__ = ("_batch", "_number", "bytes", "rows", "segment", "span")

    def __init__(self, batch: pa.RecordBatch, span: SharedRows, size: int) -> None:
        self.span = span
        self.bytes = size
        self.rows = batch.num_rows
        self.segment: Segment | None = None
        self._batch: pa.RecordBatch | None = batch
        self._number = 0

    @property
    def batch(self) -> pa.RecordBatch:
        assert self._batch is not None
        return self._batch

    def move_to(self, segment: Segment, number: int) -> None:
        self.segment, self._number, self._batch = segment, number, None

    def load(self) -> pa.RecordBatch:
        """Return the batch. Raises StoreError if it can't be read back whole."""
        if self.segment is None:
            return self.batch
        batch = self.segment.read(self._number)
        if batch.num_rows != self.rows:
            raise StoreError(f"a segment holds {batch.num_rows} rows where {self.rows} were written")
        return batch

    def place_before(self, rank: Rank) -> LogPoint | None:
        """Return the last place inside the entry that is at or before `rank`."""
        batch = self.load()
        ends = _ends(batch)
        count = _count(batch, ends, rank, self.span.rank_of)
        if not count:
            return None
        row = ends[count - 1]
        position = batch.column("position")[row].as_py()
        return LogPoint(self.span.rank_of(position), batch.column("commit_ts")[row].as_py(), position)

    def cut(self, batch: pa.RecordBatch, start: Rank, end: Rank) -> pa.RecordBatch:
        """Return the transactions in (start, end] of `batch`, which `load` has returned."""
        ends = _ends(batch)
        first = _count(batch, ends, start, self.span.rank_of)
        last = _count(batch, ends, end, self.span.rank_of)
        if first == 0 and last == len(ends):
            return batch
        begin = ends[first - 1] + 1 if first else 0
        stop = ends[last - 1] + 1 if last else 0
        return batch.slice(begin, max(0, stop - begin))


def _ends(batch: pa.RecordBatch) -> list[int]:
    """Return the numbers of the rows that end a transaction: they have a position."""
    valid: list[bool] = batch.column("position").is_valid().to_pylist()
    return [row for row, is_valid in enumerate(valid) if is_valid]


def _count(batch: pa.RecordBatch, ends: list[int], rank: Rank, rank_of: RankOf) -> int:
    """Return the number of transactions that end at or before `rank`."""
    positions = batch.column("position")
    key: Callable[[int], Rank] = lambda row: rank_of(positions[row].as_py())  # noqa: E731
    return bisect_right(ends, rank, key=key)


def cut_small(batch: pa.RecordBatch, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield slices of whole transactions, of about `most_bytes` or a single transaction; none is empty."""
    if not batch.num_rows:
        return
    first, rows = 0, max(1, batch.num_rows * most_bytes // batch.nbytes)
    ends = [batch.num_rows - 1]
    if batch.num_rows > rows:
        commits = batch.column("commit_ts").to_pylist()
        # There is no place between two transactions of the same commit ts.
        ends = [row for row in _ends(batch) if row + 1 == len(commits) or commits[row] != commits[row + 1]]
    for end, after in zip(ends, [*ends[1:], None], strict=True):
        if after is None or after - first >= rows:
            yield batch.slice(first, end + 1 - first)
            first = end + 1


def last_end(batch: pa.RecordBatch) -> tuple[Ts, str]:
    """Return the commit ts and the position of the batch's last transaction."""
    row = batch.num_rows - 1
    return batch.column("commit_ts")[row].as_py(), batch.column("position")[row].as_py()
