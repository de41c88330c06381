"""Detection of changed columns in a stream with typed columns.

By default every change stops the stream: its columns are those at `load()`, and the source must still have
them at the query's start. Rows after the start must have exactly these columns. Rows before it may lack
columns that were added later, which are null.

A stream that evolves stops only at rows with a column that it lacks, or whose type isn't held by its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from ...errors import ConfigError, SourceError
from ...events import Table
from ..offsets.offset import Offset, Offsets
from .schema import column_type
from .widening import holds

Check: TypeAlias = Callable[[Table], None]
"""Called with the table of a row. Raises SourceError if the row doesn't fit the columns."""

EVOLVE: Final = "evolve"
"""Value of the option schemaChanges."""

_GO_ON: Final = "load() again and start the query with the same checkpointLocation"


def query_start(offsets: Offsets, table: Table, compare: Callable[[Table, Table], str]) -> Offset:
    """Return the source's end. Raises ConfigError if the table's columns don't fit `table` there."""
    end = offsets.latest()
    (now,) = offsets.tables()
    if change := compare(table, now):
        raise ConfigError(
            f"{table.full_name} was changed after load(), which the query has its columns from: {change}; "
            f"{_GO_ON}"
        )
    return end


def since_start(table: Table) -> Check:
    """Return a check of rows after the query's start: they have exactly the columns of `table`."""

    def check(now: Table) -> None:
        if change := difference(table, now):
            raise SourceError(
                f"{table.full_name} was changed while the query reads it: {change}; nothing of this batch "
                f"was given: {_GO_ON}, which then has the columns of now (option schemaChanges = fail)"
            )

    return check


def before_start(table: Table) -> Check:
    """Return a check of rows before the query's start: `table` has each of their columns."""

    def check(now: Table) -> None:
        if gone := _only_in(now, table):
            raise SourceError(
                f"rows of {table.full_name} have the column {', '.join(gone)}, and the table had no such "
                "column any more when the query started: leave out the option table, the raw envelope holds "
                "it; or begin after these rows, with another checkpointLocation"
            )

    return check


def held_by(table: Table) -> Check:
    """Return a check of rows of a stream that evolves: `table` holds them."""

    def check(now: Table) -> None:
        if change := excess(table, now):
            raise SourceError(
                f"{table.full_name} has rows that the query's columns don't hold: {change}; nothing of this "
                f"batch was given: {_GO_ON} and a wider schema (option schemaChanges = evolve)"
            )

    return check


def difference(before: Table, after: Table) -> str:
    """Describe the differences of the columns of `after` from those of `before`; empty: none."""
    types = {column.name: column_type(column).simpleString() for column in before.columns}
    added = [f"column {name} was added" for name in _only_in(after, before)]
    gone = [f"column {name} is gone" for name in _only_in(before, after)]
    retyped = [
        f"column {column.name} was {types[column.name]} and is {new}"
        for column in after.columns
        if column.name in types and (new := column_type(column).simpleString()) != types[column.name]
    ]
    return ", ".join([*added, *gone, *retyped])


def excess(table: Table, other: Table) -> str:
    """Describe what the columns of `table` don't hold of those of `other`; empty: they hold everything."""
    types = {column.name: column_type(column) for column in table.columns}
    added = [f"column {name} was added" for name in _only_in(other, table)]
    retyped = [
        f"column {column.name} was {types[column.name].simpleString()} and is {new.simpleString()}"
        for column in other.columns
        if column.name in types and not holds(types[column.name], new := column_type(column))
    ]
    return ", ".join([*added, *retyped])


def _only_in(table: Table, other: Table) -> list[str]:
    names = {column.name for column in other.columns}
    return [column.name for column in table.columns if column.name not in names]
