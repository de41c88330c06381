"""The journal: acknowledged pieces that have yet to be in files, in hidden objects of the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Struct

from ...errors import CheckpointError
from ...events import Table, Ts
from .formats import Format, Piece
from .store import Store

_CHECKSUM_BYTES: Final = 4
_ENCODER: Final = msgspec.msgpack.Encoder()


class _Packed(Struct, frozen=True, gc=False, array_like=True):
    """One piece."""

    table: int | None
    """Index of its table; None for schema changes."""
    day: int
    source: str
    first: Ts
    last: Ts
    size: int
    content: bytes


class _Entry(Struct, frozen=True, gc=False, array_like=True):
    """Content of one object."""

    tables: list[Table]
    pieces: list[_Packed]


def write_entry(store: Store, name: str, form: Format, pieces: Sequence[Piece]) -> None:
    """Write pieces as one object. Raises as Store does."""
    tables: dict[Table, int] = {}
    packed = []
    for (table, day, source), first, last, changes, size in pieces:
        index = None if table is None else tables.setdefault(table, len(tables))
        buffer: Any = memoryview(form.pack(changes))  # encoded as bytes, without a copy
        packed.append(_Packed(index, day, source, first, last, size, buffer))
    content = bytearray()
    _ENCODER.encode_into(_Entry(list(tables), packed), content, _CHECKSUM_BYTES)
    content[:_CHECKSUM_BYTES] = _checksum(content)
    store.write(name, content)


def read_entry(store: Store, name: str, form: Format) -> Iterator[Piece]:
    """Yield the pieces of an object. Raises CheckpointError if missing or damaged, and as Store does."""
    content = store.read(name)
    if content is None:
        raise CheckpointError(f"{store.name}/{name} is missing: put back a copy of all that was here")
    if content[:_CHECKSUM_BYTES] != _checksum(content):
        raise CheckpointError(f"{store.name}/{name} is damaged: put back a copy of all that was here")
    entry = msgspec.msgpack.decode(memoryview(content)[_CHECKSUM_BYTES:], type=_Entry)
    for packed in entry.pieces:
        table = None if packed.table is None else entry.tables[packed.table]
        group = (table, packed.day, packed.source)
        yield Piece(group, packed.first, packed.last, form.unpack(group, packed.content), packed.size)


def _checksum(content: bytes | bytearray) -> bytes:
    return crc32(memoryview(content)[_CHECKSUM_BYTES:]).to_bytes(_CHECKSUM_BYTES, "big")
