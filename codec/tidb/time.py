"""Dates and times: TiDB packs a date with a time into one unsigned number, a duration is nanoseconds.

Packed: (year * 13 + month) << 46 | day << 41 | hour << 36 | minute << 30 | second << 24 | microseconds; 0 is
the zero date. A TIMESTAMP is packed in UTC. A date that Python has no value for stays the text that TiDB
prints. Fractional digits beyond the column's scale, which TiDB doesn't print, are cut off. The functions
raise ValueError for bytes or texts that aren't such a value.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final, TypeAlias

Fields: TypeAlias = tuple[int, int, int, int, int, int, int]
"""Year, month, day, hour, minute, second, microseconds."""

_PRINTED: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?", re.ASCII)
_DURATION: Final = re.compile(r"(-?)(\d{1,3}):(\d\d):(\d\d)(?:\.(\d{1,6}))?", re.ASCII)
_MICROSECOND: Final = timedelta(0, 0, 1)
_SECOND_MICROS: Final = 1_000_000

MAX_SCALE: Final = 6
"""Maximum number of fractional digits of a column."""


def pack(fields: Fields) -> int:
    year, month, day, hour, minute, second, micros = fields
    days = (year * 13 + month) << 5 | day
    return days << 41 | hour << 36 | minute << 30 | second << 24 | micros


def fields_of(packed: int) -> Fields:
    months = packed >> 46
    year, month = months // 13, months % 13
    day, hour = packed >> 41 & 31, packed >> 36 & 31
    minute, second, micros = packed >> 30 & 63, packed >> 24 & 63, packed & 0xFFFFFF
    if year > 9999 or month > 12 or hour > 23 or minute > 59 or second > 59 or micros >= _SECOND_MICROS:
        raise ValueError(f"{packed:#018x} isn't a date and time")
    return year, month, day, hour, minute, second, micros


def printed_date(packed: int) -> str:
    """Print a date as TiDB does: 0000-00-00."""
    year, month, day, *_ = fields_of(packed)
    return f"{year:04d}-{month:02d}-{day:02d}"


def printed_datetime(packed: int, scale: int) -> str:
    """Print a date and time as TiDB does, with `scale` fractional digits."""
    _, _, _, hour, minute, second, micros = fields_of(packed)
    fraction = f".{micros:06d}"[: scale + 1] if scale else ""
    return f"{printed_date(packed)} {hour:02d}:{minute:02d}:{second:02d}{fraction}"


def decode_date(packed: int) -> date | str:
    try:
        days = packed >> 41
        return date((days >> 5) // 13, (days >> 5) % 13, days & 31)
    except ValueError:
        return printed_date(packed)


def _shown(packed: int, scale: int) -> Fields:
    """Unpack without the fractional digits that TiDB doesn't print for a column of this scale."""
    *fields, micros = fields_of(packed)
    return (*fields, micros - micros % unit_micros(scale))  # type: ignore[return-value]


def unit_micros(scale: int) -> int:
    """Return the microseconds of the last digit of a column of this scale."""
    return int(10 ** (MAX_SCALE - scale))


def decode_datetime(packed: int, scale: int) -> datetime | str:
    try:
        return datetime(*_shown(packed, scale))  # noqa: DTZ001
    except ValueError:
        return printed_datetime(packed, scale)


def decode_timestamp(packed: int, scale: int) -> datetime | str:
    try:
        return datetime(*_shown(packed, scale), UTC)  # noqa: DTZ001 it is the last
    except ValueError:
        return printed_datetime(packed, scale)


def encode_datetime(value: date | datetime | str) -> int:
    """Pack a date, a datetime (an aware one as UTC) or its printed text."""
    match value:
        case datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC)
            return pack((*moment.timetuple()[:6], moment.microsecond))
        case date():
            return pack((value.year, value.month, value.day, 0, 0, 0, 0))
        case str():
            return pack(_parsed(value))
    raise TypeError(f"{value!r} isn't a date or a time")


def _parsed(text: str) -> Fields:
    match = _PRINTED.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} isn't a date as YYYY-MM-DD, or with a time as hh:mm:ss")
    *numbers, fraction = match.groups("0")
    year, month, day, hour, minute, second = map(int, numbers)
    return year, month, day, hour, minute, second, int(fraction.ljust(6, "0"))


def decode_duration(nanoseconds: int, scale: int) -> timedelta:
    """Decode a duration, truncated towards 0 to the digits that TiDB prints for a column of this scale."""
    micros = abs(nanoseconds) // 1000
    micros -= micros % unit_micros(scale)
    return timedelta(0, 0, micros if nanoseconds >= 0 else -micros)


def encode_duration(value: timedelta | str) -> int:
    """Return the nanoseconds of a duration, or of its printed text: -hh:mm:ss.ffffff."""
    if isinstance(value, timedelta):
        return value // _MICROSECOND * 1000
    match = _DURATION.fullmatch(value)
    if match is None:
        raise ValueError(f"{value!r} isn't a time as [-]hh:mm:ss")
    sign, hours, minutes, seconds, fraction = match.groups("0")
    micros = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * _SECOND_MICROS
    micros += int(fraction.ljust(6, "0"))
    return (-micros if sign == "-" else micros) * 1000


def printed_duration(value: timedelta, scale: int) -> str:
    """Print a duration as TiDB does: with at least two digits of hours."""
    micros = value // _MICROSECOND
    seconds, fraction = divmod(abs(micros), _SECOND_MICROS)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    digits = f".{fraction:06d}"[: scale + 1] if scale else ""
    return f"{'-' if micros < 0 else ''}{clock}{digits}"
