"""Changes of one table as Arrow batches with its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from itertools import groupby
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import NumericType

from ...codec.arrow_arrays import counted, in_type, repeated
from ...codec.image import Image
from ...codec.images import read_images
from ...errors import SourceError
from ...events import (
    Action,
    AddColumn,
    ChangeColumn,
    Column,
    CreateTable,
    Ddl,
    DropColumn,
    Item,
    Row,
    Run,
    Table,
    Transaction,
)
from ..envelope import to_batch
from .pick import Pick
from .schema import change_type, column_type
from .schema_changes import Check
from .widening import holds

_DATES: Final = {"date": date, "datetime": datetime, "timestamp": datetime}
_Values = Callable[[Sequence[object]], Sequence[object]]


class TypedEncoder:
    """Encodes items as batches with the columns of `table`, without `commit_time`.

    There must be no items of other tables.

    Columns that a row's layout lacks are null. A column of another type raises SourceError, and so does a
    selected change of the whole table. `check` is called with each layout. With `widens`, values of narrower
    types are converted.
    """

    def __init__(
        self,
        table: Table,
        pick: Pick,
        *,
        invalid_dates: str = "fail",
        check: Check | None = None,
        widens: bool = False,
    ) -> None:
        self.schema: pa.Schema = to_arrow_schema(change_type(table), timezone="UTC")
        self._table = table
        self._row_type: pa.StructType = self.schema.field("after").type
        self._pick = pick
        self._check = check
        self._widens = widens
        self._nullify = invalid_dates == "null"
        self._places: dict[Table, list[int | None] | None] = {}
        self._last: tuple[Table | None, list[int | None] | None] = None, None
        self._convert = [self._conversion(column) for column in table.columns]

    def encode(self, items: Sequence[Item]) -> pa.RecordBatch:
        """Return the rows of `items`, possibly none."""
        numbers, runs = self._pick.whole_runs(items) or self._picked(items)
        if not runs:
            return to_batch([], self.schema)
        sizes = [len(run) for run in runs]
        before, after = self.images(runs)
        columns = [
            repeated([run.commit_ts for run in runs], sizes, pa.int64()),
            repeated([run.start_ts for run in runs], sizes, pa.int64()),
            counted(numbers, sizes),
            repeated([run.op for run in runs], sizes, pa.string()),
            before,
            after,
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _picked(self, items: Sequence[Item]) -> tuple[list[int], list[Run]]:
        """Return the selected runs, each with the number of its first row."""
        picked: list[tuple[int, Run]] = []
        for item in items:
            self._pick.begins(item)
            if isinstance(item, Transaction):
                picked += self._pick.runs(item)
            elif self._pick.ddl(item) is not None:
                self.check_visible(item)
        return [number for number, _ in picked], [run for _, run in picked]

    def images(self, runs: Sequence[Run]) -> tuple[pa.Array, pa.Array]:
        """Return the rows before and after the changes of `runs`, at least one."""
        if len({id(run.table) for run in runs}) == 1:
            return self._of_one_table(runs)
        by_table = [self._of_one_table(list(group)) for _, group in groupby(runs, lambda run: id(run.table))]
        before, after = (pa.concat_arrays(arrays) for arrays in zip(*by_table, strict=True))
        return before, after

    def _of_one_table(self, runs: Sequence[Run]) -> tuple[pa.StructArray, pa.StructArray]:
        """Return the rows before and after, decoded by columns if possible."""
        images = read_images(runs)
        table = runs[0].table
        if images is not None:
            count = sum([len(run) for run in runs])
            return self._from_columns(table, images[0], count), self._from_columns(table, images[1], count)
        changes = [change for run in runs for change in run.changes()]
        return (
            self._images([self._fitted(table, change.before) for change in changes]),
            self._images([self._fitted(table, change.after) for change in changes]),
        )

    def _from_columns(self, table: Table, image: Image, count: int) -> pa.StructArray:
        places = self._found_places(table)
        if image.columns is None:
            return pa.nulls(count, self._row_type)
        columns = (
            image.columns if places is None else [None if i is None else image.columns[i] for i in places]
        )
        fields = list(self._row_type)
        arrays = [
            pa.nulls(count, field.type) if values is None else self._held(field, values.cast)
            for values, field in zip(columns, fields, strict=True)
        ]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=image.absent)

    def _images(self, rows: list[Row | None]) -> pa.StructArray:
        nothing = (None,) * len(self._table.columns)
        columns = zip(*[nothing if row is None else row for row in rows], strict=True)
        fields = list(self._row_type)
        arrays = [
            self._held(field, partial(pa.array, convert(values)))
            for values, convert, field in zip(columns, self._convert, fields, strict=True)
        ]
        missing = pa.array([row is None for row in rows], pa.bool_())
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=missing)

    def _held(self, field: pa.Field, values: Callable[[pa.DataType], pa.Array]) -> pa.Array:
        return in_type(f"{field.name} of {self._table.full_name}", field.type, values)

    # --- layouts

    def _fitted(self, table: Table, row: Row | None) -> Row | None:
        if row is None:
            return None
        places = self._found_places(table)
        return row if places is None else tuple([None if i is None else row[i] for i in places])

    def check_visible(self, ddl: Ddl) -> None:
        """Raise SourceError for a schema change that isn't visible in rows."""
        if not (self._widens and ddl.actions and all(map(self._is_widening, ddl.actions))):
            check_visible(ddl)

    def _is_widening(self, action: Action) -> bool:
        """True if a column got the type that it has here, which holds all its values: no row is changed."""
        if not isinstance(action, ChangeColumn) or action.name != action.column.name:
            return False
        new = column_type(action.column)
        own = [column_type(column) for column in self._table.columns if column.name == action.name]
        return own == [new] and isinstance(new, NumericType)

    def _found_places(self, table: Table) -> list[int | None] | None:
        last, places = self._last
        if table is not last:  # hashing a table takes longer than decoding a row
            if table not in self._places:
                self._places[table] = self._places_in(table)
            places = self._places[table]
            self._last = table, places
        return places

    def _places_in(self, table: Table) -> list[int | None] | None:
        """Return the numbers of our columns in `table`; None if they are the same."""
        if self._check is not None:
            self._check(table)
        at = {column.name: place for place, column in enumerate(table.columns)}
        for column in self._table.columns:
            other = table.columns[at[column.name]] if column.name in at else column
            types = column_type(column), column_type(other)
            if not (holds(*types) if self._widens else types[0] == types[1]):
                raise SourceError(
                    f"column {column.name} of {table.full_name} was {other.kind} and is {column.kind} now: "
                    "leave out the option table, the raw envelope holds both"
                )
        places = [at.get(column.name) for column in self._table.columns]
        return None if places == [*range(len(table.columns))] else places

    # --- values

    def _conversion(self, column: Column) -> _Values:
        if column.kind in _DATES:
            return lambda values: self._dates(column, values)
        if pa.types.is_string(self._row_type.field(column.name).type):
            return lambda values: _texts(column.scale, values)
        return _as_they_are

    def _dates(self, column: Column, values: Sequence[object]) -> Sequence[object]:
        """Convert dates; those that no calendar has are given as text."""
        if not any(type(value) is str for value in values):
            return values
        if self._nullify:
            return [None if type(value) is str else value for value in values]
        text = next(value for value in values if type(value) is str)
        raise SourceError(
            f"column {column.name} of {self._table.full_name} holds {text!r}, which is no {column.kind} in "
            "Spark: set option invalidDates to null to read such values as null, or read the raw envelope"
        )


