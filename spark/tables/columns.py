"""The columns of a copy and of changes, which must be the same but for wider types."""

from __future__ import annotations

from pyspark.sql.types import StructField, StructType

from ...errors import SourceError
from ...events import Table
from ..read.widening import holds

_REMEDY = (
    "merge TypedTables.changes of a stream that by_table gives, which has the statement; or load the table "
    "into another copy"
)


def check_columns(
    name: str, copy: StructType, rows: StructType, known: Table | None, table: Table | None
) -> StructType:
    """Return the copy's columns in types that hold the values of both.

    `known` is the copy's definition, `table` that of the rows.

    Raises SourceError if the copy has other columns, or a type that says that its values were changed.
    """
    fields = {field.name.lower(): field for field in copy}
    added = [field.name for field in rows if field.name.lower() not in fields]
    names = {field.name.lower() for field in rows}
    gone = [field.name for field in copy if field.name.lower() not in names]
    if added or gone:
        what = [f"the copy has no column {one}" for one in added] + [
            f"the rows have no column {one}" for one in gone
        ]
        raise SourceError(
            f"{name}: {', '.join(what)}, and no schema change among the changes says why; {_REMEDY}"
        )
    for field in rows:
        older = fields[field.name.lower()]
        if not holds(field.dataType, older.dataType):
            raise SourceError(
                f"{name}: column {field.name} is {older.dataType.simpleString()} in the copy and "
                f"{field.dataType.simpleString()} in the changes, which may have changed values of other "
                f"rows; {_REMEDY}"
            )
        fields[field.name.lower()] = StructField(older.name, field.dataType)
    if known is not None and table is not None:
        _check_charsets(name, known, table)
    return StructType([*fields.values()])


def _check_charsets(name: str, known: Table, table: Table) -> None:
    sets = {column.name.lower(): column.charset for column in known.columns}
    for column in table.columns:
        was = sets[column.name.lower()]
        if was and column.charset and was != column.charset:
            raise SourceError(
                f"{name}: column {column.name} has the character set {column.charset}, and had {was}, which "
                "may have changed texts; load the table into another copy"
            )
