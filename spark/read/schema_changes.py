"""Detection of changed columns in a stream with typed columns; every change stops the stream.

The columns are those at `load()`, and the source must still have them at the query's start. Rows after the
start must have exactly these columns. Rows before it may lack columns that were added later, which are null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...errors import ConfigError, SourceError
from ...events import Table
from ..offsets.offset import Offset, Offsets
from .schema import column_type

Check: TypeAlias = Callable[[Table], None]
"""Called with the table of a row. Raises SourceError if the row doesn't fit the columns."""

_GO_ON = "load() again and start the query with the same checkpointLocation"


def query_start(offsets: Offsets, table: Table) -> Offset:
    """Return the source's end. Raises ConfigError if the table's columns differ there from `table`."""
    end = offsets.latest()
    (now,) = offsets.tables()
    if change := difference(table, now):
        raise ConfigError(
            f"{table.full_name} was changed after load(), which the query has its columns from: {change}; "
            f"{_GO_ON}"
        )
    return end


def since_start(table: Table) -> Check:
    """Return a check of rows after the query's start: they have exactly the columns of `table`."""

    def check(found: Table) -> None:
        if change := difference(table, found):
            raise SourceError(
                f"{table.full_name} was changed while the query reads it: {change}; nothing of this batch "
                f"was given: {_GO_ON}, which then has the columns of now (option schemaChanges = fail)"
            )

    return check


def before_start(table: Table) -> Check:
    """Return a check of rows before the query's start: `table` has each of their columns."""

    def check(found: Table) -> None:
        if gone := _only_in(found, table):
            raise SourceError(
                f"rows of {table.full_name} have the column {', '.join(gone)}, and the table had no such "
                "column any more when the query started: leave out the option table, the raw envelope holds "
                "it; or begin after these rows, with another checkpointLocation"
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


def _only_in(table: Table, other: Table) -> list[str]:
    names = {column.name for column in other.columns}
    return [column.name for column in table.columns if column.name not in names]
