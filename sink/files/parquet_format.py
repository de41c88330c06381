"""Parquet files, whoever stores them; docs/parquet.md describes their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ...events import Ddl, Item, Table, Transaction
from ...events.per_table import PerTable
from ...failpoint import reach
from .names import day_of
from .parquet_columns import DDL, Layout, Numbered, ddl_batch
from .piece import Group, Piece

_DDL: Final = DDL.serialize().to_pybytes()
_SOURCE: Final = pa.field("source", pa.string(), nullable=False)
_DICTIONARY_BYTES: Final = 64 << 10
"""Limit of a column's dictionary, after which its values are written as they are. A larger one seldom pays:
with Arrow's 1 MiB, numbers without repetitions take two to three times as long and more space
(docs/parquet.md)."""


class ChangeBatch(NamedTuple):
    """Changes of one table version and day; or schema changes."""

    table: Table | None
    """None for schema changes."""
    rows: pa.RecordBatch
    schema: bytes
    """Their schema, serialized; the same object for every batch of a table version."""


class ChangeBatches:
    """Converts items, and numbers the changes of each transaction. Not thread-safe."""

    def __init__(self) -> None:
        self._layouts = PerTable(Layout)
        self.start()

    def start(self) -> None:
        """Forget unfinished transactions: they come again from their first row."""
        self._at, self._next = (0, 0), 0  # the last transaction: numbers continue over its parts

    def of(self, items: Sequence[Item]) -> Iterator[ChangeBatch]:
        """Yield the batches of items, which are transactions or a single Ddl."""
        found: dict[tuple[Layout, int], list[Numbered]] = {}
        for item in items:
            if isinstance(item, Ddl):
                yield ChangeBatch(None, ddl_batch(item), _DDL)
            else:
                self._sort_by_layout(item, found)
            reach("sink.mid_batch")
        for (layout, _), rows in found.items():
            yield ChangeBatch(layout.table, layout.batch(rows), layout.schema_bytes)

    def _sort_by_layout(self, item: Transaction, found: dict[tuple[Layout, int], list[Numbered]]) -> None:
        at = item.commit_ts, item.start_ts
        first = self._next if at == self._at else 0
        self._at, self._next = at, first + len(item.rows)
        day, snapshot = day_of(item.commit_ts), item.chunk is not None
        for run in item.runs:
            found.setdefault((self._layouts[run.table], day), []).append((*at, first, snapshot, run))
            first += len(run)


class ParquetFormat:
    """Converts each batch to columns, and adds the column `source`."""

    def __init__(self) -> None:
        self._batches = ChangeBatches()

    def start(self) -> None:
        self._batches.start()

    def pieces(self, items: Sequence[Item]) -> Iterator[Piece]:
        for source, its in groupby(items, lambda item: item.source):
            for made in self._batches.of(list(its)):
                ts = made.rows.column(0)
                first, last = ts[0].as_py(), ts[-1].as_py()
                group = (made.table, day_of(first), source)
                yield Piece(group, first, last, made.rows, made.rows.nbytes)

    def suffix(self, group: Group) -> str:  # noqa: ARG002
        return ".parquet"

    def content(self, group: Group, pieces: Sequence[Piece]) -> Any:
        table = pa.Table.from_batches([piece.content for piece in pieces])
        source = pa.repeat(pa.scalar(group[2], pa.string()), table.num_rows)
        buffer = pa.BufferOutputStream()
        write_parquet(table.add_column(0, _SOURCE, source), buffer)
        return buffer.getvalue()


def write_parquet(table: pa.Table, file: Any) -> None:
    """Write a table to an open file, or to a stream of Arrow. Raises OSError."""
    pq.write_table(table, file, compression="zstd", dictionary_pagesize_limit=_DICTIONARY_BYTES)
