"""Rows of one table from the raw envelope's exact columns, with the table's columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from ...events import Table
from ..read.commit_time import commit_times
from ..read.pick import Pick
from ..read.schema import table_type
from ..read.typed import TypedEncoder
from ..read.typed_batches import TypedBatches

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
        typed = TypedBatches(encoder)
        for batch in batches:
            if batch.num_rows:
                commits, *others = typed.convert(batch).columns
                columns = [commits, commit_times(commits), *others]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
