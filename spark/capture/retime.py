"""Timestamps by the clock of the one who asks."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from ...errors import Retryable
from ...events import Ts
from ..change import decode_ddl, encode_ddl

_COMMIT_TS: Final = 0
_START_TS: Final = 1
_OP: Final = 5
_CHANGE: Final = 10


class Retime:
    """Gives each transaction the ts that it has for a reading that begins with `last`.

    A binlog's ts is max(time, last + 1), so two readings that began at different places may differ until
    time has passed them both; and max(max(time, mine + 1), last + 1) is max(time, last + 1) wherever
    `last` >= mine. TiKV's timestamps are its own, and above `last` anyhow: they pass untouched.
    """

    def __init__(self, last: Ts, end: Ts) -> None:
        self._last = last
        self._end = end
        self._theirs = -1
        """What the latest transaction had, ..."""
        self._ours = last
        """... and what it was given."""

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Raises Retryable if a ts would be above the range's end."""
        if not batch.num_rows:
            return batch
        commits = batch.column(_COMMIT_TS)
        first, last = commits[0].as_py(), commits[-1].as_py()
        if first > self._ours or first == self._theirs == self._ours:
            self._theirs = self._ours = last
        else:
            batch = self._retimed(batch)
        if self._ours > self._end:
            raise Retryable("its clock is ahead of the query's: a transaction's ts is above the range's end")
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
            self._theirs, self._ours = ts, max(ts, self._ours + 1)
        return self._ours


def _ddls_moved(batch: pa.RecordBatch, commits: list[Ts], starts: list[Ts]) -> pa.Array:
    """The exact changes; those of schema changes have the ts inside."""
    changes, ops = batch.column(_CHANGE), batch.column(_OP).to_pylist()
    if "ddl" not in ops:
        return changes
    moved = [
        encode_ddl(replace(decode_ddl(change), commit_ts=commit, start_ts=start)) if op == "ddl" else change
        for change, op, commit, start in zip(changes.to_pylist(), ops, commits, starts, strict=True)
    ]
    return pa.array(moved, pa.binary())
