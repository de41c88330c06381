"""The incremental scan: a region's locks and its versions above a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..events import Ts
from .percolator import COMMITTED, INITIALIZED, PREWRITE, Row
from .shard import DELETE, LOCK, PUT, Lock, Shard, Write


class Snapshot:
    """A snapshot of a shard. Copies the tables, not the rows; older versions are only ever appended to."""

    def __init__(self, shard: Shard) -> None:
        self.keys = shard.sorted_keys()[:]
        self._latest = shard.latest.copy()
        self._older = shard.older.copy()
        self._locks = shard.locks.copy()

    def rows(self, checkpoint_ts: Ts, wanted: Callable[[bytes], bool] | None = None) -> Iterator[Row]:
        """Yield by key its lock as PREWRITE, then its versions above the checkpoint, newest first.

        Locks are included for any start ts, since they may commit above it. The last row is INITIALIZED.
        """
        for key in self.keys:
            if wanted is not None and not wanted(key):
                continue
            versions = self._versions(key)
            lock = self._locks.get(key)
            if lock is not None and lock.op in (PUT, DELETE):
                yield _prewrite(key, lock, versions)
            yield from _committed(key, versions, checkpoint_ts)
        yield Row(INITIALIZED, b"", 0)

    def _versions(self, key: bytes) -> list[Write]:
        latest = self._latest.get(key)
        if latest is None:
            return []
        older = self._older.get(key)
        if older is None:
            return [latest] if latest.op != LOCK else []
        seen = [write for write in reversed(older) if write.commit_ts < latest.commit_ts]
        return [write for write in (latest, *seen) if write.op != LOCK]


def _prewrite(key: bytes, lock: Lock, versions: list[Write]) -> Row:
    old = versions[0].value if versions else b""
    return Row(PREWRITE, key, lock.start_ts, 0, lock.op, lock.value, old, lock.generation)


def _committed(key: bytes, versions: list[Write], checkpoint_ts: Ts) -> Iterator[Row]:
    for at, write in enumerate(versions):
        if write.commit_ts <= checkpoint_ts:
            return
        old = versions[at + 1].value if at + 1 < len(versions) else b""
        yield Row(COMMITTED, key, write.start_ts, write.commit_ts, write.op, write.value, old)


def chunks(rows: Iterator[Row], max_rows: int, max_bytes: int) -> Iterator[list[Row]]:
    """Yield rows in lists of at most `max_rows`, and at most `max_bytes` unless a single row is larger."""
    chunk: list[Row] = []
    size = 0
    for row in rows:
        weight = len(row.key) + len(row.value) + len(row.old_value)
        if chunk and (len(chunk) >= max_rows or size + weight > max_bytes):
            yield chunk
            chunk, size = [], 0
        chunk.append(row)
        size += weight
    yield chunk
