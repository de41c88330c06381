"""Rows of format 1: a column id and its datum, one after the other; a row without columns is one NULL."""

from __future__ import annotations

from typing import Final

from .datum import Bare, Flag, decode_datum, encode_datum

EMPTY: Final = bytes((Flag.NULL,))

FIRST_BYTES: Final = frozenset((Flag.NULL, Flag.VARINT))
"""First bytes of a row of this format: a column's id is a VARINT."""


def split_row(value: bytes) -> dict[int, tuple[Flag, Bare]]:
    """Return the datums by column id. Raises ValueError if it isn't such a row, or is cut off."""
    datums: dict[int, tuple[Flag, Bare]] = {}
    if value == EMPTY:
        return datums
    if not value:
        raise ValueError("the row is empty")
    offset = 0
    while offset < len(value):
        flag, id_, offset = decode_datum(value, offset)
        if flag is not Flag.VARINT or not isinstance(id_, int):
            raise ValueError(f"a datum of the kind {flag.name} is in the place of a column's id")
        flag, bare, offset = decode_datum(value, offset)
        datums[id_] = (flag, bare)
    return datums


def join_row(datums: dict[int, tuple[Flag, Bare]]) -> bytes:
    """Build a row with its columns in the order of the dict."""
    parts: list[bytes] = []
    for id_, (flag, bare) in datums.items():
        parts += encode_datum(Flag.VARINT, id_), encode_datum(flag, bare)
    return b"".join(parts) or EMPTY
