"""Parquet files; docs/parquet.md describes their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from ...events import Item
from .names import day_of
from .parquet_batches import ChangeBatches
from .parquet_encoding import write_parquet
from .piece import Group, Piece

_SOURCE = pa.field("source", pa.string(), nullable=False)


class ParquetFormat:
    """Converts each batch to columns, and adds the column `source`."""

    reads_rows = False

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
