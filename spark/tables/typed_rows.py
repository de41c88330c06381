"""Rows of one table from the raw envelope's exact columns, with the table's columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from ...events import Op, RowChange, Run, Table
from ..change import EventBytes, Layouts
from ..read.commit_time import commit_times
from ..read.pick import Pick
from ..read.schema import table_type
from ..read.typed import TypedEncoder

USED: Final = ("commit_ts", "start_ts", "sequence", "op", "change", "layout")
"""The columns of the envelope that the rows are made of."""


class TypedRows:
    """Decodes batches of one table's rows, which must not have schema changes. Sent to executors by value."""

    def __init__(self, table: Table, invalid_dates: str) -> None:
        self._table = table
        self._invalid_dates = invalid_dates

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(table_type(self._table), timezone="UTC")
        encoder = TypedEncoder(self._table, Pick(), invalid_dates=self._invalid_dates, widens=True)
        layouts = Layouts()
        for batch in batches:
            if batch.num_rows:
                before, after = encoder.images(_runs(layouts, batch))
                commits, starts, sequences, ops = batch.select(USED[:4]).columns
                times = commit_times(commits)
                columns = [commits, times, starts, sequences, ops, before, after]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _runs(layouts: Layouts, batch: pa.RecordBatch) -> list[Run]:
    """Return the rows as runs, of one layout and operation each; nothing but their images is used."""
    lines = zip(*(batch.column(name).to_pylist() for name in ("layout", "op", "change")), strict=True)
    return [
        _run(layouts, layout, op, [change for _, _, change in group])
        for (layout, op), group in groupby(lines, itemgetter(0, 1))
    ]


def _run(layouts: Layouts, layout: bytes, op: Op, changes: Sequence[bytes]) -> Run:
    code = layouts.read(layout)
    if isinstance(code, EventBytes):
        return code.run(changes, op, 0, 0)
    rows: list[Any] = []
    for change in changes:
        before, after, _ = code.decode(change)
        rows.append(RowChange(0, 0, code.table, op, before, after))
    return Run(0, 0, code.table, op, rows)
