"""Sort keys of texts, which clustered keys contain.

Only collations that are ordered by the characters' codes are supported; the others need tables of weights.
Source: TiDB's collate package.
"""

from __future__ import annotations

from typing import Final

from .column_type import key_keeps_text
from .table_info import ColumnInfo

_BIN: Final = frozenset({"ascii_bin", "latin1_bin", "utf8_bin", "utf8mb4_bin"})
_GENERAL: Final = frozenset({"utf8_general_ci", "utf8mb4_general_ci"})
_ASCII_END: Final = 0x80


def sort_key(column: ColumnInfo, text: bytes) -> bytes:
    """Return the sort key of a column's bytes. Raises ValueError if it needs a table of weights."""
    if key_keeps_text(column):
        return text
    trimmed = text.rstrip(b" ")  # except in binary and 0900 collations, trailing spaces are ignored
    if column.collation in _BIN:
        return trimmed
    if column.collation == "gbk_bin":
        return trimmed.decode().encode("gbk")
    if column.collation in _GENERAL and max(trimmed, default=0) < _ASCII_END:
        return b"".join(bytes((0, byte)) for byte in trimmed.upper())
    raise ValueError(f"{text.decode()!r} has no known place in the order of {column.collation}")


def prefix_of(text: bytes, length: int, *, is_text: bool) -> bytes:
    """Return the first characters of a text, or bytes; all of it if `length` is -1."""
    if length == -1:
        return text
    return text.decode()[:length].encode() if is_text else text[:length]
