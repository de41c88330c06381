"""Facts about a generation of a store, as rows for Spark: blocks by table and minute, files, busy keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from ...codec.tidb.key import decode_record_key
from ...errors import StoreError
from ...events import DELETE, Block, KvChange, Ts, physical_ms
from ...sorter.db.key import is_mixed, table_id_of
from ...sorter.db.layout import read_block
from .binlog_tables import UNKNOWN, BinlogTables, TableRows
from .store_files import SortedFile, WindowFiles, WindowGone

FACTS: Final = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("store", pa.string(), nullable=False),
        pa.field("window", pa.string(), nullable=False),
        pa.field("level", pa.int32(), nullable=False),
        pa.field("table", pa.int64()),
        pa.field("minute", pa.int64()),
        pa.field("part", pa.int64(), nullable=False),
        pa.field("changes", pa.int64(), nullable=False),
        pa.field("rows", pa.int64()),
        pa.field("deletes", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("dead_bytes", pa.int64(), nullable=False),
        pa.field("free_bytes", pa.int64(), nullable=False),
        pa.field("whole_bytes", pa.int64(), nullable=False),
        pa.field("newest", pa.int64()),
        pa.field("overlap", pa.int64()),
        pa.field("key", pa.binary()),
    ]
)
"""By `kind`:

`block`: the changes of one table and minute (since 1970) in one value of the store, the `part`-th. `rows` are
the rows in them, null if unknown, `deletes` those that are deleted. `bytes` are their share of the value, of
`whole_bytes` in all; `dead_bytes` those at or below the acknowledged ts; `free_bytes` all of them if the
value has no others.
`file`: an SST; `changes` are its entries, `deletes` its tombstones, `overlap` the files of the window that it
shares keys with.
`key`: a row's key that came often, and how often, at least, in `changes`.
"""

_TIDB_KEYS: Final = (b"t", b"m")
"""Prefixes of TiDB's row keys and schema keys."""

BATCH_ROWS: Final = 5_000
MOST_KEYS: Final = 50_000
"""Keys counted at a time: a count is too low by at most the number of changes divided by this."""
TOLD_KEYS: Final = 100
"""Number of busy keys reported per table and generation."""


def window_facts(
    store: Path, window: str, acknowledged: Ts, binlog: BinlogTables | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the facts of a generation; none if it was dropped meanwhile.

    `binlog` tells the tables and rows of a binlog's changes; without it they are unknown.

    Raises StoreError for a damaged block.
    """
    try:
        files = WindowFiles(store, window)
    except WindowGone:
        return
    try:
        head = {"store": store.name, "window": window}
        rows = [head | row for row in _file_rows(files.files)]
        keys = BusyKeys()
        for part, (key, value) in enumerate(files.pairs()):
            changes = _read(value, store, window)
            level = files.level_of(key)
            rows += [
                head | row for row in _block_rows(part, key, value, level, changes, acknowledged, binlog)
            ]
            keys.add(key, changes)
            if len(rows) >= BATCH_ROWS:
                yield pa.RecordBatch.from_pylist(rows, FACTS)
                rows = []
        rows += [head | row for row in keys.rows()]
        yield pa.RecordBatch.from_pylist(rows, FACTS)
    finally:
        files.close()


def _read(value: bytes, store: Path, window: str) -> Block:
    try:
        return read_block(value)
    except StoreError as error:
        raise StoreError(f"{store} ({window}) can't be read: {error}") from error


def table_of(key: bytes, change: KvChange) -> int:
    """Return the table id from the store's key, or from the row's key in a block of several tables. UNKNOWN
    for events of a binlog, whose keys are numbers."""
    if not is_mixed(key):
        return table_id_of(key) if change.key[:1] in _TIDB_KEYS else UNKNOWN
    try:
        return decode_record_key(change.key)[0]
    except (ValueError, IndexError):
        return UNKNOWN


def _file_rows(files: list[SortedFile]) -> Iterator[dict[str, object]]:
    for part, file in enumerate(files):
        yield {
            "kind": "file", "level": file.level, "part": part, "changes": file.entries,
            "deletes": file.tombstones, "bytes": file.size, "dead_bytes": 0, "free_bytes": 0,
            "whole_bytes": file.size, "overlap": sum(file.meets(other) for other in files) - 1,
        }  # fmt: skip


def _block_rows(
    part: int,
    key: bytes,
    value: bytes,
    level: int,
    changes: Block,
    acknowledged: Ts,
    binlog: BinlogTables | None,
) -> Iterator[dict[str, object]]:
    size = len(key) + len(value)
    sums: dict[tuple[int, int], _Sums] = {}
    weight = 0
    for change in changes:
        its = _rows_of(key, change, binlog)
        at = its.table, physical_ms(change.commit_ts) // 60_000
        total = sums.get(at)
        if total is None:
            total = sums[at] = _Sums()
        total.add(change, its, acknowledged)
        weight += _weight(change)
    is_free = all(change.commit_ts <= acknowledged for change in changes)
    for (table, minute), total in sums.items():
        share = size * total.weight // weight
        yield {
            "kind": "block", "level": level, "table": table, "minute": minute, "part": part,
            "changes": total.changes, "rows": None if total.is_unknown else total.rows,
            "deletes": total.deletes, "bytes": share, "dead_bytes": size * total.dead // weight,
            "free_bytes": share * is_free, "whole_bytes": size, "newest": total.newest,
        }  # fmt: skip


class _Sums:
    """Sums over the changes of one table and minute in a block."""

    def __init__(self) -> None:
        self.changes = self.rows = self.deletes = self.weight = self.dead = self.newest = 0
        self.is_unknown = False

    def add(self, change: KvChange, its: TableRows, acknowledged: Ts) -> None:
        weight = _weight(change)
        self.changes += 1
        self.rows += its.rows or 0
        self.is_unknown |= its.rows is None
        self.deletes += its.deletes
        self.weight += weight
        self.dead += weight * (change.commit_ts <= acknowledged)
        self.newest = max(self.newest, change.commit_ts)


def _weight(change: KvChange) -> int:
    return len(change.key) + len(change.value) + len(change.old_value) + 24


def _rows_of(key: bytes, change: KvChange, binlog: BinlogTables | None) -> TableRows:
    if change.key[:1] in _TIDB_KEYS:
        return TableRows(table_of(key, change), 1, int(change.op == DELETE))
    return TableRows(UNKNOWN, None) if binlog is None else binlog.rows_of(change)


class BusyKeys:
    """Counts keys in bounded memory, after Misra and Gries (1982): beyond it, all counts go down by one."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._most = most
        self._counts: Counter[tuple[int, bytes]] = Counter()

    def add(self, key: bytes, changes: Block) -> None:
        keys = ((table_of(key, change), change.key) for change in changes)
        self._counts.update(one for one in keys if one[0] != UNKNOWN)
        while len(self._counts) > self._most:
            self._counts = Counter({key: n - 1 for key, n in self._counts.items() if n > 1})

    def rows(self) -> Iterator[dict[str, object]]:
        told: Counter[int] = Counter()
        for (table, key), count in self._counts.most_common():
            if count < 2 or told[table] >= TOLD_KEYS:
                continue
            told[table] += 1
            yield {
                "kind": "key", "level": 0, "table": table, "part": 0, "changes": count, "deletes": 0,
                "bytes": 0, "dead_bytes": 0, "free_bytes": 0, "whole_bytes": 0, "key": key,
            }  # fmt: skip
