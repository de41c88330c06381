"""A copy's rows after a schema change, and the columns that they have then."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ...errors import SourceError
from ...events import Ddl
from ..read.schema import column_type
from .alteration import Alteration
from .last_changes import quoted


def altered(frame: DataFrame, effect: Alteration) -> DataFrame:
    """Return the rows of `frame` after a schema change: none if it empties the table."""
    frame = frame.limit(0) if effect.empties else frame
    dropped = {name.lower() for name in effect.drops}
    changed = {change.name.lower(): change.column for change in effect.changes}
    columns = []
    for name in frame.columns:
        column, value = changed.get(name.lower()), f.col(quoted(name))
        if column is not None:
            columns.append(value.cast(column_type(column)).alias(column.name))
        elif name.lower() not in dropped:
            columns.append(value)
    return frame.select(*columns, *[f.expr(added.value).alias(added.column.name) for added in effect.adds])


def check_nulls(frame: DataFrame, effect: Alteration, ddl: Ddl) -> None:
    """Raise SourceError if a column that becomes NOT NULL has a NULL, as the source put a value there."""
    for change in effect.changes:
        if change.replaces_null and not frame.where(f.col(quoted(change.name)).isNull()).isEmpty():
            raise SourceError(
                f"{ddl.full_name}, column {change.name}: the value that replaced NULL isn't known; load the "
                f"table into another copy: {ddl.query[:200]}"
            )
