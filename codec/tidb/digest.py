"""The bytes that each column adds to the checksum of its row. Source: TiDB's rowcodec package."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any, Final, assert_never

from ..decimal import decode_decimal
from .column_type import ColumnFlag, Type
from .field import UNREADABLE, Field, field_of
from .table_info import ColumnInfo
from .time import MAX_SCALE, decode_duration, printed_date, printed_datetime, printed_duration


def digests(field: Field, bare: Any) -> tuple[bytes, ...]:
    """Return the bytes that may be part of the checksum, those of an INSERT first.

    There are several for a zero date with fractions: TiDB prints the value of a statement without fraction,
    and the value read back from a row with it. The same applies to a 0 that may have been -0, which no row
    contains.
    """
    match field.kind:
        case "float" | "double":
            return tuple(struct.pack("<d", number) for number in ((bare, -bare) if bare == 0 else (bare,)))
        case "decimal":
            return (_counted(f"{decode_decimal(bare):f}".encode()),)
        case "date":
            return (_counted(printed_date(bare).encode()),)
        case "datetime" | "timestamp":
            scales = (field.scale,) if bare or not field.scale else (0, field.scale)
            return tuple(_counted(printed_datetime(bare, scale).encode()) for scale in scales)
        case "time":
            return (_counted(printed_duration(decode_duration(bare, field.scale), field.scale).encode()),)
        case "json":
            return (_counted(field.read(bare).encode()),)
        case "char" | "varchar" | "text" | "binary" | "varbinary" | "blob":
            return (_counted(bare),)
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "bit" | "year" | "enum" | "set"
            | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            return (struct.pack("<Q", bare & (1 << 64) - 1),)
        case _:
            assert_never(field.kind)


_ANY: Final = tuple(
    field_of(ColumnInfo(id=0, name="", offset=0, type=type_, flags=flags, decimal=scale, charset="binary"))
    for type_, flags, scales in (
        (Type.LONGLONG, 0, (0,)),
        (Type.LONGLONG, ColumnFlag.UNSIGNED, (0,)),
        (Type.DOUBLE, 0, (0,)),
        (Type.NEWDECIMAL, 0, (0,)),
        (Type.DATE, 0, (0,)),
        (Type.DATETIME, 0, range(MAX_SCALE + 1)),
        (Type.TIME, 0, range(MAX_SCALE + 1)),
        (Type.JSON, 0, (0,)),
        (Type.BLOB, 0, (0,)),
    )
    for scale in scales
)
"""One column of each type that has a different part in checksums."""


def any_digests(cell: bytes) -> set[bytes]:
    """Return the bytes that the cell of a column of unknown type may add to the checksum, including none, if
    it wasn't public when the row was written."""
    texts = {b""}
    for field in _ANY:
        with suppress(*UNREADABLE):
            texts.update(digests(field, field.storage.decode(cell)))
    return texts


def _counted(text: bytes) -> bytes:
    return struct.pack("<I", len(text)) + text
