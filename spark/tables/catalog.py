"""Changes merged by MERGE INTO into a table of a catalog: Delta Lake, Iceberg or Hudi."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from pyspark.sql import DataFrame

from .last_changes import KEY, ROW, last_changes, quoted, row_type


def merge_into(changes: DataFrame, target: str, *, key: Sequence[str]) -> None:
    """Apply the typed changes of one table to `target`, a table's name in SQL, in one statement.

    The target must have the changes' columns. The same changes again leave it as it is. Raises ConfigError
    for a key, and Spark's error if the target can't be merged into.
    """
    spark = changes.sparkSession
    last = last_changes(changes, key)
    view = f"tidemill_{uuid4().hex}"
    last.createOrReplaceTempView(view)
    try:
        spark.sql(merge_statement(target, view, row_type(changes).names, key))
    finally:
        spark.catalog.dropTempView(view)


def merge_statement(target: str, changes: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """Return the statement that merges a view of `last_changes` into a target."""
    on = " AND ".join(f"t.{quoted(name)} <=> c.{KEY}.{quoted(name)}" for name in key)
    names = [quoted(name) for name in columns]
    values = [f"c.{ROW}.{name}" for name in names]
    pairs = ", ".join(f"t.{name} = {value}" for name, value in zip(names, values, strict=True))
    return (
        f"MERGE INTO {target} t USING {changes} c ON {on}\n"
        f"WHEN MATCHED AND c.{ROW} IS NULL THEN DELETE\n"
        f"WHEN MATCHED THEN UPDATE SET {pairs}\n"
        f"WHEN NOT MATCHED AND c.{ROW} IS NOT NULL "
        f"THEN INSERT ({', '.join(names)}) VALUES ({', '.join(values)})"
    )
