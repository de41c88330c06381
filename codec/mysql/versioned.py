"""System-versioned tables of MariaDB: the log has their past rows, too, of which the feed follows none.

The server logs the end of a row as an update that sets ROW END and an insert of the row before it; a row is
present while its ROW END is the largest timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from ...events import Column, Op, Row, RowChange, Table
from .known_table import KnownTable
from .tokens import Tokens

HIDDEN: Final = ("row_start", "row_end")
"""Columns that the server adds after a table's own, unless PERIOD FOR SYSTEM_TIME names others."""

_PRESENT: Final = frozenset({
    datetime(2038, 1, 19, 3, 14, 7, 999999, UTC),
    datetime(2106, 2, 7, 6, 28, 15, 999999, UTC),  # since MariaDB 11.5
})  # fmt: skip


def period_of(statement: str) -> tuple[str, str] | None:
    """Return the columns ROW START and ROW END of a printed CREATE TABLE; None if the table isn't
    system-versioned."""
    if "SYSTEM VERSIONING" not in statement:
        return None
    tokens = Tokens(statement)
    depth, column, (row_start, row_end), is_versioned = 0, "", HIDDEN, False
    while (token := tokens.take()).kind != "end":
        if token.kind == "mark":
            depth += (token.value == "(") - (token.value == ")")
            if depth == 1 and token.value in "(,":
                column = tokens.next.value
        elif token.kind == "word" and token.value == "AS" and tokens.accept("ROW", "START"):
            row_start = column
        elif token.kind == "word" and token.value == "AS" and tokens.accept("ROW", "END"):
            row_end = column
        elif token.kind == "word" and token.value == "WITH" and tokens.accept("SYSTEM", "VERSIONING"):
            is_versioned = depth == 0
    return (row_start, row_end) if is_versioned else None


def logged(known: KnownTable) -> KnownTable:
    """Return a system-versioned table with the columns and the key of its logged rows."""
    whole = known.whole and _logged(known.whole)
    return replace(known, table=_logged(known.table), whole=whole)


def _logged(table: Table) -> Table:
    columns = table.columns
    if table.row_end == HIDDEN[1]:
        columns += tuple(Column(name, "timestamp", scale=6, nullable=False) for name in HIDDEN)
    end = _end_of(table)
    key = (*table.key, end) if table.key and end not in table.key else table.key
    return replace(table, columns=columns, key=key)


def present(changes: Iterable[RowChange], table: Table) -> Iterator[RowChange]:
    """Yield the changes of the present rows among those that were logged."""
    end, count = _end_of(table), len(table.columns)
    for change in changes:
        before = _own(change.before, end, count)
        after = _own(change.after, end, count)
        if before is not None or after is not None:
            op: Op = "insert" if before is None else "delete" if after is None else "update"
            yield RowChange(change.commit_ts, change.start_ts, table, op, before, after)


def _end_of(table: Table) -> int:
    """Return the number of ROW END in a logged row."""
    if table.row_end == HIDDEN[1]:
        return len(table.columns) + 1
    return next(i for i, column in enumerate(table.columns) if column.name == table.row_end)


def _own(row: Row | None, end: int, count: int) -> Row | None:
    """Return the table's own columns of a logged row; None if that is past."""
    return row[:count] if row is not None and row[end] in _PRESENT else None
