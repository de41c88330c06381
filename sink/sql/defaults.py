"""What a new column holds in the rows that are there: its DEFAULT clause, as a value."""

from __future__ import annotations

import re
import struct
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

from ...errors import SinkError
from ...events import Column

_INTEGERS: Final = {"tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year"}
_EXACT: Final = Context(prec=100, rounding=ROUND_HALF_UP)
_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}

_NOW: Final = re.compile(r"(current_timestamp|now|localtimestamp|localtime)(\(\d*\))?", re.IGNORECASE)
_TODAY: Final = re.compile(r"(current_date|curdate)(\(\))?", re.IGNORECASE)
_STRING: Final = re.compile(r"(?:_\w+\s*|n|date\s*|time\s*|timestamp\s*)?'((?:[^'\\]|''|\\.)*)'", re.I | re.S)
_HEX: Final = re.compile(r"x'([0-9a-f]*)'|0x([0-9a-f]+)", re.IGNORECASE)
_BITS: Final = re.compile(r"b'([01]*)'|0b([01]+)", re.IGNORECASE)
_DATE: Final = re.compile(
    r"(\d{1,4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,6}))?)?"
)
_TIME: Final = re.compile(r"(-?)(\d{1,3}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?")
_NUMBER: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)


def default_for_existing_rows(column: Column, epoch_seconds: float) -> Any:
    """The Python value, as events.Column describes it, that the source put into its rows.

    Raises SinkError for an expression that only the source can compute.
    """
    text = (column.default or "NULL").strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    if text.upper() == "NULL":
        return None if column.nullable else _implicit(column)
    value = _parse(text, epoch_seconds)
    try:
        return _convert(column, value)
    except (ValueError, ArithmeticError, LookupError):
        raise SinkError(
            f"column {column.name}: what DEFAULT {column.default} put into the existing rows can't be "
            "computed here: load the table anew"
        ) from None


def _parse(text: str, epoch_seconds: float) -> Decimal | str | bytes | datetime | None:
    if _NOW.fullmatch(text):
        return datetime.fromtimestamp(epoch_seconds, UTC)
    if _TODAY.fullmatch(text):
        return datetime.fromtimestamp(epoch_seconds, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if text.lower() in ("true", "false"):
        return Decimal(text.lower() == "true")
    if match := _STRING.fullmatch(text):
        return re.sub(r"''|\\(.)", _unescape, match[1], flags=re.DOTALL)
    if match := _HEX.fullmatch(text):
        digits = match[1] or match[2] or ""
        return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
    if match := _BITS.fullmatch(text):
        bits = match[1] or match[2] or "0"
        return int(bits, 2).to_bytes((len(bits) + 7) // 8, "big")
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _unescape(match: re.Match[str]) -> str:
    return "'" if match[1] is None else _ESCAPES.get(match[1], match[1])


def _convert(column: Column, value: Decimal | str | bytes | datetime | None) -> Any:
    """As the source converts a literal to the column's type. Raises when it isn't one that fits."""
    kind, scale = column.kind, column.scale
    if value is None:
        raise ValueError
    if isinstance(value, datetime):
        moment = value.replace(microsecond=value.microsecond - value.microsecond % 10 ** (6 - scale))
        match kind:
            case "timestamp":
                return moment
            case "datetime":
                return moment.replace(tzinfo=None)
            case "date":
                return moment.date()
            case "time":
                return moment - moment.replace(hour=0, minute=0, second=0, microsecond=0)
            case "year":
                return moment.year
        raise ValueError
    if kind in ("binary", "varbinary", "blob"):
        raw = value if isinstance(value, bytes) else str(value).encode()
        return raw.ljust(column.length, b"\0") if kind == "binary" else raw
    if kind in ("char", "varchar", "text", "enum", "set", "json"):
        text = value.decode() if isinstance(value, bytes) else str(value)
        return (
            _members(column, text)
            if kind in ("enum", "set")
            else text.rstrip(" ")
            if kind == "char"
            else text
        )
    if isinstance(value, bytes):
        value = Decimal(int.from_bytes(value, "big"))
    if kind in ("date", "datetime", "timestamp", "time"):
        return _moment(column, str(value))
    number = Decimal(value)
    if kind == "decimal":
        return number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    if kind == "float":
        return struct.unpack("<f", struct.pack("<f", float(number)))[0]
    if kind == "double":
        return float(number)
    whole = int(number.quantize(Decimal(1), context=_EXACT))
    if kind == "year" and 0 < whole < 100:
        return whole + (2000 if whole < 70 else 1900)
    return whole


def _moment(column: Column, text: str) -> Any:
    """A date or time from its literal, however short: "2024-01-02", "7:30", "0000-00-00"."""
    if column.kind == "time":
        sign, hours, minutes, seconds, fraction = _groups(_TIME, text)
        value = timedelta(
            hours=int(hours),
            minutes=int(minutes),
            seconds=int(seconds),
            microseconds=_micros(fraction, column),
        )
        return -value if sign == "-" else value
    year, month, day, hour, minute, second, fraction = _groups(_DATE, text)
    try:
        midnight = datetime(int(year), int(month), int(day), tzinfo=UTC)
        moment = midnight.replace(
            hour=int(hour), minute=int(minute), second=int(second), microsecond=_micros(fraction, column)
        )
    except ValueError:  # a date that Python has no value for
        whole = f"{year:0>4}-{month:0>2}-{day:0>2}"
        clock = f" {hour:0>2}:{minute:0>2}:{second:0>2}.{_micros(fraction, column):06}"
        return whole if column.kind == "date" else whole + clock[: 10 + column.scale if column.scale else 9]
    if column.kind == "date":
        return moment.date()
    return moment if column.kind == "timestamp" else moment.replace(tzinfo=None)


def _groups(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return match.groups(default="0")


def _micros(fraction: str, column: Column) -> int:
    """Of the digits after the point, as many as the column has."""
    return int(fraction[: column.scale].ljust(6, "0"))


def _members(column: Column, text: str) -> str:
    """Spelled and ordered as the column's definition has them."""
    spelled = {member.casefold(): member for member in column.members}
    chosen = {
        spelled[part.casefold()] for part in ([text] if column.kind == "enum" else text.split(",")) if part
    }
    return ",".join(member for member in column.members if member in chosen)


def _implicit(column: Column) -> Any:
    """What a NOT NULL column without a default gets."""
    kind = column.kind
    if kind in _INTEGERS:
        return 0
    match kind:
        case "decimal":
            return Decimal(0)
        case "float" | "double":
            return 0.0
        case "binary" | "varbinary" | "blob":
            return bytes(column.length if kind == "binary" else 0)
        case "date":
            return "0000-00-00"
        case "datetime" | "timestamp":
            return "0000-00-00 00:00:00" + ("." + "0" * column.scale if column.scale else "")
        case "time":
            return timedelta()
        case "enum":
            return column.members[0]
    return ""
