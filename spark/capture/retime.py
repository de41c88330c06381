"""Conversion of a capture's timestamps to the query's clock."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from ...codec.ddl_bytes import decode_ddl, encode_ddl
from ...errors import Retryable
from ...events import LOGICAL_BITS, MAX_LOGICAL, Ts, physical_ms
from ..offsets.offset import is_exact

CLOCK_AHEAD: Final = "its clock is ahead of the query's: a transaction's ts is above the range's end"
_COMMIT_TS: Final = 0
_START_TS: Final = 1
_OP: Final = 5
_CHANGE: Final = 10


class Retime:
    """Gives each transaction of a binlog the ts that it has for a reader that starts with `last`.

    That ts is max(time, last + 1), where the time has whole seconds. A capture's ts of a whole second is
    the transaction's time: if it is above the query's clock, both have the same ts. If it is at or below the
    query's clock, so is the time, and the query's ts is its clock + 1. Any other ts follows the capture's
    clock: the time is unknown where that was raised while the source was idle, and, above the query's clock,
    where it was ahead of it at the range's start.
    """

    def __init__(self, last: Ts, end: Ts, before: Ts = 0) -> None:
        """`last` and `before` are the query's and the capture's ts at the range's start, `end` is the
        query's at its end."""
        self._end = end
        self._is_behind = before > last or not is_exact(last)
        self._theirs = -1
        """Capture's ts of the latest transaction."""
        self._ours = last
        """Query's ts of the latest transaction."""

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with the query's ts. Raises Retryable if one is unknown or after the range."""
        if not batch.num_rows:
            return batch
        commits = batch.column(_COMMIT_TS)
        first, last = commits[0].as_py(), commits[-1].as_py()
        if self._is_behind:
            if first > self._ours and first & MAX_LOGICAL:
                raise Retryable("its clock is ahead of the query's at the range's start")
            self._is_behind = False
        is_ours = first > self._ours or first == self._theirs == self._ours
        if is_ours and _are_whole_seconds(commits):
            self._theirs = self._ours = last
        else:
            batch = self._retimed(batch)
        if self._ours > self._end:
            raise Retryable(CLOCK_AHEAD)
        return batch

    def _retimed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        before = batch.column(_COMMIT_TS).to_pylist()
        after = [self._of(ts) for ts in before]
        starts = batch.column(_START_TS).to_pylist()
        triples = zip(starts, before, after, strict=True)
        starts = [new if start == old else start for start, old, new in triples]
        columns = batch.columns
        columns[_CHANGE] = _ddls_moved(batch, after, starts)
        columns[_COMMIT_TS] = pa.array(after, pa.int64())
        columns[_START_TS] = pa.array(starts, pa.int64())
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _of(self, ts: Ts) -> Ts:
        if ts != self._theirs:
            if ts > self._ours and physical_ms(ts) % 1000:
                raise Retryable("its clock was raised above the query's while the source was idle")
            self._theirs, self._ours = ts, max(ts, self._ours + 1)
        return self._ours


def _are_whole_seconds(commits: pa.Array) -> bool:
    milliseconds = pc.shift_right(commits, LOGICAL_BITS)
    seconds = pc.divide(milliseconds, 1000)
    return bool(pc.all(pc.equal(pc.multiply(seconds, 1000), milliseconds)).as_py())


def _ddls_moved(batch: pa.RecordBatch, commits: list[Ts], starts: list[Ts]) -> pa.Array:
    """Return the column `change`, with new ts in schema changes, which contain theirs."""
    changes, ops = batch.column(_CHANGE), batch.column(_OP).to_pylist()
    if "ddl" not in ops:
        return changes
    moved = [
        encode_ddl(replace(decode_ddl(change), commit_ts=commit, start_ts=start)) if op == "ddl" else change
        for change, op, commit, start in zip(changes.to_pylist(), ops, commits, starts, strict=True)
    ]
    return pa.array(moved, pa.binary())
