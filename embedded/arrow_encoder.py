"""Encoding of items as Arrow batches, table by table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..codec.arrow_arrays import counted, in_type, repeated
from ..codec.image import Image
from ..codec.images import read_images
from ..errors import SourceError
from ..events import LOGICAL_BITS, Column, Ddl, Item, Row, Run, Table, Transaction, Ts
from ..sink.files.parquet_columns import MOST_DIGITS, arrow_type
from .arrow_batch import ArrowBatch, InvalidDates

_MICROSECONDS: Final = pa.timestamp("us", "UTC")
_TEMPORAL: Final = {
    "date": pa.date32(),
    "time": pa.duration("us"),
    "datetime": pa.timestamp("us"),
    "timestamp": _MICROSECONDS,
}
_MAX_TABLES: Final = 1_000
"""Maximum number of schemas kept; then all are dropped."""


class _PlacedRuns:
    """Runs of one table, with their places, as columns: tuples would double the garbage collector's work."""

    __slots__ = ("commit_ts", "numbers", "runs", "sizes", "start_ts")

    def __init__(self) -> None:
        self.commit_ts: list[Ts] = []
        self.start_ts: list[Ts] = []
        self.numbers: list[int] = []
        """Number of each run's first change in its transaction."""
        self.sizes: list[int] = []
        self.runs: list[Run] = []


class ArrowEncoder:
    """Encodes items in commit order; a transaction may be split into several items."""

    def __init__(self, invalid_dates: InvalidDates = "fail") -> None:
        """With "null", dates that no calendar has are null; otherwise they are an error."""
        self._nullify: Final = invalid_dates == "null"
        self._tables: dict[int, _TableColumns] = {}
        self._commit_ts = self._start_ts = 0
        self._next = 0
        """Number of the next change in the transaction."""
        self._open: _TableColumns | None = None
        """The table of the last batch, if its transaction continues."""

    def encode(self, items: Iterable[Item]) -> Iterator[ArrowBatch | Ddl]:
        """Yield batches, and schema changes between them. Raises SourceError for a row that can't be read."""
        group: list[Transaction] = []
        for item in items:
            if isinstance(item, Ddl):
                yield from self._batches(group)
                group = []
                self._next = self._first(item) + 1
                yield item
            else:
                group.append(item)
        yield from self._batches(group)

    def _first(self, item: Item) -> int:
        """Return the number of the item's first change in its transaction."""
        if item.commit_ts != self._commit_ts or item.start_ts != self._start_ts:
            self._commit_ts, self._start_ts, self._next = item.commit_ts, item.start_ts, 0
        return self._next

    def _batches(self, group: Sequence[Transaction]) -> Iterator[ArrowBatch]:
        if not group:
            return
        tables: dict[int, _PlacedRuns] = {}
        placed, table = _PlacedRuns(), None
        for item in group:
            number = self._first(item)
            for run in item.runs:
                if run.table is not table:
                    table = run.table
                    placed = tables.setdefault(id(table), _PlacedRuns())
                size = len(run)
                placed.commit_ts.append(item.commit_ts)
                placed.start_ts.append(item.start_ts)
                placed.numbers.append(number)
                placed.sizes.append(size)
                placed.runs.append(run)
                number += size
            self._next = number
        end = group[-1]
        encoded = [self._of_table(placed) for placed in tables.values()]
        if not encoded and self._open is not None and end.last:
            encoded = [(self._open, pa.RecordBatch.from_pylist([], self._open.schema))]
        for number, (columns, data) in enumerate(encoded, 1):
            self._open = None if end.last else columns
            is_last = end.last and number == len(encoded)
            yield ArrowBatch(columns.table, data, end.commit_ts, end.start_ts, end.source, is_last)

    def _of_table(self, placed: _PlacedRuns) -> tuple[_TableColumns, pa.RecordBatch]:
        table = placed.runs[0].table
        columns = self._tables.get(id(table))
        if columns is None:
            if len(self._tables) >= _MAX_TABLES:
                self._tables.clear()
            columns = self._tables[id(table)] = _TableColumns(table, nullify=self._nullify)
        return columns, columns.batch(placed)


