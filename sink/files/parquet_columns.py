"""Conversion of a table's layout to Arrow columns, and of its changes to Arrow batches, without loss.

docs/reference/parquet.md lists the types. Values that Parquet's types or readers can't represent stay text as
the source prints it: dates and times, which may be "0000-00-00", and decimals of more than 38 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, Final, assert_never

import msgspec
import pyarrow as pa

from ...codec.arrow_arrays import counted, repeated
from ...codec.image import Image
from ...codec.images import read_images
from ...codec.text import datetime_text, time_text
from ...errors import InvariantViolated, SinkError
from ...events import (
    TEMPORAL,
    Column,
    Row,
    Run,
    Table,
    Ts,
)
from ..arrow_text import as_text

TABLE: Final = b"tidemill.table"
"""Metadata key of a file: the Table as JSON."""

MOST_DIGITS: Final = 38
"""Maximum precision of a decimal that every Parquet reader accepts; Spark rejects a file with a larger
one."""

_INTEGERS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 32, "int": 32, "bigint": 64}

Numbered = tuple[Ts, Ts, int, bool, Run]
"""Commit ts, start ts, number of a run's first change in its transaction, and True if it is part of a
snapshot."""

HEAD: Final = [
    pa.field("commit_ts", pa.int64(), nullable=False),
    pa.field("start_ts", pa.int64(), nullable=False),
    pa.field("sequence", pa.int64(), nullable=False),
    pa.field("op", pa.string(), nullable=False),
    pa.field("snapshot", pa.bool_(), nullable=False),
]


def arrow_type(column: Column) -> pa.DataType:
    """Return the Arrow type for all values of the column."""
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            return getattr(pa, f"{'u' * column.unsigned}int{_INTEGERS[column.kind]}")()
        case "decimal" if column.length <= MOST_DIGITS:
            return pa.decimal128(column.length, column.scale)
        case "float":
            return pa.float32()
        case "double":
            return pa.float64()
        case "bit":
            return pa.uint64()
        case "year":
            return pa.int16()
        case "binary" | "varbinary" | "blob" | "geometry" | "vector":
            return pa.large_binary()
        case (
            "decimal" | "char" | "varchar" | "text" | "date" | "time" | "datetime" | "timestamp" | "enum"
            | "set" | "json" | "uuid" | "inet4" | "inet6"
        ):  # fmt: skip
            return pa.large_string()
        case _:
            assert_never(column.kind)


class ChangeColumns:
    """One version of a table, with functions that convert its rows to columns."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._fields = [pa.field(column.name, arrow_type(column)) for column in table.columns]
        self._texts = [_text(column) for column in table.columns]
        self._nulls: Row = (None,) * len(table.columns)
        image = self._image_type = pa.struct(self._fields)
        metadata = {TABLE: msgspec.json.encode(table)}
        self.schema = pa.schema([*HEAD, pa.field("before", image), pa.field("after", image)], metadata)

    def batch(self, rows: Sequence[Numbered]) -> pa.RecordBatch:
        """Return the batch of changes. Raises SinkError for a value out of its column type's range."""
        commits, starts, numbers, snapshots, runs = zip(*rows, strict=True)
        sizes = [len(run) for run in runs]
        arrays = [
            repeated(commits, sizes, pa.int64()),
            repeated(starts, sizes, pa.int64()),
            counted(numbers, sizes),
            repeated([run.op for run in runs], sizes, pa.string()),
            repeated(snapshots, sizes, pa.bool_()),
            *self._images(runs),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _images(self, runs: Sequence[Run]) -> tuple[pa.Array, pa.Array]:
        """Return the rows before and after; as columns if the source can read them so."""
        images = read_images(runs)
        if images is not None:
            before, after = images
            count = sum([len(run) for run in runs])
            return self._from_columns(before, count), self._from_columns(after, count)
        changes = [change for run in runs for change in run.changes()]
        rows = [change.before for change in changes], [change.after for change in changes]
        return self._image(rows[0]), self._image(rows[1])

    def _from_columns(self, image: Image, count: int) -> pa.Array:
        if image.columns is None:
            return pa.nulls(count, self._image_type)
        arrays = [
            as_text(values, column.scale) if column.kind in TEMPORAL else values
            for values, column in zip(image.columns, self.table.columns, strict=True)
        ]
        return pa.StructArray.from_arrays(arrays, fields=self._fields, mask=image.absent)

    def _image(self, rows: Sequence[Row | None]) -> pa.Array:
        if not any(rows):  # inserts have no rows before
            return pa.nulls(len(rows), self._image_type)
        absent = pa.array([row is None for row in rows], pa.bool_())
        whole = [row or self._nulls for row in rows]
        if set(map(len, whole)) != {len(self._fields)}:
            raise InvariantViolated(f"a row of {self.table.full_name} hasn't the table's columns")
        arrays = [
            # Transposed by zip(*rows), rows have an iterator each, which the garbage collector looks at.
            _array(self.table.full_name, field, text, list(map(itemgetter(number), whole)))
            for number, (field, text) in enumerate(zip(self._fields, self._texts, strict=True))
        ]
        return pa.StructArray.from_arrays(arrays, fields=self._fields, mask=absent)


def image_array(table: str, column: Column, values: Iterable[object]) -> pa.Array:
    """Return values of a column in its type. Raises SinkError, about the table of this name, for a value out
    of the type's range."""
    field, text = pa.field(column.name, arrow_type(column)), _text(column)
    return _array(table, field, text, values)


def _array(
    table: str, field: pa.Field, text: Callable[[object], str] | None, values: Iterable[object]
) -> pa.Array:
    if text is not None:
        values = [None if value is None else text(value) for value in values]
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, OverflowError) as error:
        raise SinkError(
            f"{table}.{field.name} has a value that {field.type} can't hold: {error}", table
        ) from error


def _text(column: Column) -> Callable[[Any], str] | None:
    """Return the function that converts a column's values to text; None if they stay as they are."""
    scale = column.scale
    match column.kind:
        case "decimal" if column.length > MOST_DIGITS:
            return lambda value: f"{value:.{scale}f}"
        case "date":
            return str
        case "time":
            return lambda value: time_text(value, scale)
        case "datetime" | "timestamp":
            return lambda value: datetime_text(value, scale)
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float" | "double"
            | "bit" | "char" | "varchar" | "text" | "binary" | "varbinary" | "blob" | "year" | "enum"
            | "set" | "json" | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            return None
        case _:
            assert_never(column.kind)
