"""Rows of the benchmark of lakes, as items of a feed and as Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

import pyarrow as pa

from ..events import Chunk, Column, CreateTable, Ddl, RowChange, Rows, Table, Transaction
from .logged_rows import inserts
from .sink import row as logged_row

TABLE: Final = Table(
    "bench",
    "orders",
    (
        Column("id", "bigint", nullable=False),
        Column("customer", "int", nullable=False),
        Column("note", "varchar", length=40, charset="utf8mb4"),
        Column("price", "double"),
    ),
    key=(0,),
)
PART: Final = 250_000
"""Number of rows of a file."""
_OF_TRANSACTION: Final = 1_000
"""Number of rows of a transaction of the history."""

_ticks: Final = count(1)


def created(table: Table) -> Ddl:
    return Ddl(next(_ticks), 0, "", table.schema, table.name, "", (CreateTable(table),))


def logged(rows: int) -> list[Transaction]:
    """Return inserts as a MariaDB logs them."""
    parts = [range(start, min(start + _OF_TRANSACTION, rows)) for start in range(0, rows, _OF_TRANSACTION)]
    return [
        Transaction(ts, 0, "", Rows([inserts([logged_row(key, "n" * 40) for key in keys], ts)]), str(ts))
        for ts, keys in zip(_ticks, parts, strict=False)
    ]


def of_files(transactions: Sequence[Transaction]) -> Iterator[Sequence[Transaction]]:
    """Yield the logged transactions of each file."""
    size = PART // _OF_TRANSACTION
    for start in range(0, len(transactions), size):
        yield transactions[start : start + size]


def loads(rows: int, chunk: Chunk) -> Iterator[Transaction]:
    for own in parts(rows):
        yield new_rows(TABLE, own, chunk)


def new_rows(table: Table, keys: range, chunk: Chunk | None = None) -> Transaction:
    ts = next(_ticks)
    changes = [RowChange(ts, 0, table, "insert", None, row(key, 0)) for key in keys]
    return Transaction(ts, 0, "", changes, str(ts), True, chunk)


def updates(rows: int, keys: int, version: int) -> Transaction:
    ts = next(_ticks)
    changes = [
        RowChange(ts, 0, TABLE, "update", row(key, version), row(key, version + 1))
        for key in scattered(rows, keys)
    ]
    return Transaction(ts, 0, "", changes, str(ts))


def parts(rows: int) -> Iterator[range]:
    """Yield the keys of each file."""
    for start in range(0, rows, PART):
        yield range(start, min(start + PART, rows))


def scattered(rows: int, keys: int) -> list[int]:
    return [rows * number // keys for number in range(min(keys, rows))]


def row(key: int, version: int) -> tuple[object, ...]:
    return key, key % 9_973, f"note {version} of order {key}", key / 8


def as_arrow(rows: Sequence[tuple[object, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    kinds = (pa.int64(), pa.int32(), pa.string(), pa.float64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, [column.name for column in TABLE.columns])
