"""Values of a row that need more than one expression; shared by both row decoders.

The functions raise one of UNREADABLE for bytes that aren't such a value.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from socket import AF_INET, inet_ntop
from typing import Final

_inet6_words: Final = struct.Struct(">8H").unpack
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SETS_KEPT: Final = 1024
_MOST_TIME_DAYS: Final = 34
"""A TIME has up to 838 hours."""
_sent_day: Final = struct.Struct("<HBB").unpack

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


def printed_time(value: timedelta, scale: int) -> str:
    """Return a TIME as the source prints it, with `scale` fractional digits."""
    micros = abs(value) // timedelta(microseconds=1)
    seconds, micros = divmod(micros, 1_000_000)
    fraction = f".{micros:06d}"[: scale + 1] if scale else ""
    sign = "-" if value < timedelta() else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"


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


def uncompressed(data: bytes) -> bytes:
    """Return a value of a COMPRESSED column.

    Its first byte is 0 if the value follows as it is. Otherwise its low 3 bits count the bytes of the value's
    length, high byte first, and a deflate stream follows, without zlib's wrapper if bit 3 is set.
    """
    if not data:
        return data
    head = data[0]
    if not head:
        return data[1:]
    if head & 0xF0 != 0x80:
        raise ValueError("compressed by an unknown algorithm")
    start = 1 + (head & 7)
    length = int.from_bytes(data[1:start], "big")
    stream = zlib.decompressobj(-zlib.MAX_WBITS if head & 8 else zlib.MAX_WBITS)
    try:
        value = stream.decompress(data[start:], length + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(value) != length:
        raise ValueError("a compressed value has another length")
    return value


def printed_uuid(data: bytes) -> str:
    """Print a stored UUID. One of a version below 6 is stored with its five groups in reverse order, so that
    they sort by time."""
    if len(data) != 16:
        raise ValueError("a UUID hasn't 16 bytes")
    if data[6] >= 0x80 and 0 < data[8] <= 0x80:
        data = data[12:] + data[10:12] + data[8:10] + data[6:8] + data[:6]
    text = data.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def printed_inet4(data: bytes) -> str:
    return inet_ntop(AF_INET, data)


def printed_inet6(data: bytes) -> str:
    """Print an address without its first longest run of zeros, even of a single one; an IPv4 address in it is
    printed as such."""
    words = [f"{word:x}" for word in _inet6_words(data)]
    start = size = 0
    for i in range(8):
        run = next((k for k in range(8 - i) if words[i + k] != "0"), 8 - i)
        if run > size:
            start, size = i, run
    if start == 0 and (size == 6 or (size == 5 and words[5] == "ffff")):
        words[6:] = [printed_inet4(data[12:])]
    if not size:
        return ":".join(words)
    return f"{':'.join(words[:start])}::{':'.join(words[start + size :])}"


def set_printer(members: Sequence[str]) -> Callable[[int], str]:
    """Return a function that prints a SET's bits: the first member is the lowest."""

    @lru_cache(_SETS_KEPT)
    def printed(bits: int) -> str:
        if bits >> len(members):
            raise ValueError
        return ",".join([member for i, member in enumerate(members) if bits >> i & 1])

    return printed


def sent_date(data: bytes) -> date | str:
    """Decode a DATE of the binary protocol: year, month and day, or nothing if all are 0."""
    day = _day(data)
    try:
        return date(*day)
    except ValueError:
        return printed_date(*day)


def sent_datetime(data: bytes, scale: int) -> datetime | str:
    """Decode a DATETIME of the binary protocol: what is 0 at its end is left out."""
    if len(data) not in (0, 4, 7, 11):
        raise ValueError
    day, micros = _day(data[:4]), int.from_bytes(data[7:], "little")
    hour, minute, second = data[4:7] or (0, 0, 0)
    try:
        return datetime(*day, hour, minute, second, micros)  # noqa: DTZ001
    except ValueError:
        return printed_datetime(*day, hour, minute, second, micros, scale)


def sent_timestamp(data: bytes, scale: int) -> datetime | str:
    """Decode a TIMESTAMP of the binary protocol, read with time_zone = '+00:00'."""
    value = sent_datetime(data, scale)
    return value if isinstance(value, str) else value.replace(tzinfo=UTC)


def sent_time(data: bytes) -> timedelta:
    """Decode a TIME of the binary protocol: its sign, 4 bytes of days, hour, minute, second, microseconds."""
    if not data:
        return timedelta()
    if len(data) not in (8, 12) or data[0] > 1 or data[5] > 23:
        raise ValueError
    days, micros = int.from_bytes(data[1:5], "little"), int.from_bytes(data[8:], "little")
    if days > _MOST_TIME_DAYS:
        raise ValueError
    return _time(data[0] == 1, days * 24 + data[5], data[6], data[7], micros)


def _day(data: bytes) -> tuple[int, int, int]:
    return _sent_day(data) if data else (0, 0, 0)
