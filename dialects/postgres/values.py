"""Values of a PostgreSQL table as they are compared: numbers, bytes, and otherwise the text that it prints.

The session is a sink's own: in UTC, with ISO dates.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from ipaddress import ip_address
from math import copysign
from typing import Any, NamedTuple, TypeAlias, assert_never

from ...codec.text import datetime_text, time_text
from ...events import AS_BYTES, WITH_DATE, Column
from ..statement import quoted
from .text import name
from .types import INTEGERS

Convert: TypeAlias = Callable[[Any], Any]
"""Convert a value that isn't NULL."""


class Form(NamedTuple):
    """The stored form of one column."""

    expression: str
    """SQL of the selected value."""
    read: Convert
    """The stored form of what the driver returns."""
    stored: Convert
    """The stored form of a value of the source."""
    source: Convert
    """The source's value of a stored form. Raises ValueError if it has none."""


def form_of(column: Column, type_: str) -> Form:
    """Return the form of a column of that type."""
    own, kind = name(column.name), column.kind
    if kind in INTEGERS:
        return Form(own, int, int, int)
    if kind in AS_BYTES:
        return Form(own, bytes, bytes, bytes)
    if type_ == "text" and kind in WITH_DATE:
        return Form(
            own, str, lambda value: datetime_text(value, column.scale) if kind != "date" else str(value), str
        )
    match kind:
        case "decimal":
            return Form(own, _fixed(column.scale), _fixed(column.scale), Decimal)
        case "float":
            return Form(own, lambda value: _signed(_single(value)), _signed, float)
        case "double":
            return Form(own, _signed, _signed, float)
        case "bit":
            return Form(f"{own}::text", lambda value: int(value, 2), int, int)
        case "date":
            return Form(f"{own}::text", str, str, date.fromisoformat)
        case "datetime":
            return Form(f"{own}::text", str, _moment, datetime.fromisoformat)
        case "timestamp":
            return Form(f"{own}::text", str, lambda value: f"{_moment(value)}+00", _instant)
        case "time":
            return Form(f"{own}::text", str, lambda value: _trimmed(time_text(value)), _duration)
        case "inet4" | "inet6":
            return Form(f"host({own})", _address, _address, str)
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "char" | "varchar" | "text"
            | "binary" | "varbinary" | "blob" | "year" | "enum" | "set" | "json" | "uuid" | "geometry"
            | "vector"
        ):  # fmt: skip
            return Form(f"{own}::text", str, str, str)
        case _:
            assert_never(kind)


def literal(column: Column, value: object) -> str:
    """Return a stored value as SQL text, of a type that its context must tell."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'"
    return quoted(format(value, f"0{column.length}b") if column.kind == "bit" else str(value))


def _fixed(scale: int) -> Convert:
    return lambda value: f"{value:.{scale}f}"


def _single(value: float) -> float:
    """Return the value of 32 bits that is printed like this."""
    single: float = struct.unpack("f", struct.pack("f", value))[0]
    return single


def _signed(value: float) -> object:
    """Return a negative zero as text: it equals another zero."""
    return "-0.0" if value == 0 and copysign(1, value) < 0 else float(value)


def _trimmed(text: str) -> str:
    return text.rstrip("0").removesuffix(".") if "." in text else text


def _moment(value: datetime | str) -> str:
    return _trimmed(datetime_text(value))


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _duration(text: str) -> timedelta:
    sign = -1 if text.startswith("-") else 1
    hours, minutes, seconds = text.removeprefix("-").split(":")
    micros = round(Decimal(seconds) * 1_000_000)
    return sign * timedelta(hours=int(hours), minutes=int(minutes), microseconds=micros)


def _address(text: str) -> str:
    return str(ip_address(text))
