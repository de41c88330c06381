"""Checksums that TiDB appends to a row: CRC32 over its columns, or over its bytes. Source: rowcodec package.

A row may have two checksums over columns while a schema changes: for the schema before and after it. Columns
are in the order of their ids; NULL and virtual ones are skipped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from struct import unpack_from
from typing import Final
from zlib import crc32

from .columns import Columns
from .digest import any_digests, digests
from .layout import SECOND_CHECKSUM, Layout, cells_of

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
    found = sorted(_digests(columns, bare), key=itemgetter(0))
    return crc32(b"".join(parts[0] for _, parts in found))


def _digests(columns: Columns, bare: Mapping[int, object]) -> Iterator[tuple[int, tuple[bytes, ...]]]:
    """Yield by column id the bytes that may be part of the checksum."""
    for field in columns.stored:
        value = bare.get(id_ := field.column.id)
        if value is not None:
            yield id_, digests(field, value)


def _may_be(found: Iterable[tuple[int, Collection[bytes]]], stored: Sequence[int]) -> bool:
    """True if the row can have one of the stored checksums."""
    checksums = {0}
    for _, parts in sorted(found, key=itemgetter(0)):
        checksums = {crc32(part, checksum) for part in parts for checksum in checksums}
        if len(checksums) > _MAX_WAYS:
            return True
    return not checksums.isdisjoint(stored)


def verify(columns: Columns, layout: Layout, key: bytes, value: bytes) -> None:
    """Raises ChecksumMismatch, or one of UNREADABLE if the row can't be read at all.

    A row from before a column was dropped includes that column in its checksum, and its type is unknown:
    every type that its cell may have is tried.
    """
    cells = cells_of(layout, value)
    at = layout.data + sum(map(len, cells.values()))
    header, stored = value[at], unpack_from("<I", value, at + 1)
    if header & _VERSION:
        _verify_bytes(header & _VERSION, key, value[: at + 1], stored[0])
        return
    if header & SECOND_CHECKSUM:
        stored += unpack_from("<I", value, at + 5)
    bare = columns.key_values(key)
    orphans = cells.keys() - {field.column.id for field in columns.stored}
    for field in columns.stored:
        if (id_ := field.column.id) in cells:
            bare[id_] = field.storage.decode(cells[id_])
    found = [*_digests(columns, bare), *((id_, any_digests(cells[id_])) for id_ in orphans)]
    if not _may_be(found, stored):
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
