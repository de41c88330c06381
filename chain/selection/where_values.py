"""Values of columns and constants in a form in which Python compares them as the source's server does."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple, assert_never

from ...errors import SinkError
from ...events import (
    TEXTS,
    WITH_DATE,
    Column,
    form_of,
    moment_form,
)
from .where_tree import Constant, Name

_CODECS: Final = {"ascii": "ascii", "latin1": "cp1252"}
_MICROSECOND: Final = timedelta(microseconds=1)
_TIME: Final = re.compile(r"(-?)(\d{2,3}):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?")
_MAX_HOURS: Final = 838
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?")
_YEARS: Final = range(1901, 2156)


class Unfit(Exception):
    """A constant isn't one of the column's values; the message says which ones are."""


class Family(NamedTuple):
    """Values that can be compared with each other."""

    name: str
    """Columns of the same name can be compared."""
    form: Callable[[Any], Any]
    """Return the form of a column's value that isn't NULL."""
    constant: Callable[[Any], Any]
    """Return the form of a constant. Raises Unfit."""
    is_ordered: bool = True
    """False if only equality is exact."""


def family_of(column: Column, name: Name, where: str) -> Family:
    """Return the family of a column. Raises SinkError, naming the option `where`, if it has none."""
    if name.collation and column.kind not in TEXTS:
        raise SinkError(f"{where}: column {column.name} is {column.kind}: it has no collation")
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "bit" | "decimal":
            return Family("number", _same, _number)
        case "year":
            return Family("year", _same, _year)
        case "float" | "double":
            return Family("float", _same, lambda value: float(_number(value)))
        case "char" | "varchar" | "text":
            return _text(column, name, where)
        case "binary" | "varbinary" | "blob":
            return Family("bytes", bytes, _bytes)
        case "enum":
            return Family(
                f"enum {column.name}", _same, lambda value: _member(column, value), is_ordered=False
            )
        case "date":
            return Family("date", str, _date)
        case "datetime":
            return Family("datetime", moment_form, _datetime)
        case "timestamp":
            return Family("timestamp", moment_form, _timestamp)
        case "time":
            return Family("time", lambda value: value // _MICROSECOND, _time)
        case "set" | "json" | "uuid" | "inet4" | "inet6" | "geometry" | "vector":
            raise SinkError(f"{where}: column {column.name} is {column.kind}, which can't be compared here")
        case _:
            assert_never(column.kind)


def converted(family: Family, constant: Constant, column: Column, where: str) -> object:
    """Return the form of a constant that is compared with a column. Raises SinkError."""
    try:
        return family.constant(constant.value)
    except Unfit as error:
        raise SinkError(
            f"{where}: column {column.name} is {column.kind}, and {constant.text} isn't comparable: {error}"
        ) from None


def _same(value: object) -> object:
    return value


def _number(value: object) -> int | Decimal:
    if not isinstance(value, (int, Decimal)):
        raise Unfit("write a number")
    return value


def _year(value: object) -> int:
    if not (isinstance(value, int) and (value in _YEARS or value == 0)):
        raise Unfit("write a year from 1901 to 2155")
    return value


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise Unfit("write bytes, such as X'0aff'")
    return value


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise Unfit("write a string")
    return value


def _member(column: Column, value: object) -> str:
    if _string(value) not in column.members:
        raise Unfit(f"its members are {', '.join(map(repr, column.members))}")
    return str(value)


def _text(column: Column, name: Name, where: str) -> Family:
    collation = name.collation or column.collation or ""
    charset = column.charset or (column.collation or "").partition("_")[0]
    form = form_of(collation)
    if form is None or collation.partition("_")[0] != charset:
        raise SinkError(
            f"{where}: column {column.name} can't be compared here by the collation "
            f"{collation or 'that it has'}: write `{column.name}` COLLATE {charset or 'utf8mb4'}_bin"
        )

    def constant(value: Any) -> str:
        _reject_foreign(_string(value), charset)
        return form(value)

    return Family(f"text {collation}", form, constant)


def _reject_foreign(value: str, charset: str) -> None:
    """Raise Unfit for a string that the character set doesn't have."""
    try:
        value.encode(_CODECS.get(charset, "utf-8"))
    except UnicodeEncodeError:
        raise Unfit(f"the character set {charset} lacks one of its characters") from None
    if charset == "utf8mb3" and any(character > "\uffff" for character in value):
        raise Unfit("the character set utf8mb3 lacks one of its characters")


def _date(value: object) -> str:
    text = _string(value)
    match = _MOMENT.fullmatch(text)
    if match is None or match[1]:
        raise Unfit("write a date, such as '2026-01-31'")
    return str(_moment(text).date())


def _datetime(value: object) -> str:
    text = _string(value)
    if not _MOMENT.fullmatch(text):
        raise Unfit("write a date and time, such as '2026-01-31 23:59:59'")
    return moment_form(_moment(text))


def _timestamp(value: object) -> str:
    text = _string(value)
    if not text.endswith("+00:00"):
        raise Unfit("write the time in UTC, with its offset: '2026-01-31 23:59:59+00:00'")
    return _datetime(text.removesuffix("+00:00"))


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise Unfit("there is no such date or time") from None


def _time(value: object) -> int:
    match = _TIME.fullmatch(_string(value))
    if match is None or int(match[2]) > _MAX_HOURS:
        raise Unfit("write a time, such as '-12:30:00.5'")
    sign, hours, minutes, seconds, fraction = match.groups()
    span = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
    micros = span // _MICROSECOND + int((fraction or "").ljust(6, "0"))
    return -micros if sign else micros


def can_be_zero(column: Column) -> bool:
    """Return True for a column without NULL whose zero date IS NULL holds for NULL."""
    return not column.nullable and column.kind in WITH_DATE
