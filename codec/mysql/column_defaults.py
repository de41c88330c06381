"""Values of new columns in existing rows: a DEFAULT clause as a value."""

from __future__ import annotations

import re
import struct
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final, NamedTuple, assert_never

from ...events import (
    BYTE_STRINGS,
    MOMENTS,
    TEMPORAL,
    WITH_DATE,
    WITH_MEMBERS,
    Column,
)
from .charset import text_decoder

_WITHOUT_CONSTANTS = {"uuid", "inet4", "inet6", "geometry", "vector"}
"""Kinds whose constants only the source converts."""
_EXACT: Final = Context(prec=100, rounding=ROUND_HALF_UP)
_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}

_NOW: Final = re.compile(r"(?:current_timestamp|now|localtimestamp|localtime)(?:\((\d*)\))?", re.IGNORECASE)
_TODAY: Final = re.compile(r"(?:current_date|curdate)(?:\(\))?", re.IGNORECASE)
_STRING: Final = re.compile(
    r"(?:_\w+\s*|n|date\s*|time\s*|timestamp\s*)?'((?:[^'\\]++|''|\\.)*+)'", re.I | re.S
)
_HEX_STRING: Final = re.compile(r"x'([0-9a-f]*)'", re.IGNORECASE)
_HEX: Final = re.compile(r"0x([0-9a-f]+)", re.IGNORECASE)
_BITS: Final = re.compile(r"b'([01]*)'|0b([01]+)", re.IGNORECASE)
_DATE: Final = re.compile(
    r"(\d{4}|\d\d)-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?)?"
)
_COMPACT_DATE: Final = re.compile(r"(\d{4}|\d\d)(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d))?()")
_TIME: Final = re.compile(r"(-?)(\d{1,3}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?")
_COMPACT_TIME: Final = re.compile(r"(-?)(\d{0,3}?)(\d{0,2}?)(\d{1,2})(?:\.(\d{1,6}))?")
_NUMBER: Final = re.compile(r"[-+]?(\d+(?:\.\d*)?|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_YEAR: Final = re.compile(r"\d{1,4}")
_EXPONENT: Final = re.compile("[eE]")


class NotComputable(Exception):
    """Only the source can compute the value of a default; the message names the column."""


class Bytes(NamedTuple):
    """A literal x'..', 0x.. or b'..'."""

    value: bytes
    is_number: bool
    """True if the literal is a number in a numeric context; x'..' is a string even there."""


class Number(NamedTuple):
    value: Decimal
    is_exact: bool = True
    """True for a decimal literal; one with an exponent is a double."""


class StatementTime(NamedTuple):
    """The time of the statement by its session's clock, and in UTC."""

    local: datetime
    utc: datetime
    digits: int = 0
    """Digits of a second's fraction; 0 means as many as a DATETIME or TIMESTAMP column has."""


def needs_clock(column: Column) -> bool:
    """Return True if the default depends on the clock of the statement's session."""
    text = column.default or "NULL"
    moment = _NOW.fullmatch(text) or _TODAY.fullmatch(text)
    return bool(moment) or (column.kind == "timestamp" and text.upper() != "NULL")


def default_for_existing_rows(column: Column, epoch_seconds: float, utc_offset_seconds: int = 0) -> object:
    """Return the Python value, as events.Column describes it, that the source gave to its rows.

    The statement ran at `epoch_seconds`, in a session with this UTC offset. Raises
    NotComputable for an expression that only the source can compute.
    """
    text = (column.default or "NULL").strip()
    if text.upper() == "NULL":
        return None if column.nullable else _implicit(column)
    ahead = timedelta(seconds=utc_offset_seconds)
    try:
        return _convert(column, _parse(text, epoch_seconds, ahead), ahead)
    except (ValueError, ArithmeticError, LookupError):
        raise NotComputable(
            f"column {column.name}: what DEFAULT {column.default} put into the existing rows can't be "
            "computed here"
        ) from None


def _parse(text: str, epoch_seconds: float, ahead: timedelta) -> Number | str | Bytes | StatementTime:
    if match := _NOW.fullmatch(text):
        utc = datetime.fromtimestamp(epoch_seconds, UTC)
        return StatementTime((utc + ahead).replace(tzinfo=None), utc, int(match[1] or 0))
    if _TODAY.fullmatch(text):
        local = datetime.fromtimestamp(epoch_seconds, UTC) + ahead
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
        return StatementTime(midnight.replace(tzinfo=None), midnight - ahead)
    if text.lower() in ("true", "false"):
        return Number(Decimal(text.lower() == "true"))
    if match := _STRING.fullmatch(text):
        return re.sub(r"''|\\(.)", _unescape, match[1], flags=re.DOTALL)
    if match := _HEX_STRING.fullmatch(text) or _HEX.fullmatch(text):
        digits = match[1]
        raw = bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
        return Bytes(raw, match.re is _HEX)
    if match := _BITS.fullmatch(text):
        bits = match[1] or match[2] or "0"
        return Bytes(int(bits, 2).to_bytes((len(bits) + 7) // 8, "big"), True)
    if _NUMBER.fullmatch(text):
        number = Decimal(text)
        return Number(number if number else abs(number), not _EXPONENT.search(text))
    raise ValueError(text)


def _unescape(match: re.Match[str]) -> str:
    if match[1] is None:
        return "'"
    return _ESCAPES.get(match[1]) or (match[0] if match[1] in "%_" else match[1])


def _convert(column: Column, value: Number | str | Bytes | StatementTime, ahead: timedelta) -> object:
    """Convert a constant to the column's type as the source does. Raises ValueError if it doesn't fit."""
    kind = column.kind
    if isinstance(value, StatementTime):
        return _at(column, value)
    if kind in _WITHOUT_CONSTANTS:
        raise ValueError
    if kind in BYTE_STRINGS:
        raw = value.value if isinstance(value, Bytes) else _text(value).encode()
        return raw.ljust(column.length, b"\0") if kind == "binary" else raw
    if kind in WITH_MEMBERS:
        if not isinstance(value, str):
            raise ValueError
        return _members(column, value)
    if kind in ("char", "varchar", "text", "json"):
        text = text_decoder(column.charset or "")(value.value) if isinstance(value, Bytes) else _text(value)
        return text.rstrip(" ") if kind == "char" else text
    if isinstance(value, Bytes):
        if not value.is_number or kind in TEMPORAL:
            raise ValueError
        value = Number(Decimal(int.from_bytes(value.value, "big")))
    if kind in WITH_DATE:
        return _date(column, _text(value), ahead)
    if kind == "time":
        return _time(column, _text(value))
    if kind == "bit" and isinstance(value, str):
        return int.from_bytes(value.encode("ascii"), "big")
    if kind == "year":
        return _year(value)
    if isinstance(value, str):
        value = Number(Decimal(value), not _EXPONENT.search(value))
    return _number(column, value)


def _text(value: Number | str) -> str:
    """Return a constant as text, as the source converts it."""
    if isinstance(value, str):
        return value
    if not value.is_exact:
        raise ValueError
    return f"{value.value:f}"


def _number(column: Column, number: Number) -> object:
    value = number.value or Decimal(0)  # the source's constants have no negative zero
    match column.kind:
        case "decimal":
            rounded = value.quantize(Decimal(1).scaleb(-column.scale), context=_EXACT)
            return rounded if rounded else abs(rounded)
        case "float":
            return struct.unpack("<f", struct.pack("<f", float(value)))[0]
        case "double":
            return float(value)
    whole = int(value.quantize(Decimal(1), context=_EXACT))
    if whole != value and not number.is_exact:  # a double is rounded differently
        raise ValueError
    return whole


def _year(value: Number | str) -> int:
    text = _text(value)
    if not _YEAR.fullmatch(text):
        raise ValueError(text)
    number = int(text)
    if number == 0 and (isinstance(value, Number) or len(text) == 4):
        return 0
    return _full_year(number) if number < 100 else number


def _full_year(number: int) -> int:
    return number + (2000 if number < 70 else 1900)


def _at(column: Column, moment: StatementTime) -> object:
    """Return the time of the statement as the column's type."""
    exact = moment.utc if column.kind == "timestamp" else moment.local
    digits = min(column.scale, moment.digits)
    if column.kind in MOMENTS:
        digits = digits or column.scale
    exact = exact.replace(microsecond=exact.microsecond - exact.microsecond % 10 ** (6 - digits))
    match column.kind:
        case "timestamp" | "datetime":
            return exact
        case "date":
            return moment.local.date()
        case "time":
            return exact - exact.replace(hour=0, minute=0, second=0, microsecond=0)
        case "year":
            return moment.local.year
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float" | "double"
            | "bit" | "char" | "varchar" | "text" | "binary" | "varbinary" | "blob" | "enum" | "set"
            | "json" | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            raise ValueError
        case _:
            assert_never(column.kind)


def _date(column: Column, text: str, ahead: timedelta) -> object:
    """Parse a literal of any length: "2024-01-02", "240102", "0000-00-00"; 0 also means the last."""
    year, month, day, hour, minute, second, fraction = _groups(
        "0000-00-00" if text == "0" else text, _DATE, _COMPACT_DATE
    )
    micros = _micros(fraction, column)
    if len(year) == 2:
        if int(year) == int(month) == int(day) == 0:
            raise ValueError(text)
        year = str(_full_year(int(year)))
    try:
        midnight = datetime(int(year), int(month), int(day), tzinfo=UTC)
        moment = midnight.replace(hour=int(hour), minute=int(minute), second=int(second), microsecond=micros)
    except ValueError:  # a date that Python can't represent
        clock = f" {hour:0>2}:{minute:0>2}:{second:0>2}.{micros:06}"
        whole = f"{year:0>4}-{month:0>2}-{day:0>2}"
        if column.kind == "timestamp" and whole + clock[:9] != "0000-00-00 00:00:00":
            raise
        return whole if column.kind == "date" else whole + clock[: 10 + column.scale if column.scale else 9]
    match column.kind:
        case "date":
            return moment.date()
        case "timestamp":
            return moment - ahead
    return moment.replace(tzinfo=None)


def _time(column: Column, text: str) -> timedelta:
    """Parse a literal of any length: "7:30", "73000"."""
    sign, hours, minutes, seconds, fraction = _groups(text, _TIME, _COMPACT_TIME)
    if int(minutes or 0) > 59 or int(seconds) > 59:
        raise ValueError(text)
    value = timedelta(
        hours=int(hours or 0),
        minutes=int(minutes or 0),
        seconds=int(seconds),
        microseconds=_micros(fraction, column),
    )
    return -value if sign == "-" else value


def _groups(text: str, *patterns: re.Pattern[str]) -> tuple[str, ...]:
    for pattern in patterns:
        if match := pattern.fullmatch(text):
            return match.groups(default="0")
    raise ValueError(text)


def _micros(fraction: str, column: Column) -> int:
    """Return microseconds, truncated to the column's number of digits."""
    return int(fraction[: column.scale].ljust(6, "0"))


def _members(column: Column, text: str) -> str:
    """Return members as the column defines and orders them. Raises ValueError for a non-member."""
    parts = [text] if column.kind == "enum" else text.split(",")
    chosen = {_member(column.members, part.rstrip(" ")) for part in parts if part or column.kind == "enum"}
    return ",".join(member for member in column.members if member in chosen)


def _member(members: tuple[str, ...], text: str) -> str:
    if text in members:
        return text
    (member,) = [member for member in members if member.lower() == text.lower()]
    return member


def _implicit(column: Column) -> object:
    """Return the value of a NOT NULL column without a default."""
    kind = column.kind
    match kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "bit" | "year":
            return 0
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
        case "uuid" | "inet4" | "inet6" | "geometry" | "vector":
            raise ValueError(kind)
        case "char" | "varchar" | "text" | "set" | "json":
            return ""
        case _:
            assert_never(kind)
