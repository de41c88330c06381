"""Changes for copies: one file a commit has for each table, whatever the day and the source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .....events import Item
from ...formats import Piece
from ...parquet_format import ParquetFormat


class CopyFormat(ParquetFormat):
    """Parquet files of changes in the order in which they came (docs/reference/parquet.md)."""

    def pieces(self, items: Sequence[Item]) -> Iterator[Piece]:
        for piece in super().pieces(items):
            yield piece._replace(group=(piece.group[0], 0, ""))
