"""The last change of each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from ...errors import ConfigError

KEY: Final = "key"
ROW: Final = "row"

ORDER: Final = ("commit_ts", "start_ts", "sequence")


def last_changes(changes: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return one line for each key in `changes`, typed changes of one table.

    `key` is a struct of the key's columns, `row` the row after the last change, or null if there is none.
    An update that changes the key leaves a line for both. Raises ConfigError if a key column is missing.
    """
    row = row_type(changes)
    missing = [name for name in key if name not in row.names]
    if missing or not key:
        what = f"has no column {missing[0]}" if missing else "is empty"
        raise ConfigError(f"key: it {what}; give columns that identify a row, out of {', '.join(row.names)}")
    old, new = _key_of("before", key), _key_of("after", key)
    stays = f.col("after").isNotNull() & old.eqNullSafe(new)
    gone = f.when(f.col("before").isNotNull() & ~stays, _line(old, 0, f.lit(None).cast(row)))
    here = f.when(f.col("after").isNotNull(), _line(new, 1, f.col("after")))
    lines = changes.select(f.explode(f.array_compact(f.array(gone, here))).alias("line"))
    at = f.struct(*(f.col(f"line.{name}") for name in (*ORDER, "step")))
    last = f.max_by(f.struct(f.col("line.row")), at)
    return lines.groupBy(f.col("line.key").alias(KEY)).agg(last.alias("last")).select(KEY, f.col("last.row"))


def row_type(changes: DataFrame) -> StructType:
    """Return the type of the rows in typed changes. Raises ConfigError if they aren't typed."""
    kind = changes.schema["after"].dataType if "after" in changes.columns else None
    if not isinstance(kind, StructType):
        raise ConfigError("changes: after has no columns; read them with the option table, or by_table")
    return kind


def quoted(name: str) -> str:
    """Return a column's name in SQL."""
    return f"`{name.replace('`', '``')}`"


def _key_of(image: str, key: Sequence[str]) -> Column:
    return f.struct(*(f.col(image)[name].alias(name) for name in key))


def _line(key: Column, step: int, row: Column) -> Column:
    """Return a line; of one change, the lower step comes first."""
    at = (f.col(name) for name in ORDER)
    return f.struct(*at, f.lit(step).alias("step"), key.alias(KEY), row.alias(ROW))
