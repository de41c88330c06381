"""A reader's progress, from which another stream of the same changes can continue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import Retryable
from ...events import Ts
from ..offsets.offset import Offset

_COMMIT_TS: Final = 0
_SEQUENCE: Final = 2
_POSITION: Final = 8

Stamp: TypeAlias = tuple[Ts, Ts, int]


class OutOfOrder(Retryable):
    """A stream isn't the one requested, or doesn't continue where the previous one ended."""


class WholeTransactions:
    """`at` is the end of the last commit ts that was yielded whole; `beyond` rows were yielded after it.

    A commit ts is known to be whole only when a later one begins: two transactions of TiKV may share it.
    """

    def __init__(self, start: Offset) -> None:
        self.at = start
        self.rows = 0
        """Number of rows yielded."""
        self.beyond = 0
        self._ended: tuple[Offset, int] | None = None  # end of the last transaction, and rows since
        self._last_ts: Ts = start.ts
        self._last: Stamp | None = None  # stamp of the last row yielded

    def continued(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a stream that starts at `at`, without those that were yielded already.

        Raises OutOfOrder before any wrong row is yielded.
        """
        skip, last = self.beyond, self._last
        for batch in batches:
            if skip:
                skipped = min(skip, batch.num_rows)
                skip -= skipped
                if not skip and last is not None and _stamp(batch, skipped - 1) != last:
                    raise OutOfOrder("its changes have other numbers than those that came before")
                batch = batch.slice(skipped)
            if batch.num_rows:
                self._check(batch)
                self._take(batch)
                yield batch
        if skip:
            raise OutOfOrder("it has fewer changes than came before")

    def _check(self, batch: pa.RecordBatch) -> None:
        """Raise OutOfOrder unless the commit ts ascend and are above the start."""
        commits = batch.column(_COMMIT_TS)
        first = commits[0].as_py()
        if first < self._last_ts or first <= self.at.ts or not _ascends(commits):
            raise OutOfOrder("its changes are not in commit order, or are from before the range")
        self._last_ts = commits[-1].as_py()

    def _take(self, batch: pa.RecordBatch) -> None:
        commits, positions = batch.column(_COMMIT_TS), batch.column(_POSITION)
        rows = batch.num_rows
        self.rows += rows
        self.beyond += rows
        if self._ended is not None:
            self._ended = self._ended[0], self._ended[1] + rows
            if commits[0].as_py() > self._ended[0].ts:
                self.at, self.beyond = self._ended
        last_ts = commits[-1].as_py()
        is_end = positions.is_valid()
        whole = pc.indices_nonzero(pc.and_(is_end, pc.less(commits, last_ts)))
        if len(whole):
            row = whole[-1].as_py()
            self.at, self.beyond = self._offset(batch, row), rows - 1 - row
        ends = pc.indices_nonzero(is_end)
        if len(ends):
            row = ends[-1].as_py()
            self._ended = self._offset(batch, row), rows - 1 - row
        self._last = _stamp(batch, rows - 1)

    def _offset(self, batch: pa.RecordBatch, row: int) -> Offset:
        ts, position = batch.column(_COMMIT_TS)[row].as_py(), batch.column(_POSITION)[row].as_py()
        return Offset(ts, position, self.at.source)


def _ascends(commits: pa.Array) -> bool:
    if len(commits) < 2:
        return True
    return bool(pc.all(pc.less_equal(commits.slice(0, len(commits) - 1), commits.slice(1))).as_py())


def _stamp(batch: pa.RecordBatch, row: int) -> Stamp:
    commit_ts, start_ts, sequence = (batch.column(number)[row].as_py() for number in range(3))
    return commit_ts, start_ts, sequence
