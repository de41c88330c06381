"""Keys of rows, and their encoding as bytes that sort alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ...events import Row, Table

Key: TypeAlias = tuple[int, ...]

_INTEGER_BYTES: Final = 9
"""Bytes of an integer: enough for unsigned and negative 64-bit ones."""
_LEAST: Final = 1 << 63


def encode_key(key: Key) -> bytes:
    """Encode integers, signed or not, as bytes that sort alike."""
    return b"".join([(part + _LEAST).to_bytes(_INTEGER_BYTES, "big") for part in key])


def decode_key(data: bytes) -> Key:
    parts = range(0, len(data), _INTEGER_BYTES)
    return tuple([int.from_bytes(data[at : at + _INTEGER_BYTES], "big") - _LEAST for at in parts])


def key_of(table: Table) -> Callable[[Row], tuple[Any, ...]]:
    """Return a function from a row of the table to its key's values."""
    indexes = table.key
    return lambda row: tuple([row[index] for index in indexes])
