"""Numbers, strings and bits as the binlog and the protocol have them."""

from __future__ import annotations

from collections.abc import Sequence


def lenenc(number: int) -> bytes:
    """Return a length-encoded integer."""
    if number < 251:
        return bytes((number,))
    for prefix, size in (b"\xfc", 2), (b"\xfd", 3), (b"\xfe", 8):
        if number < 1 << 8 * size:
            return prefix + number.to_bytes(size, "little")
    raise ValueError(f"{number} is too large for a length")


def string(value: bytes) -> bytes:
    """Return a string with its length before it."""
    return lenenc(len(value)) + value


def bitmap(bits: Sequence[bool]) -> bytes:
    """Return bits, the first one lowest."""
    return sum(bit << i for i, bit in enumerate(bits)).to_bytes((len(bits) + 7) // 8, "little")
