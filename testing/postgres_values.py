"""Values of a PostgreSQL target as Python values, from the text that the server prints in UTC.

It shares no code with the writer that it tests.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from ipaddress import ip_address
from typing import assert_never

from ..codec.text import datetime_text, time_text
from ..events import Column
from .column_kinds import float32


def from_postgres(column: Column, text: str | None) -> object:
    """Return the value that `column` of the source has."""
    if text is None:
        return None
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year":
            return int(text)
        case "bit":
            return int(text, 2)
        case "decimal":
            return Decimal(text)
        case "float":
            return float32(float(text))
        case "double":
            return float(text)
        case "binary" | "varbinary" | "blob" | "geometry" | "vector":
            return bytes.fromhex(text.removeprefix("\\x"))
        case "date" | "datetime" | "timestamp":
            return _moment(column, text)
        case "time":
            return _interval(text)
        case "inet4" | "inet6":
            return str(ip_address(text.partition("/")[0]))
        case "char" | "varchar" | "text" | "enum" | "set" | "json" | "uuid":
            return text
        case _:
            assert_never(column.kind)


def as_printed(column: Column, text: str | None) -> object:
    """Return the value, but a decimal or a time as the text that the source prints."""
    value = from_postgres(column, text)
    match value:
        case timedelta():
            return time_text(value, column.scale)
        case datetime():
            return datetime_text(value.replace(tzinfo=None), column.scale)
        case date() | Decimal():
            return str(value)
    return value


def _moment(column: Column, text: str) -> object:
    try:
        if column.kind == "date":
            return date.fromisoformat(text)
        time = datetime.fromisoformat(re.sub(r"\+00$", "", text))
    except ValueError:
        return text
    return time.replace(tzinfo=UTC) if column.kind == "timestamp" else time


def _interval(text: str) -> timedelta:
    sign, hours, minutes, seconds = re.fullmatch(r"(-?)(\d+):(\d\d):(\d\d(?:\.\d+)?)", text).groups()  # type: ignore[union-attr]
    micros = round(Decimal(seconds) * 1_000_000)
    value = timedelta(hours=int(hours), minutes=int(minutes), microseconds=micros)
    return -value if sign else value
