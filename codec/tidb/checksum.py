"""Checksums that TiDB appends to a row: CRC32 over its columns, or over its bytes. Source: rowcodec package.

A row may have two checksums over columns while a schema changes: for the schema before and after it. Columns
are in the order of their ids; NULL and virtual ones are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from struct import unpack_from
from typing import Any, Final, assert_never
from zlib import crc32

from ..decimal import decode_decimal
from .column_type import ColumnFlag, Type
from .columns import Columns
from .field import UNREADABLE, Field, field_of
from .layout import SECOND_CHECKSUM, ValueLayout, cells_of
from .table_info import ColumnInfo
from .time import MAX_SCALE, decode_duration, printed_date, printed_datetime, printed_duration

_VERSION: Final = 7
"""Bits of the header: 0 is over columns (since TiDB v7.1), 1 over the row's bytes and its key (v8.3), 2 over
the bytes and the key's handle (since v8.4: a restored backup has other keys, but the same handles)."""

_HANDLE_AT: Final = 11

_MAX_WAYS: Final = 4096
"""Maximum number of combinations of printed zero dates and dropped columns that are tried; with more of them
the row isn't verified."""


class ChecksumMismatch(ValueError):
    """A row doesn't match its checksum."""


def checksum_of(columns: Columns, bare: Mapping[int, object]) -> int:
    """Return the checksum that an INSERT writes; `bare` has the row's bare values by column id."""
    pairs = sorted(_digests(columns, bare), key=itemgetter(0))
    return crc32(b"".join(parts[0] for _, parts in pairs))


def _digests(columns: Columns, bare: Mapping[int, object]) -> Iterator[tuple[int, tuple[bytes, ...]]]:
    """Yield by column id the bytes that may be part of the checksum."""
    for field in columns.stored:
        value = bare.get(id_ := field.column.id)
        if value is not None:
            yield id_, digests(field, value)


def _may_be(pairs: Iterable[tuple[int, Collection[bytes]]], stored: Sequence[int]) -> bool:
    """True if the row can have one of the stored checksums."""
    checksums = {0}
    for _, parts in sorted(pairs, key=itemgetter(0)):
        checksums = {crc32(part, checksum) for part in parts for checksum in checksums}
        if len(checksums) > _MAX_WAYS:
            return True
    return not checksums.isdisjoint(stored)


def verify(columns: Columns, layout: ValueLayout, key: bytes, value: bytes) -> None:
    """Raises ChecksumMismatch, or one of UNREADABLE if the row can't be read at all.

    A row from before a column was dropped includes that column in its checksum, and its type is unknown:
    every type that its cell may have is tried.
    """
    cells = cells_of(layout, value)
    offset = layout.data + sum(map(len, cells.values()))
    header, stored = value[offset], unpack_from("<I", value, offset + 1)
    if header & _VERSION:
        _verify_bytes(header & _VERSION, key, value[: offset + 1], stored[0])
        return
    if header & SECOND_CHECKSUM:
        stored += unpack_from("<I", value, offset + 5)
    bare = columns.key_values(key)
    orphans = cells.keys() - {field.column.id for field in columns.stored}
    for field in columns.stored:
        if (id_ := field.column.id) in cells:
            bare[id_] = field.storage.decode(cells[id_])
    pairs = [*_digests(columns, bare), *((id_, any_digests(cells[id_])) for id_ in orphans)]
    if not _may_be(pairs, stored):
        expected = " or ".join(f"{checksum:08x}" for checksum in stored)
        without = f" without the {len(orphans)} that the table no longer has" if orphans else ""
        computed = checksum_of(columns, bare)
        raise ChecksumMismatch(f"its columns give the checksum {computed:08x}{without}, stored is {expected}")


def _verify_bytes(version: int, key: bytes, covered: bytes, stored: int) -> None:
    if version > 2:
        raise ValueError(f"checksums of version {version} aren't known")
    of_bytes = crc32(covered)
    handle = key[_HANDLE_AT:]
    computed = crc32(key if version == 1 else handle, of_bytes)
    if stored not in (computed, crc32(handle, of_bytes)):  # a TiDB between v8.3 and v8.4 wrote 1 for handles
        raise ChecksumMismatch(f"its bytes give the checksum {computed:08x}, stored is {stored:08x}")


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
