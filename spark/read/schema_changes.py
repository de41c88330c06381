"""Changes of a typed table's columns, seen by a stream that has columns of its own: each stops it.

The columns are those that `load()` found, and the source has at the place where the query starts. Rows from
there on must have exactly these. A row from before may lack columns that were added later, which are null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...errors import ConfigError, SourceError
from ...events import Table
from ..offsets.offset import Offset, Offsets
from .schema import column_type

Check: TypeAlias = Callable[[Table], None]
"""Takes the layout of a row. Raises SourceError if the row doesn't fit."""

_GO_ON = "load() again and start the query with the same checkpointLocation"


def query_start(offsets: Offsets, table: Table) -> Offset:
    """Return the source's end, at which the table has the columns of `table`.

    Raises ConfigError if it has others.
    """
    end = offsets.latest()
    (now,) = offsets.tables()
    if change := difference(table, now):
        raise ConfigError(
            f"{table.full_name} was changed after load(), which the query has its columns from: {change}; "
            f"{_GO_ON}"
        )
    return end


def since_start(table: Table) -> Check:
    """Of rows after the query's start: they have the columns of `table`, and no others."""

    def check(found: Table) -> None:
        if change := difference(table, found):
            raise SourceError(
                f"{table.full_name} was changed while the query reads it: {change}; nothing of this batch "
                f"was given: {_GO_ON}, which then has the columns of now (option schemaChanges = fail)"
            )

    return check


def before_start(table: Table) -> Check:
    """Of rows before the query's start: `table` has a place for each of their columns."""

    def check(found: Table) -> None:
        if gone := _only_in(found, table):
            raise SourceError(
                f"rows of {table.full_name} have the column {', '.join(gone)}, and the table had no such "
                "column any more when the query started: leave out the option table, the raw envelope holds "
                "it; or begin after these rows, with another checkpointLocation"
            )

    return check


def difference(before: Table, after: Table) -> str:
    """Return what a reader of the columns of `before` doesn't know of `after`; empty: nothing."""
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
