"""Decimals and times in a row image, as the server packs them."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes of up to nine decimal digits."""


def decimal_bytes(value: Decimal, digits: int, scale: int) -> bytes:
    """As decimal2bin of the server's strings/decimal.c does."""
    text = f"{value.copy_abs():0{digits + 1}.{scale}f}" if scale else f"{value.copy_abs():0{digits}.0f}"
    whole, _, fraction = text.partition(".")
    whole = whole[len(whole) - (digits - scale) :] if digits > scale else ""
    first = len(whole) % 9
    words = [whole[:first], *(whole[i : i + 9] for i in range(first, len(whole), 9))]
    words += [fraction[i : i + 9] for i in range(0, scale, 9)]
    packed = b"".join(int(word).to_bytes(_BYTES[len(word)], "big") for word in words if word)
    if value < 0:
        packed = bytes(byte ^ 0xFF for byte in packed)
    return bytes((packed[0] ^ 0x80,)) + packed[1:]


def time_bytes(value: timedelta, scale: int) -> bytes:
    """As my_time_packed_to_binary of sql-common/my_time.c does: TIME2."""
    seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
    fraction_bytes = (scale + 1) // 2
    clock = seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60
    packed = clock << 8 * fraction_bytes | micros // 100 ** (3 - fraction_bytes)
    middle: int = 1 << 8 * fraction_bytes + 23
    signed: int = -packed if value < timedelta() else packed
    return (middle + signed).to_bytes(3 + fraction_bytes, "big")


def datetime_bytes(value: datetime, scale: int) -> bytes:
    """As my_datetime_packed_to_binary does: DATETIME2."""
    return moment_bytes((*value.timetuple()[:6], value.microsecond), scale)


def moment_bytes(parts: tuple[int, ...], scale: int) -> bytes:
    """Return DATETIME2 of year, month, day, hour, minute, second and microsecond, of any calendar."""
    year, month, day, hour, minute, second, micros = parts
    days = (year * 13 + month) << 5 | day
    packed = (days << 17 | hour << 12 | minute << 6 | second) + (1 << 39)
    return packed.to_bytes(5, "big") + fraction_bytes(micros, scale)


def fraction_bytes(micros: int, scale: int) -> bytes:
    """Return the fraction of a second, without its last digit if `scale` is odd."""
    size = (scale + 1) // 2
    fraction: int = micros // 100 ** (3 - size)
    return fraction.to_bytes(size, "big")
