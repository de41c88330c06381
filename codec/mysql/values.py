"""Values of a row that need more than one expression; shared by both row decoders.

The functions raise one of UNREADABLE for bytes that aren't such a value.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SETS_KEPT: Final = 1024
_DATE: Final = re.compile(r"\d{4}-(?:0\d|1[0-2])-(?:[0-2]\d|3[01])")
_DATETIME: Final = re.compile(_DATE.pattern + r" (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?")

UNREADABLE: Final = (struct.error, LookupError, ValueError, ArithmeticError)
"""Exceptions of a row decoder's code for invalid bytes."""


def printed_date(year: int, month: int, day: int) -> str:
    """Return an invalid date as the source prints it: 0000-00-00, 2023-02-30."""
    if not (0 <= year <= 9999 and month <= 12 and day <= 31):
        raise ValueError
    return f"{year:04d}-{month:02d}-{day:02d}"


def printed_datetime(
    year: int, month: int, day: int, hour: int, minute: int, second: int, micros: int, scale: int
) -> str:
    """Return an invalid date and time as the source prints it, with `scale` fractional digits."""
    if not (hour <= 23 and minute <= 59 and second <= 59 and micros <= 999_999):
        raise ValueError
    fraction = f".{micros:06d}"[: scale + 1] if scale else ""
    return f"{printed_date(year, month, day)} {hour:02d}:{minute:02d}:{second:02d}{fraction}"


def packed_time(packed: int, fraction_bits: int, unit_micros: int) -> timedelta:
    """Decode a TIME of the binlog: sign, hours, 6 bits of minutes, 6 of seconds, the fraction."""
    size = abs(packed)
    clock = size >> fraction_bits
    micros = (size & (1 << fraction_bits) - 1) * unit_micros
    return _time(packed < 0, clock >> 12, clock >> 6 & 63, clock & 63, micros)


def old_time(digits: int) -> timedelta:
    """Decode a TIME from before MySQL 5.6: its decimal digits are hhmmss."""
    size = abs(digits)
    return _time(digits < 0, size // 10_000, size // 100 % 100, size % 100, 0)


def text_time(text: bytes) -> timedelta:
    hours, minutes, seconds = text.removeprefix(b"-").split(b":")
    second, _, fraction = seconds.partition(b".")
    micros = int(fraction.ljust(6, b"0"))
    return _time(text.startswith(b"-"), int(hours), int(minutes), int(second), micros)


def _time(negative: bool, hours: int, minutes: int, seconds: int, micros: int) -> timedelta:
    if minutes > 59 or seconds > 59 or micros > 999_999:
        raise ValueError
    value = timedelta(0, hours * 3600 + minutes * 60 + seconds, micros)
    return -value if negative else value


def old_datetime(digits: int) -> datetime | str:
    """Decode a DATETIME from before MySQL 5.6: its decimal digits are YYYYMMDDhhmmss."""
    days, clock = divmod(digits, 1_000_000)
    year, month, day = days // 10_000, days // 100 % 100, days % 100
    hour, minute, second = clock // 10_000, clock // 100 % 100, clock % 100
    try:
        return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001
    except ValueError:
        return printed_datetime(year, month, day, hour, minute, second, 0, 0)


def set_printer(members: Sequence[str]) -> Callable[[int], str]:
    """Return a function that prints a SET's bits: the first member is the lowest."""

    @lru_cache(_SETS_KEPT)
    def printed(bits: int) -> str:
        if bits >> len(members):
            raise ValueError
        return ",".join([member for i, member in enumerate(members) if bits >> i & 1])

    return printed


def text_date(text: bytes) -> date | str:
    try:
        return date.fromisoformat(text.decode())
    except ValueError:
        return _as_printed(_DATE, text)


def text_datetime(text: bytes) -> datetime | str:
    try:
        return datetime.fromisoformat(text.decode())
    except ValueError:
        return _as_printed(_DATETIME, text)


def text_timestamp(text: bytes) -> datetime | str:
    """Parse a TIMESTAMP read with time_zone = '+00:00'."""
    try:
        return datetime.fromisoformat(text.decode() + "+00:00")
    except ValueError:
        return _as_printed(_DATETIME, text)


def _as_printed(pattern: re.Pattern[str], text: bytes) -> str:
    printed = text.decode()
    if pattern.fullmatch(printed) is None:
        raise ValueError
    return printed
