"""Arrow batches of the changes of many tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from ...events import Ddl, Item, Table, Transaction
from ...events.per_table import PerTable
from ...failpoint import reach
from .names import day_of
from .parquet_columns import DDL, Layout, Numbered, ddl_batch

_DDL: Final = DDL.serialize().to_pybytes()


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
