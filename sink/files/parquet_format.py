"""Parquet files; docs/reference/parquet.md describes their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from ...events import Ddl, Item, Table, Transaction
from ...events.per_table import PerTable
from ...failpoint import reach
from .formats import Group, Piece
from .layout import day_of
from .parquet_columns import ChangeColumns, Numbered
from .schema_changes import DDL, ddl_batch

_SOURCE: Final = pa.field("source", pa.string(), nullable=False)
_DICTIONARY_BYTES: Final = 64 << 10
"""Limit of a column's dictionary, after which its values are written as they are. A larger one seldom pays:
with Arrow's 1 MiB, numbers without repetitions take two to three times as long and more space
(docs/reference/parquet.md)."""


class ParquetFormat:
    """Converts the changes of each table version and day to a batch of columns; a file has the column
    `source` before them."""

    reads_rows = False

    def __init__(self) -> None:
        self._columns = PerTable(ChangeColumns)
        self.start()

    def start(self) -> None:
        self._last, self._next = (0, 0), 0  # the last transaction: numbers continue over its parts

    def pieces(self, items: Sequence[Item]) -> Iterator[Piece]:
        for source, its in groupby(items, lambda item: item.source):
            runs: dict[tuple[ChangeColumns, int], list[Numbered]] = {}
            for item in its:
                if isinstance(item, Ddl):
                    group = (None, day_of(item.commit_ts), source)
                    batch = ddl_batch(item)
                    yield Piece(group, item.commit_ts, item.commit_ts, batch, batch.nbytes)
                else:
                    self._sort_by_table(item, runs)
                reach("sink.mid_batch")
            for (columns, day), rows in runs.items():
                batch = columns.batch(rows)
                yield Piece((columns.table, day, source), rows[0][0], rows[-1][0], batch, batch.nbytes)

    def _sort_by_table(
        self, item: Transaction, runs: dict[tuple[ChangeColumns, int], list[Numbered]]
    ) -> None:
        its = item.commit_ts, item.start_ts
        first = self._next if its == self._last else 0
        self._last, self._next = its, first + len(item.rows)
        day, snapshot = day_of(item.commit_ts), item.chunk is not None
        for run in item.runs:
            runs.setdefault((self._columns[run.table], day), []).append((*its, first, snapshot, run))
            first += len(run)

    def suffix(self, group: Group) -> str:  # noqa: ARG002
        return ".parquet"

    def content(self, group: Group, pieces: Sequence[Piece]) -> object:
        table = pa.Table.from_batches([piece.content for piece in pieces])
        source = pa.repeat(pa.scalar(group[2], pa.string()), table.num_rows)
        buffer = pa.BufferOutputStream()
        write_parquet(self.arranged(group[0], table.add_column(0, _SOURCE, source)), buffer)
        return buffer.getvalue()

    def arranged(self, table: Table | None, rows: pa.Table) -> pa.Table:  # noqa: ARG002
        """Return a file's columns as the file has them; `table` is None for schema changes."""
        return rows

    def pack(self, content: pa.RecordBatch) -> pa.Buffer:
        return content.serialize()

    def unpack(self, group: Group, packed: bytes) -> pa.RecordBatch:
        schema = DDL if group[0] is None else self._columns[group[0]].schema
        return pa.ipc.read_record_batch(pa.py_buffer(packed), schema)


def write_parquet(table: pa.Table, file: object) -> None:
    """Write a table to an open file, or to a stream of Arrow. Raises OSError."""
    with parquet_writer(file, table.schema) as writer:
        writer.write_table(table)


def parquet_writer(file: object, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of tables into an open file, or a stream of Arrow."""
    return pq.ParquetWriter(file, schema, compression="zstd", dictionary_pagesize_limit=_DICTIONARY_BYTES)
