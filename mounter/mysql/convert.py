"""Columns after ALTER TABLE ... CONVERT TO CHARACTER SET."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ...codec.mysql.charset import max_bytes
from ...codec.mysql.collation import Charset
from ...codec.mysql.column_type import bytes_of_length
from ...codec.mysql.tokens import NotUnderstood
from ...events import WITH_CHARSET, Column

_MAX_BYTES: Final = {1: 0xFF, 2: 0xFFFF, 3: 0xFFFFFF, 4: 0xFFFFFFFF}
"""Maximum bytes of a TEXT by the bytes of its length."""


def converted(column: Column, charset: Charset) -> Column:
    """Return a column after CONVERT TO CHARACTER SET, which keeps room for as many characters. Raises
    NotUnderstood if the server changes the type in a way that isn't known."""
    if column.kind == "json" and column.charset is not None:
        if charset.name != "utf8mb4":
            raise NotUnderstood(f"CONVERT TO CHARACTER SET {charset.name} with a column of JSON")
        return replace(column, collation=charset.collation)
    if column.kind not in WITH_CHARSET or column.charset is None:
        return column
    length = column.length
    if column.kind == "text":
        characters = _MAX_BYTES[length] // max_bytes(column.charset)
        length = min(4, bytes_of_length(characters * max_bytes(charset.name)))
    elif column.kind == "varchar" and length * max_bytes(charset.name) > 0xFFFF:
        raise NotUnderstood(f"CONVERT TO CHARACTER SET {charset.name} with VARCHAR({length})")
    return replace(column, length=length, charset=charset.name, collation=charset.collation)
