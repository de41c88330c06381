"""A finished backfill as items, as an ordinary snapshot would deliver it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, repeat

from msgspec.structs import replace

from ...codec.mysql.result_rows import ResultRowsDecoder
from ...codec.mysql.run import ResultRun
from ...events import (
    Block,
    Checkpoint,
    Chunk,
    CreateTable,
    Ddl,
    Item,
    OrderedKey,
    RowChange,
    Rows,
    Run,
    TableProgress,
    Transaction,
    Ts,
)
from ...snapshot.overlay import ordered_keys
from .chunk_file import ChunkFiles
from .plan import BackfillPlan, ChunkPlan, TablePlan
from .records import Manifest

_Read = Callable[[Block, Ts], tuple[Run, Callable[[], RowChange]]]
"""Maps a piece to its rows, as yet undecoded, and to a function that decodes the last one."""


class Replay:
    """The tables' definitions and rows, in the order of their timestamps.

    Each piece of a table that is read by key is a transaction; other tables are one transaction each.
    """

    def __init__(self, manifest: Manifest, files: ChunkFiles) -> None:
        self._plan: BackfillPlan = manifest.plan
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
            run, last_row = read(piece, ts)
            if len(run):
                last = _key(last_row()) if table.by_key else ()
                yield self._transaction(ts, [run], Chunk(name, TableProgress(last)))

    def _table(self, table: TablePlan, have: TableProgress | None, numbers: Iterator[Ts]) -> Iterator[Item]:
        if have is not None and have.last is None:
            return
        if have is None:
            yield self.creation(table, next(numbers))
        # Without an order of the keys a load can't resume inside a table.
        ts = numbers if table.by_key else repeat(next(numbers))
        for chunk in table.chunks:
            if have is None or not _is_within(table, chunk, have):
                for piece in self.chunk(table, chunk, ts):
                    yield piece if table.by_key else replace(piece, position="", last=False)
        yield self._transaction(next(ts), [], Chunk(table.table.full_name, TableProgress()))

    def _transaction(self, ts: Ts, runs: list[Run], chunk: Chunk) -> Transaction:
        return Transaction(ts, ts, self._plan.source, Rows(runs), self._position, chunk=chunk)


def _is_within(table: TablePlan, chunk: ChunkPlan, have: TableProgress) -> bool:
    """True if all keys of the chunk are already loaded."""
    if not have.last:
        return False
    if table.info:
        from ...codec.tidb.key import record_key
        from ...codec.tidb.table_info import decode_table_info

        return chunk.end <= record_key(decode_table_info(table.info).id, int(have.last[0]))
    return chunk.up_to is not None and chunk.up_to < have.last[: len(chunk.up_to)]


def _key(row: RowChange) -> OrderedKey:
    assert row.after is not None
    return ordered_keys(row.table)(row.after)


def _reader(table: TablePlan) -> _Read:
    if table.info:
        return _tikv_reader(table)
    decoder = ResultRowsDecoder(table.table)

    def read(piece: Block, ts: Ts) -> tuple[Run, Callable[[], RowChange]]:
        packets = b"".join([raw.value for raw in piece])
        run = ResultRun(ts, ts, decoder.table, "insert", None, decoder, packets)
        return run, lambda: decoder.decode(packets[run.starts()[-2] :], ts, ts)[0]

    return read


def _tikv_reader(table: TablePlan) -> _Read:
    from ...codec.tidb.changes import ChangesDecoder
    from ...codec.tidb.packed import PackedRun
    from ...codec.tidb.table_info import decode_table_info
    from .chunk_file import inserts_of

    decoder = ChangesDecoder(table.table.schema, decode_table_info(table.info))

    def read(piece: Block, ts: Ts) -> tuple[Run, Callable[[], RowChange]]:
        packed = inserts_of(piece)
        run = PackedRun(ts, ts, decoder.table, "insert", None, decoder, packed)
        last = PackedRun(ts, ts, decoder.table, "insert", None, decoder, packed[-1:])
        return run, lambda: last.changes()[0]

    return read