def check_visible(ddl: Ddl) -> None:
    """Raise SourceError for a schema change that isn't visible in rows."""
    is_hidden = ddl.refusal or ddl.reload or not _are_visible(ddl.actions)
    if is_hidden and not ddl.query.lstrip().upper().startswith("CREATE"):
        raise SourceError(
            f"{ddl.full_name} was changed in a way that its rows don't tell: {ddl.query[:200]}; read the raw "
            "envelope, where this is a row, or set option operations to insert,update,delete to pass over "
            "it: then the rows can't be merged into a copy"
        )


def _are_visible(actions: Sequence[Action]) -> bool:
    return all(isinstance(action, (CreateTable, AddColumn, DropColumn)) for action in actions)


def _texts(scale: int, values: Sequence[object]) -> Sequence[object]:
    """Convert decimals, which may be of another layout than the column: with its scale, or a larger one."""
    if not any(type(value) is Decimal for value in values):
        return values
    return [text_of(scale, value) if type(value) is Decimal else value for value in values]


def text_of(scale: int, value: Decimal) -> str:
    """Return a decimal's text with `scale` digits after the point, or more if it has more."""
    exponent = value.as_tuple().exponent
    own = -exponent if isinstance(exponent, int) else 0  # a letter of NaN
    return f"{value:.{max(scale, own)}f}"


def _as_they_are(values: Sequence[object]) -> Sequence[object]:
    return values
