"""MODIFY COLUMN that rewrites the rows: a second column gets the converted values, then replaces the first.

Meanwhile it is in the table under a name of TiDB's own, and transactions write it too. Once they all do, the
other rows are written again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final, Protocol

from msgspec.structs import replace

from ...codec.tidb.job import DELETE_ONLY, DELETE_REORGANIZATION, PUBLIC, WRITE_ONLY, WRITE_REORGANIZATION
from ...codec.tidb.key import decode_record_key
from ...codec.tidb.table_info import ColumnInfo, TableInfo
from ...events import Row, Ts
from .ddl import Mutation, Step, TableChange, table_mutation
from .schema import SqlTable

_BATCH_ROWS: Final = 16


class Storage(Protocol):
    def tso(self) -> Ts: ...

    def pairs(self, info: TableInfo, ts: Ts) -> list[tuple[bytes, bytes]]: ...

    def write(self, mutations: list[Mutation], *, start_ts: Ts = 0) -> Ts: ...


def add_steps(change: TableChange, table: SqlTable, old: ColumnInfo, new: ColumnInfo) -> None:
    """Add the steps before the last one to a change that replaces a column by a rewritten one."""
    if table.has_checksums:
        raise ValueError(f"{table.info.name}: the emulator doesn't rewrite rows with checksums")
    for state in (DELETE_ONLY, WRITE_ONLY, WRITE_REORGANIZATION):
        place = len(table.info.columns)
        changing = replace(new, name=f"_Col$_{old.name}_0", offset=place, state=state)
        info = replace(table.info, columns=(*table.info.columns, changing), max_column_id=new.id)
        change.steps.append(Step(state, [table_mutation(table.database.id, info)], info=info))


def removal(table: SqlTable, old: ColumnInfo, info: TableInfo, before: Callable[[], object]) -> Step:
    """Return the step that takes the old column away: rows no longer have it."""
    place = len(info.columns)
    left = replace(old, name=f"_Tombstone$_{old.name}", offset=place, state=DELETE_ONLY)
    info = replace(info, columns=(*info.columns, left))
    return Step(PUBLIC, [table_mutation(table.database.id, info)], info=info, before=before)


def key_removal(table: SqlTable) -> list[Step]:
    """Return the steps before the last one that drops a primary key, which isn't clustered."""
    steps = []
    for state in (WRITE_ONLY, DELETE_ONLY, DELETE_REORGANIZATION):
        indexes = tuple(
            replace(index, state=state) if index.primary else index for index in table.info.indexes
        )
        mutation = table_mutation(table.database.id, replace(table.info, indexes=indexes))
        steps.append(Step(state, [mutation]))
    return steps


def rewrite(storage: Storage, table: SqlTable) -> None:
    """Write the rows that lack the converted value."""
    pairs = storage.pairs(table.info, storage.tso())
    rows = table.decoder.decode(pairs)
    mutations = [
        ("put", key, value)
        for (key, before), row in zip(pairs, rows, strict=True)
        if (value := _value(table, key, row)) != before
    ]
    rest = iter(mutations)
    while batch := list(islice(rest, _BATCH_ROWS)):
        storage.write(batch)


def _value(table: SqlTable, key: bytes, row: Row) -> bytes:
    physical_id, handle = decode_record_key(key)
    return table.encoder.encode(table.written(row), handle, physical_id)[1]
