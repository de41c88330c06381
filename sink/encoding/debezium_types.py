"""Kafka Connect's types of columns and their values, as Debezium maps MySQL's."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import repeat
from operator import floordiv, sub
from typing import Any, Final, assert_never

import msgspec

from ...codec.text import datetime_text
from ...events import Column, Kind, Table
from .columns import Values
from .definition import has_digits
from .encoder import refuse
from .json_text import base64_text
from .numbers import json_number, single_text, vector_text
from .options import DebeziumOptions

NAME: Final = "debezium"

_INTEGERS: Final[dict[Kind, tuple[str, str]]] = {
    "tinyint": ("int16", "int16"),
    "smallint": ("int16", "int32"),
    "mediumint": ("int32", "int32"),
    "int": ("int32", "int64"),
    "bigint": ("int64", "int64"),
}
"""Types, signed and unsigned."""

_DAY_ZERO: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - a datetime has no zone
_MICROSECOND: Final = timedelta(microseconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)
_TOO_LARGE: Final = 2**63


def connect_type(table: Table, column: Column, options: DebeziumOptions) -> tuple[str, str, dict[str, str]]:
    """Return the type in Kafka Connect, the name of its meaning if it has one, and its parameters."""
    match column.kind:
        case "bigint" if column.unsigned and options.bigint_unsigned_handling_mode == "string":
            return "string", "", {}
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            return _INTEGERS[column.kind][column.unsigned], "", {}
        case "float":
            return "double" if has_digits(column) else "float", "", {}
        case "double":
            return "double", "", {}
        case "decimal":
            return options.decimal_handling_mode, "", {}
        case "bit" if column.length == 1:
            return "boolean", "", {}
        case "bit":
            return "bytes", "io.debezium.data.Bits", {"length": str(column.length)}
        case "date":
            return "int32", "io.debezium.time.Date", {}
        case "time":
            return "int64", "io.debezium.time.MicroTime", {}
        case "datetime":
            return "int64", f"io.debezium.time.{'MicroTimestamp' if column.scale > 3 else 'Timestamp'}", {}
        case "timestamp":
            return "string", "io.debezium.time.ZonedTimestamp", {}
        case "year":
            return "int32", "io.debezium.time.Year", {}
        case "enum" | "set":
            name = "Enum" if column.kind == "enum" else "EnumSet"
            return "string", f"io.debezium.data.{name}", {"allowed": ",".join(column.members)}
        case "json":
            return "string", "io.debezium.data.Json", {}
        case "vector":
            return "string", "io.debezium.data.TiDBVectorFloat32", {}
        case "geometry":
            refuse(NAME, table, column.name, "it has no form for a geometry")
        case "char" | "varchar" | "text" | "binary" | "varbinary" | "blob" | "uuid" | "inet4" | "inet6":
            pass
        case _:
            assert_never(column.kind)
    return "string", "", {}


def conversion(
    table: Table, column: Column, options: DebeziumOptions
) -> Callable[[Values], Sequence[object]] | None:
    """Return a function from values to those that JSON holds; None if they stay as they are."""
    convert = _conversion(table, column, options)
    if convert is None:
        return None

    def convert_each(values: Values) -> Sequence[object]:
        return [None if value is None else convert(value) for value in values]

    if column.kind != "datetime":
        return convert_each
    unit = _MICROSECOND if column.scale > 3 else _MILLISECOND

    def convert_datetimes(values: Values) -> Sequence[object]:
        try:
            return list(map(floordiv, map(sub, values, repeat(_EPOCH)), repeat(unit)))
        except TypeError:  # of NULL or a zero date
            return convert_each(values)

    return convert_datetimes


def _conversion(table: Table, column: Column, options: DebeziumOptions) -> Callable[[Any], Any] | None:
    """Return conversion() for one value that isn't NULL."""
    exact = options.refuse_inexact

    def inexact(reason: str) -> None:
        if exact:
            refuse(NAME, table, column.name, f"{reason}; or set refuse-inexact = false")

    match column.kind:
        case "bigint" if column.unsigned:
            if options.bigint_unsigned_handling_mode == "string":
                return str
            return lambda value: value if value < _TOO_LARGE else _wrapped(value, inexact)
        case "float":
            return lambda value: msgspec.Raw(json_number(single_text(value)).encode())
        case "double":
            return _double
        case "decimal" if options.decimal_handling_mode == "string":
            return lambda value: f"{value:.{column.scale}f}"
        case "decimal":
            return lambda value: _decimal(value, inexact)
        case "bit" if column.length == 1:
            return bool
        case "bit":
            size = (column.length + 7) // 8
            return lambda value: b64encode(value.to_bytes(size, "little")).decode()
        case "binary" | "varbinary" | "blob":
            return base64_text
        case "date":
            return lambda value: _date(value, column, inexact)
        case "time":
            return lambda value: value // _MICROSECOND
        case "datetime":
            unit = _MICROSECOND if column.scale > 3 else _MILLISECOND
            return lambda value: _datetime(value, unit, column, inexact)
        case "timestamp":
            return lambda value: _timestamp(value, column, inexact)
        case "vector":
            return vector_text
        case "enum":
            return lambda value: value if value in column.members else _invalid_member(column, inexact)
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "char" | "varchar" | "text" | "year"
            | "set" | "json" | "uuid" | "inet4" | "inet6" | "geometry"
        ):  # fmt: skip
            return None
        case _:
            assert_never(column.kind)


def _invalid_member(column: Column, inexact: Callable[[str], None]) -> str:
    if "" in column.members:
        inexact("an invalid value would read as the member ''")
    return ""


def _wrapped(value: int, inexact: Callable[[str], None]) -> int:
    inexact('a value from 2^63 on is no int64: set bigint-unsigned-handling-mode = "string"')
    return value - 2**64


def _double(value: float) -> msgspec.Raw:
    return msgspec.Raw(json_number(repr(value)).encode())


def _decimal(value: Decimal, inexact: Callable[[str], None]) -> msgspec.Raw:
    nearest = float(value)
    text = repr(nearest)
    if Decimal(text) != value:
        inexact(f'{value} is no double: set decimal-handling-mode = "string"')
    return msgspec.Raw(json_number(text if nearest else "0.0").encode())


def _zero(column: Column, inexact: Callable[[str], None]) -> int | None:
    inexact("it has no form for a zero or partial date")
    return None if column.nullable else 0


def _date(value: date | str, column: Column, inexact: Callable[[str], None]) -> int | None:
    if isinstance(value, str):
        return _zero(column, inexact)
    return value.toordinal() - _DAY_ZERO


def _datetime(
    value: datetime | str, unit: timedelta, column: Column, inexact: Callable[[str], None]
) -> int | None:
    if isinstance(value, str):
        return _zero(column, inexact)
    return (value - _EPOCH) // unit


def _timestamp(value: datetime | str, column: Column, inexact: Callable[[str], None]) -> str:
    if isinstance(value, str):
        inexact("it has no form for a zero timestamp")
        return "1970-01-01T00:00:00Z"
    return datetime_text(value.astimezone(UTC), column.scale).replace(" ", "T") + "Z"
