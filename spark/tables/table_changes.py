"""The changes of one table in a micro-batch, in the order in which a copy takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ...errors import ConfigError
from ...events import Ddl, Table
from ..read.schema import lacks_schema_changes, told_table
from .alteration import Alteration
from .last_changes import ORDER, row_type

Order: TypeAlias = tuple[int, int, int]
"""A change's commit_ts, start_ts and sequence."""

NOTHING: Final = (0, 0, 0)
"""Order before every change."""


class RowStep(NamedTuple):
    """Typed changes of rows, between two schema changes."""

    frame: DataFrame
    table: Table | None
    """The table's definition; None if the frame doesn't tell."""


class TableChanges(NamedTuple):
    """Changes of rows, and the schema changes between them, in order. Given by `TypedTables.changes`."""

    spark: SparkSession
    name: str
    """The table's full name."""
    steps: tuple[RowStep | Ddl, ...]
    end: Order
    """Order of the last change."""

    @property
    def statements(self) -> Iterator[Ddl]:
        return (step for step in self.steps if isinstance(step, Ddl))


def changes_of(changes: DataFrame | TableChanges) -> TableChanges:
    """Return the changes of a typed frame, which has no schema changes. Raises ConfigError for others."""
    if isinstance(changes, TableChanges):
        return changes
    kind = row_type(changes)
    if lacks_schema_changes(changes.schema):
        raise ConfigError(
            "changes: they were read without schema changes, so a copy would miss a TRUNCATE or a RENAME: "
            "leave the option operations out, or give it ddl too"
        )
    table = told_table(changes.schema)
    if table is not None and [column.name for column in table.columns] != kind.names:
        table = None
    last = changes.agg(f.max(f.struct(*ORDER)).alias("end")).collect()[0].end
    name = "the table" if table is None else table.full_name
    end = NOTHING if last is None else (last.commit_ts, last.start_ts, last.sequence)
    return TableChanges(changes.sparkSession, name, (RowStep(changes, table),), end)


def check_key(key: Sequence[str] | None, effect: Alteration) -> None:
    """Raise ConfigError if the primary key becomes one that a given key isn't enough for."""
    if key is not None and effect.key is not None and not {*effect.key} <= {*key}:
        raise ConfigError(
            f"key: the table's primary key became {', '.join(effect.key) or 'none'}, so {', '.join(key)} may "
            "not identify its rows any more: leave the key out, or give columns that do"
        )


def key_of(changes: TableChanges, rows: RowStep, key: Sequence[str] | None) -> Sequence[str]:
    """Return the columns that identify a row: `key`, or the primary key. Raises ConfigError without one."""
    table = rows.table
    found = key if key is not None else table and [table.columns[index].name for index in table.key]
    if not found:
        what = "it is empty" if key is not None else f"{changes.name} has no primary key"
        names = ", ".join(row_type(rows.frame).names)
        raise ConfigError(f"key: {what}; give columns that identify a row, out of {names}")
    return found
