"""Effects of ALTER TABLE on a copy: its columns after the statement, and where their values come from."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from .....codec.mysql.column_defaults import NotComputable, default_for_existing_rows
from .....dialects.conversion import described
from .....dialects.database import cant_compute, effective
from .....errors import NotReproducible, SinkError
from .....events import AddColumn, ChangeColumn, ChangeKey, Ddl, DropColumn, Table, altered
from ...parquet_columns import image_array
from .columns import copy_schema, keeps


class Alteration(NamedTuple):
    """The change of a table with rows."""

    table: Table
    """After the statement."""
    origins: dict[str, str]
    """Columns before the statement by those after it; a new one isn't there."""
    values: dict[str, pa.Scalar]
    """Values of existing rows in each new column."""
    filled: list[str]
    """Columns before the statement that may have no NULL."""

    def applied(self, rows: pa.Table) -> pa.Table:
        """Return rows of a file from before the statement as they are after it."""
        columns = []
        for field in copy_schema(self.table):
            origin = self.origins.get(field.name)
            if origin is None:
                values = pa.repeat(self.values[field.name], len(rows)).cast(field.type)
            else:
                values = rows.column(origin).cast(field.type)
            if not field.nullable and values.null_count:  # in rows that were deleted
                values = values.fill_null(_any(field.type))
            columns.append(values)
        return pa.Table.from_arrays(columns, schema=copy_schema(self.table))


def alteration(before: Table, ddl: Ddl, *, has_rows: bool) -> Alteration:
    """Return the effect of a statement on a table.

    Raises NotReproducible if the values of existing rows aren't known after it, and SinkError if the copy
    lacks a column.
    """
    own = {column.name.lower(): column.name for column in before.columns}
    actions = effective(ddl.actions, own)
    for action in actions:
        if isinstance(action, (ChangeColumn, DropColumn)) and action.name.lower() not in own:
            raise SinkError(
                f"the copy of {ddl.full_name} lacks column {action.name}: load the table again", ddl.full_name
            )
    after = altered(before, actions)
    origins = dict(own)  # by the lower-case name before the statement; then renamed
    renamed: dict[str, str] = {}
    values: dict[str, pa.Scalar] = {}
    filled: list[str] = []
    for action in actions:
        match action:
            case DropColumn(name):
                del origins[name.lower()]
            case ChangeColumn(name, column):
                if has_rows:
                    _check(ddl, action)
                if action.before is not None and action.before.nullable and not column.nullable:
                    filled.append(own[name.lower()])
                if column.name.lower() != name.lower() and column.name.lower() in own:
                    raise NotReproducible(ddl.full_name, "its columns exchange their names")
                renamed[column.name] = origins.pop(name.lower())
            case AddColumn(column):
                values[column.name] = _value(ddl, action, has_rows=has_rows)
            case _:
                pass
    has_key = any(isinstance(action, ChangeKey) for action in actions)
    if len(after.key) < len(before.key) and not has_key:
        raise NotReproducible(ddl.full_name, "a column of the primary key is dropped without a new key")
    return Alteration(after, {name: name for name in origins.values()} | renamed, values, filled)


def _any(kind: pa.DataType) -> pa.Scalar:
    """Return a value of a type."""
    if pa.types.is_large_string(kind):
        return pa.scalar("", kind)
    return pa.scalar(b"" if pa.types.is_large_binary(kind) else 0, kind)


def _check(ddl: Ddl, change: ChangeColumn) -> None:
    """Raise NotReproducible unless the stored values are those of the source after the change, too."""
    if change.before is None or not keeps(change.before, change.column):
        before = "its type" if change.before is None else described(change.before)
        raise NotReproducible(
            ddl.full_name,
            f"column {change.name}: its values may not stay the same from {before} to "
            f"{described(change.column)}",
        )


def _value(ddl: Ddl, action: AddColumn, *, has_rows: bool) -> pa.Scalar:
    """Return the value of a new column for the existing rows."""
    column = action.column
    kind = copy_schema(Table("", "", (column,))).field(0).type
    if not has_rows:
        return pa.scalar(None, kind)
    if action.expression:
        raise NotReproducible(ddl.full_name, cant_compute(action))
    try:
        value = default_for_existing_rows(column, ddl.epoch_seconds, ddl.utc_offset_seconds)
    except NotComputable as error:
        raise NotReproducible(ddl.full_name, str(error)) from None
    return image_array(ddl.full_name, column, [value]).cast(kind)[0]
