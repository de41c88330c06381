"""Values as the server's client prints them, by the forms of the recorded rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from struct import pack, unpack
from typing import Any

from tidemill.events import Column, not_a_member

from .recorded import Expected


def agrees(row: Expected, when: str, column: Column, value: Any) -> bool:
    """True if the value is what the server printed; with every bit of a float."""
    described = next(c for c in row.columns if c["name"] == column.name)
    image = row.image(when)
    assert image is not None
    text = image[column.name]
    if value is None or text is None:
        return value is text
    exact = row.exact(when, column.name)
    match column.kind:
        case "float":
            (single,) = unpack("<f", pack("<f", float(exact or text)))
            return repr(value) == repr(single)
        case "double":
            return repr(value) == repr(float(exact or text))
    if column.kind == "enum" and exact == "0":
        return bool(value == not_a_member(column.members))
    if "zerofill" in described["type"]:
        return Decimal(value) == Decimal(text)
    return printed(described["form"], column, value) == text


def printed(form: str, column: Column, value: Any) -> str:
    if form == "hex":
        return bytes(value).hex().upper()
    if form == "uint":
        return str(int(value))
    match value:
        case Decimal():
            return format(value, "f")
        case datetime():
            assert (value.tzinfo is UTC) == (column.kind == "timestamp")
            return value.strftime(f"{value.year:04d}-%m-%d %H:%M:%S") + _fraction(value.microsecond, column)
        case date():
            return value.isoformat()
        case timedelta():
            seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
            clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
            return "-" * (value < timedelta()) + clock + _fraction(micros, column)
        case int() if column.kind == "year":
            return f"{value:04d}"
    return str(value)


def _fraction(micros: int, column: Column) -> str:
    return f".{micros:06d}"[: column.scale + 1] if column.scale else ""
