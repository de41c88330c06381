"""Tables, items and in-memory stores for tests of sinks."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ..events import (
    Batch,
    Checkpoint,
    Chunk,
    Column,
    CreateTable,
    Ddl,
    Item,
    Row,
    RowChange,
    Table,
    TableProgress,
    Transaction,
)

ORDERS = Table(
    "shop",
    "orders",
    (
        Column("id", "int", nullable=False),
        Column("note", "varchar", length=40, charset="utf8mb4", collation="utf8mb4_general_ci"),
    ),
    key=(0,),
    charset="utf8mb4",
    collation="utf8mb4_general_ci",
)
PAIRS = Table(
    "shop",
    "pairs",
    (
        Column("a", "int", nullable=False),
        Column("b", "varchar", length=20, charset="utf8mb4", collation="utf8mb4_bin", nullable=False),
        Column("n", "bigint"),
    ),
    key=(0, 1),
)
LOOSE = Table(
    "shop",
    "loose",
    (
        Column("n", "int"),
        Column("word", "varchar", length=20, charset="utf8mb4", collation="utf8mb4_general_ci"),
    ),
)


class MemoryStore:
    """A CheckpointStore that survives its sink."""

    def __init__(self) -> None:
        self.saved: tuple[Checkpoint, int] | None = None

    def load(self) -> tuple[Checkpoint, int] | None:
        return self.saved

    def save(self, checkpoint: Checkpoint, length: int = 0) -> None:
        self.saved = checkpoint, length


def insert(table: Table, *row: object) -> RowChange:
    return RowChange(0, 0, table, "insert", None, row)


def delete(table: Table, *row: object) -> RowChange:
    return RowChange(0, 0, table, "delete", row, None)


def update(table: Table, before: Row, after: Row) -> RowChange:
    return RowChange(0, 0, table, "update", before, after)


def transaction(ts: int, *rows: RowChange, last: bool = True, chunk: Chunk | None = None) -> Transaction:
    return Transaction(ts, 0, "src", list(rows), f"log:{ts}" if last else "", last, chunk)


def chunk(ts: int, table: Table, last: tuple[int, ...] | None, *rows: RowChange) -> Transaction:
    return transaction(ts, *rows, chunk=Chunk(table.full_name, TableProgress(last)))


def create(ts: int, table: Table) -> Ddl:
    return Ddl(ts, 0, "src", table.schema, table.name, "", (CreateTable(table),), f"log:{ts}")


def alter(ts: int, table: Table, query: str, *actions: Any, epoch_seconds: float = 0.0) -> Ddl:
    position = f"log:{ts}"
    return Ddl(ts, 0, "src", table.schema, table.name, query, actions, position, epoch_seconds=epoch_seconds)


def at(ts: int, **changes: Any) -> Checkpoint:
    return replace(Checkpoint(ts, f"log:{ts}", source="src"), **changes)


def batch(*items: Item) -> Batch:
    """The items of one batch, with the checkpoint of a feed that isn't loading."""
    return Batch(list(items), at(items[-1].commit_ts) if items[-1].last else None)
