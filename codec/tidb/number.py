"""Encoding and decoding of numbers in TiDB's rows, datums and keys.

The decoding functions return the number and its end; they raise ValueError for bytes that are cut off.
"""

from __future__ import annotations

from struct import Struct as Packing
from typing import Final

_UINT64: Final = Packing(">Q")
_FLOAT64: Final = Packing(">d")
_SIGN: Final = 1 << 63
_ALL: Final = (1 << 64) - 1
_VARINT_BYTES: Final = 10
"""Maximum size of a 64-bit number, with seven bits per byte."""

INT_BYTES: Final = (1, 2, 4, 8)
"""Sizes of an integer in a row of format 2: the smallest sufficient one is used."""


def encode_uvarint(n: int) -> bytes:
    """Encode seven bits per byte, the lowest first; the high bit is set if more follow."""
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def decode_uvarint(data: bytes, offset: int) -> tuple[int, int]:
    n = 0
    for k, byte in enumerate(data[offset : offset + _VARINT_BYTES]):
        n |= (byte & 0x7F) << 7 * k
        if byte < 0x80:
            if n > _ALL:
                break
            return n, offset + k + 1
    raise ValueError(f"a variable-length integer doesn't end at {offset}: {data.hex()}")


def encode_varint(n: int) -> bytes:
    """Encode a signed number with the sign in the lowest bit."""
    return encode_uvarint(n << 1 if n >= 0 else ~n << 1 | 1)


def decode_varint(data: bytes, offset: int) -> tuple[int, int]:
    n, end = decode_uvarint(data, offset)
    return (~(n >> 1) if n & 1 else n >> 1), end


def encode_int_cell(n: int) -> bytes:
    """Encode a signed integer, low byte first, in the smallest of INT_BYTES."""
    size = next(size for size in INT_BYTES if size == 8 or -1 << 8 * size - 1 <= n < 1 << 8 * size - 1)
    return n.to_bytes(size, "little", signed=True)


def encode_uint_cell(n: int) -> bytes:
    size = next(size for size in INT_BYTES if size == 8 or n < 1 << 8 * size)
    return n.to_bytes(size, "little")


def decode_int_cell(data: bytes) -> int:
    """Decode `data` as one integer."""
    return int.from_bytes(_sized(data), "little", signed=True)


def decode_uint_cell(data: bytes) -> int:
    return int.from_bytes(_sized(data), "little")


def _sized(data: bytes) -> bytes:
    if len(data) not in INT_BYTES:
        raise ValueError(f"an integer can't take {len(data)} bytes: {data.hex()}")
    return data


def encode_uint(n: int) -> bytes:
    """Encode eight bytes, the high one first."""
    return _UINT64.pack(n)


def decode_uint(data: bytes, offset: int) -> tuple[int, int]:
    if len(data) < offset + 8:
        raise ValueError(f"eight bytes of a number are cut off at {offset}: {data.hex()}")
    return _UINT64.unpack_from(data, offset)[0], offset + 8


def encode_float(x: float) -> bytes:
    """Encode eight bytes in the order of the numbers: a positive number has its sign bit set, a negative one
    all bits inverted."""
    bits: int = _UINT64.unpack(_FLOAT64.pack(x))[0]
    if x == 0:
        bits = 0  # -0 is written as 0
    return _UINT64.pack(~bits & _ALL if bits & _SIGN else bits | _SIGN)


def decode_float(data: bytes, offset: int) -> tuple[float, int]:
    bits, end = decode_uint(data, offset)
    x: float = _FLOAT64.unpack(_UINT64.pack(bits & ~_SIGN if bits & _SIGN else ~bits & _ALL))[0]
    return x, end
