"""Rows of every type as a MariaDB wrote them, in a file that people can read.

A block of the file is a column's definition and a literal a line; after "----" come the bytes of the
binlog and of the binary protocol, then for each literal the decoded value and what the server prints.
"""

from __future__ import annotations

from ast import literal_eval
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from msgspec import Struct

from tidemill.codec.mysql.layout import Layouts
from tidemill.events import Column, RowChange
from tidemill.testing import cases

TYPES = Path(__file__).with_name("types.txt")
_PRINTED = "  <- "


class Vector(Struct):
    """Rows of a table (id INT NOT NULL PRIMARY KEY, c <definition>, z TINYINT NOT NULL); z is -id."""

    definition: str
    literals: list[str]
    table_map: bytes = b""
    events: tuple[bytes, ...] = ()
    """The rows events of one INSERT of all literals."""
    packets: bytes = b""
    """The rows in the binary protocol, selected as a snapshot does."""
    printed: tuple[str | bytes | None, ...] = ()
    """The result of SELECT c; bytes for binary and bit columns."""
    outcome: tuple[str, ...] = ()
    """A line for each row: its value, and what the server prints."""

    def from_binlog(self) -> list[RowChange]:
        layouts = Layouts()
        layout = layouts.layout(layouts.number_of(self.table_map))
        return [change for event in self.events for change in layout.decode_rows(event, 1, 1)]

    def from_snapshot(self) -> list[RowChange]:
        layouts = Layouts()
        table = layouts.layout(layouts.number_of(self.table_map)).table
        return layouts.layout(layouts.add_table(table)).result_run(self.packets, 1, 1).changes()


def load(path: Path = TYPES) -> list[Vector]:
    return [_parse(case) for case in cases.load(path)]


def save(vectors: list[Vector], path: Path = TYPES) -> None:
    path.write_text(cases.text_of(map(_block, vectors)))


def outcome(vector: Vector) -> tuple[str, ...]:
    values = [change.after[1] for change in vector.from_binlog() if change.after is not None]
    return tuple(f"{value!r}{_PRINTED}{text!r}" for value, text in zip(values, vector.printed, strict=True))


def _parse(case: cases.Case) -> Vector:
    definition, *literals = case.given.split("\n")
    if not case.wanted:
        return Vector(definition, literals)
    table_map, events, packets, *lines = case.wanted.split("\n")
    return Vector(
        definition,
        literals,
        bytes.fromhex(table_map),
        tuple(bytes.fromhex(event) for event in events.split(" ")),
        bytes.fromhex(packets),
        tuple(literal_eval(line.rpartition(_PRINTED)[2]) for line in lines),
        tuple(lines),
    )


def _block(vector: Vector) -> tuple[str, str]:
    events = " ".join(event.hex() for event in vector.events)
    recorded = [vector.table_map.hex(), events, vector.packets.hex(), *outcome(vector)]
    return "\n".join([vector.definition, *vector.literals]), "\n".join(recorded)


def as_printed(column: Column, value: Any) -> str | bytes | None:
    """A decoded value as the server prints it."""
    match value:
        case str() if column.kind == "enum" and value not in column.members:
            return ""
        case None | str() | bytes():
            return value
        case int():
            if column.kind == "bit":
                return value.to_bytes((column.length + 7) // 8, "big")
            return f"{value:04d}" if column.kind == "year" else str(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            text = value.replace(tzinfo=None).isoformat(" ", "microseconds")
            return text[: 20 + column.scale] if column.scale else text[:19]
        case date():
            return value.isoformat()
        case timedelta():
            seconds, fraction = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
            text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:06d}"
            text = text[: len(text) - 7] if not column.scale else text[: len(text) - 6 + column.scale]
            return f"-{text}" if value < timedelta() else text
    raise TypeError(value)
