"""Values of a script, in the form in which a column holds them (`events.Column`)."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from functools import partial
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias, assert_never
from uuid import UUID

from ...codec.mysql.values import printed_inet6
from ...events import Column

Hold: TypeAlias = Callable[[object], object]

_INTEGER_BYTES: Final = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
_DATE: Final = re.compile(r"\d{4}-(?:0\d|1[0-2])-(?:[0-2]\d|3[01])")
_CLOCK: Final = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?")
_EXACT: Final = Context(prec=130)
_MAX_TIME: Final = timedelta(hours=839) - timedelta(microseconds=1)


class _Misfit(Exception):
    """The column holds other values: the message says which."""


def holder(column: Column) -> Hold:
    """Return the function from a value to the same value as the column holds it.

    It raises ValueError for a value that the column can't hold exactly.
    """
    convert = _converter(column)

    def hold(value: object) -> object:
        if value is None:
            if not column.nullable:
                raise ValueError(f"column {column.name} is NOT NULL")
            return None
        try:
            return convert(value)
        except _Misfit as misfit:
            raise ValueError(f"column {column.name} takes {misfit}, not {value!r}") from None

    return hold


def _converter(column: Column) -> Hold:
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            bits = 8 * _INTEGER_BYTES[column.kind]
            low, high = (0, 1 << bits) if column.unsigned else (-(1 << bits - 1), 1 << bits - 1)
            return partial(_integer, low=low, high=high)
        case "bit":
            return partial(_integer, low=0, high=1 << column.length)
        case "year":
            return _year
        case "decimal":
            return partial(_decimal, column=column)
        case "float" | "double":
            return partial(_float, packing=struct.Struct("<f" if column.kind == "float" else "<d"))
        case "char" | "varchar":
            return partial(_text, column=column)
        case "text":
            return partial(_limited, most_bytes=(1 << 8 * column.length) - 1)
        case "json":
            return _json
        case "binary" | "varbinary":
            return partial(_bytes, column=column)
        case "blob" | "geometry":
            return partial(_blob, most_bytes=(1 << 8 * (column.length or 4)) - 1)
        case "date":
            return _date
        case "datetime" | "timestamp":
            return partial(_moment, column=column)
        case "time":
            return partial(_time, scale=column.scale)
        case "enum":
            return partial(_member, members=column.members)
        case "set":
            return partial(_members, members=column.members)
        case "uuid":
            return _uuid
        case "inet4":
            return _inet4
        case "inet6":
            return _inet6
        case "vector":
            raise ValueError(f"column {column.name}: the emulator has no VECTOR")
        case _:
            assert_never(column.kind)


def _integer(value: object, low: int, high: int) -> int:
    if not isinstance(value, int) or not low <= value < high:
        raise _Misfit(f"integers from {low} to {high - 1}")
    return int(value)


def _year(value: object) -> int:
    if not isinstance(value, int) or not (value == 0 or 1901 <= value <= 2155):
        raise _Misfit("0 and years from 1901 to 2155")
    return value


def _decimal(value: object, column: Column) -> Decimal:
    misfit = _Misfit(f"decimals of {column.length} digits, {column.scale} after the point")
    if not isinstance(value, Decimal | int | str):
        raise misfit
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise misfit from None
    if not number.is_finite() or number.copy_abs() >= 10 ** (column.length - column.scale):
        raise misfit
    scaled = number.scaleb(column.scale, context=_EXACT)
    if scaled != scaled.to_integral_value() or (column.unsigned and number < 0):
        raise misfit
    return Decimal(f"{number:.{column.scale}f}") if number else Decimal(0).scaleb(-column.scale)


def _float(value: object, packing: struct.Struct) -> float:
    if not isinstance(value, float | int) or value != value or abs(value) == float("inf"):
        raise _Misfit("finite numbers")
    (number,) = packing.unpack(packing.pack(value))
    return float(number)


def _text(value: object, column: Column) -> str:
    if not isinstance(value, str) or len(value) > column.length:
        raise _Misfit(f"strings of up to {column.length} characters")
    return value.rstrip(" ") if column.kind == "char" else value


def _limited(value: object, most_bytes: int) -> str:
    if not isinstance(value, str) or len(value.encode()) > most_bytes:
        raise _Misfit(f"strings of up to {most_bytes} bytes")
    return value


def _json(value: object) -> str:
    if not isinstance(value, str):
        try:
            return json.dumps(value, ensure_ascii=False)
        except TypeError:
            raise _Misfit("JSON") from None
    try:
        json.loads(value)
    except ValueError:
        raise _Misfit("JSON as text") from None
    return value


def _bytes(value: object, column: Column) -> bytes:
    if not isinstance(value, bytes) or len(value) > column.length:
        raise _Misfit(f"up to {column.length} bytes")
    return value.ljust(column.length, b"\0") if column.kind == "binary" else value


def _blob(value: object, most_bytes: int) -> bytes:
    if not isinstance(value, bytes) or len(value) > most_bytes:
        raise _Misfit(f"up to {most_bytes} bytes")
    return value


def _date(value: object) -> date | str:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            if _DATE.fullmatch(value):  # one that no calendar has
                return value
            raise _Misfit("dates such as '2026-03-01'") from None
    if not isinstance(value, date) or isinstance(value, datetime):
        raise _Misfit("dates")
    return value


def _moment(value: object, column: Column) -> datetime | str:
    scale = column.scale
    if isinstance(value, str):
        text = value
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            return _without_calendar(text, column)
    if not isinstance(value, datetime) or value.microsecond % 10 ** (6 - scale):
        raise _Misfit(f"datetimes with {scale} digits of a second's fraction")
    if column.kind == "datetime":
        if value.tzinfo is not None:
            raise _Misfit("datetimes without a time zone")
        return value
    value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if not 0 < value.timestamp() < 1 << 31:
        raise _Misfit("datetimes from 1970 to 2038")
    return value


def _without_calendar(text: str, column: Column) -> str:
    """Return a date and time that no calendar has; of a TIMESTAMP only that of zeros."""
    day, _, clock = text.partition(" ")
    matched = _CLOCK.fullmatch(clock or "00:00:00")
    if not _DATE.fullmatch(day) or matched is None or len(matched[1] or ".") > column.scale + 1:
        raise _Misfit("dates and times such as '2026-03-01 12:00:00'")
    whole = f"{day} {matched[0][:8]}"
    if column.kind == "timestamp" and whole != "0000-00-00 00:00:00":
        raise _Misfit("dates and times such as '2026-03-01 12:00:00'")
    return whole + ("." + (matched[1] or ".")[1:].ljust(column.scale, "0")) * bool(column.scale)


def _time(value: object, scale: int) -> timedelta:
    if not isinstance(value, timedelta) or abs(value) > _MAX_TIME or value.microseconds % 10 ** (6 - scale):
        raise _Misfit(f"timedeltas of up to 838 hours with {scale} digits of a second's fraction")
    return value


def _member(value: object, members: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in members:
        raise _Misfit(f"one of {', '.join(members)}")
    return value


def _members(value: object, members: tuple[str, ...]) -> str:
    chosen = set(value.split(",")) if isinstance(value, str) and value else set()
    if not isinstance(value, str) or not chosen <= set(members):
        raise _Misfit(f"some of {', '.join(members)}, with commas between them")
    return ",".join(member for member in members if member in chosen)


def _uuid(value: object) -> str:
    try:
        return str(value if isinstance(value, UUID) else UUID(str(value)))
    except ValueError:
        raise _Misfit("UUIDs") from None


def _inet4(value: object) -> str:
    try:
        return str(IPv4Address(str(value)))
    except ValueError:
        raise _Misfit("IPv4 addresses") from None


def _inet6(value: object) -> str:
    try:
        return printed_inet6(IPv6Address(str(value)).packed)
    except ValueError:
        raise _Misfit("IPv6 addresses") from None
