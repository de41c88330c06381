"""A finished backfill as items, as an ordinary snapshot would deliver it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, repeat

from msgspec.structs import replace

from ...codec.mysql.text_rows import TextRowsDecoder
from ...codec.tidb.key import record_key
from ...codec.tidb.table_info import decode_table_info
from ...events import (
    PUT,
    Checkpoint,
    Chunk,
    CreateTable,
    Ddl,
    Item,
    KvChange,
    RowChange,
    TableProgress,
    Transaction,
    Ts,
)
from ...mounter import RowReader, TableAt
from .chunk_file import ChunkFiles
from .plan import ChunkPlan, Plan, TablePlan
from .records import Manifest

_Read = Callable[[list[KvChange], Ts], list[RowChange]]


class Replay:
    """The tables' definitions and rows, in the order of their timestamps.

    Each piece of a table with a key of integers is a transaction; other tables are one transaction each.
    """

    def __init__(self, manifest: Manifest, files: ChunkFiles) -> None:
        self._plan: Plan = manifest.plan
        self._position = manifest.position
        self._files = files

    def items(self, at: Checkpoint | None) -> Iterator[Item]:
        """Yield the items that a sink at this checkpoint lacks, and perhaps rows that it has.

        All are above the checkpoint's ts, even if that is of another backfill of the same position. Raises
        StoreError.
        """
        have, ts = ({}, 0) if at is None else (at.loading or {}, at.ts)
        numbers = count(max(self._plan.base, ts) + 1)
        for table in self._plan.tables:
            yield from self._table(table, have.get(table.table.full_name), numbers)
        yield self._transaction(self._plan.end_ts, [], Chunk(""))

    def creation(self, table: TablePlan, ts: Ts | None = None) -> Ddl:
        ts = self._plan.first_ts(table.number) if ts is None else ts
        made = (CreateTable(table.table),)
        schema, name = table.table.schema, table.table.name
        return Ddl(ts, ts, self._plan.source, schema, name, "", made, position=self._position)

    def chunk(
        self, table: TablePlan, chunk: ChunkPlan, numbers: Iterator[Ts] | None = None
    ) -> Iterator[Transaction]:
        """Yield the pieces of one chunk, each as a transaction.

        Raises StoreError.
        """
        read, name = _reader(table), table.table.full_name
        numbers = numbers or count(self._plan.first_ts(chunk.number))
        for piece in self._files.pieces(self._plan, table, chunk):
            ts = next(numbers)
            rows = read(piece, ts)
            if rows:
                last = _key(rows[-1]) if table.by_key else ()
                yield self._transaction(ts, rows, Chunk(name, TableProgress(last)))

    def _table(self, table: TablePlan, have: TableProgress | None, numbers: Iterator[Ts]) -> Iterator[Item]:
        if have is not None and have.last is None:
            return
        if have is None:
            yield self.creation(table, next(numbers))
        # Without an integer key a load can't resume inside a table.
        ts = numbers if table.by_key else repeat(next(numbers))
        for chunk in table.chunks:
            if have is None or not _is_within(table, chunk, have):
                for piece in self.chunk(table, chunk, ts):
                    yield piece if table.by_key else replace(piece, position="", last=False)
        yield self._transaction(next(ts), [], Chunk(table.table.full_name, TableProgress()))

    def _transaction(self, ts: Ts, rows: list[RowChange], chunk: Chunk) -> Transaction:
        return Transaction(ts, ts, self._plan.source, rows, self._position, chunk=chunk)


def _is_within(table: TablePlan, chunk: ChunkPlan, have: TableProgress) -> bool:
    """True if all keys of the chunk are already loaded."""
    if not have.last:
        return False
    if table.info:
        return chunk.end <= record_key(decode_table_info(table.info).id, int(have.last[0]))
    return chunk.up_to is not None and chunk.up_to < int(have.last[0])


def _key(row: RowChange) -> tuple[int, ...]:
    assert row.after is not None
    return tuple([row.after[index] for index in row.table.key])


def _reader(table: TablePlan) -> _Read:
    if not table.info:
        decode = TextRowsDecoder(table.table).decode
        return lambda piece, ts: [row for raw in piece for row in decode(raw.value, ts, ts)]
    reader = RowReader(TableAt(table.table.schema, decode_table_info(table.info), 0))

    def read(piece: list[KvChange], ts: Ts) -> list[RowChange]:
        stamped = [KvChange(ts, ts, PUT, raw.key, raw.value) for raw in piece]
        return [row for row in reader.read(stamped) if row is not None]

    return read
