"""One line of the file: commit ts, kind, and content as JSON.

A `table` line defines the table of the `insert`, `update` and `delete` lines after it. A transaction is the
lines of one ts, up to and including a `commit` line.
"""

from __future__ import annotations

import csv
import io
from typing import Any, Final

import msgspec
from msgspec import Struct

from tidemill.errors import SinkError, SourceError
from tidemill.events import RowChange, Table

KINDS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "char", "varchar", "text"})
"""Kinds of columns whose values JSON represents exactly."""


csv.field_size_limit(1 << 30)  # else rows above 128 KiB can't be read


class Line(Struct, frozen=True):
    ts: int
    what: str
    """table, insert, update, delete or commit."""
    content: str = ""


class Change(Struct, frozen=True):
    """The content of a row's line."""

    table: str
    """Full name."""
    before: list[Any] | None = None
    after: list[Any] | None = None


def encode(line: Line) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow([line.ts, line.what, line.content])
    return text.getvalue().encode()


def decode(line: bytes) -> Line:
    """Parse a line. Raises SourceError for an invalid line."""
    try:
        (ts, what, content), *_ = csv.reader([line.decode()])
        return Line(int(ts), what, content)
    except (ValueError, csv.Error) as error:
        raise SourceError(f"{line[:100]!r} isn't a line of changes: {error}") from None


def table_line(ts: int, table: Table) -> Line:
    """Raise SinkError for a column that JSON can't represent exactly."""
    for column in table.columns:
        if column.kind not in KINDS:
            raise SinkError(
                f"{table.full_name}.{column.name} is of the kind {column.kind}, which a csv sink doesn't "
                f"take; accepted: {', '.join(sorted(KINDS))}"
            )
    return Line(ts, "table", msgspec.json.encode(table).decode())


def row_line(change: RowChange) -> Line:
    before = None if change.before is None else list(change.before)
    after = None if change.after is None else list(change.after)
    content = Change(change.table.full_name, before, after)
    return Line(change.commit_ts, change.op, msgspec.json.encode(content).decode())