class _TableColumns:
    """The schema of a table's batches, with the functions that make its columns."""

    def __init__(self, table: Table, *, nullify: bool) -> None:
        self.table: Final = table  # kept, so that its id stays its own
        self._nullify = nullify
        self._fields = [pa.field(column.name, column_type(column)) for column in table.columns]
        self._row_type = pa.struct(self._fields)
        self.schema: Final = pa.schema(
            [
                pa.field("commit_ts", pa.int64(), nullable=False),
                pa.field("commit_time", _MICROSECONDS, nullable=False),
                pa.field("start_ts", pa.int64(), nullable=False),
                pa.field("sequence", pa.int64(), nullable=False),
                pa.field("op", pa.string(), nullable=False),
                pa.field("before", self._row_type),
                pa.field("after", self._row_type),
            ]
        )

    def batch(self, placed: _PlacedRuns) -> pa.RecordBatch:
        sizes, runs = np.fromiter(placed.sizes, np.int64, len(placed.sizes)), placed.runs
        commits = repeated(placed.commit_ts, sizes, pa.int64())
        times = pc.multiply(pc.shift_right(commits, LOGICAL_BITS), 1000).cast(_MICROSECONDS)
        arrays = [
            commits,
            times,
            repeated(placed.start_ts, sizes, pa.int64()),
            counted(placed.numbers, sizes),
            repeated([run.op for run in runs], sizes, pa.string()),
            *self._images(runs, len(commits)),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _images(self, runs: Sequence[Run], count: int) -> tuple[pa.Array, pa.Array]:
        images = read_images(runs)
        if images is not None:
            before, after = images
            return self._from_columns(before, count), self._from_columns(after, count)
        changes = [change for run in runs for change in run.changes()]
        return self._from_rows([one.before for one in changes]), self._from_rows(
            [one.after for one in changes]
        )

    def _from_columns(self, image: Image, count: int) -> pa.Array:
        if image.columns is None:
            return pa.nulls(count, self._row_type)
        pairs = zip(image.columns, self._fields, strict=True)
        # Decimals of more than 38 digits come as text.
        arrays = [one if one.type == field.type else one.cast(field.type) for one, field in pairs]
        return pa.StructArray.from_arrays(arrays, fields=self._fields, mask=image.absent)

    def _from_rows(self, rows: Sequence[Row | None]) -> pa.Array:
        absent = pa.array([row is None for row in rows], pa.bool_())
        nothing = (None,) * len(self._fields)
        columns = zip(*[nothing if row is None else row for row in rows], strict=True)
        triples = zip(self.table.columns, self._fields, columns, strict=True)
        arrays = [self._array(column, field.type, values) for column, field, values in triples]
        return pa.StructArray.from_arrays(arrays, fields=self._fields, mask=absent)

    def _array(self, column: Column, type_: pa.DataType, values: Sequence[object]) -> pa.Array:
        if column.kind in _TEMPORAL:
            values = self._dates(column, values)
        return in_type(f"{column.name} of {self.table.full_name}", type_, partial(pa.array, values))

    def _dates(self, column: Column, values: Sequence[object]) -> Sequence[object]:
        text = next((value for value in values if type(value) is str), None)
        if text is None:
            return values
        if not self._nullify:
            raise SourceError(
                f"column {column.name} of {self.table.full_name} holds {text!r}, which is no {column.kind} in"
                ' Arrow: read such values as null by arrow_batches(invalid_dates="null"), or read'
                " transactions, which have them as text"
            )
        return [None if type(value) is str else value for value in values]


def column_type(column: Column) -> pa.DataType:
    """Return the Arrow type of a column's values."""
    if column.kind == "decimal" and column.length > MOST_DIGITS:
        return pa.decimal256(column.length, column.scale)
    return _TEMPORAL.get(column.kind) or arrow_type(column)
