"""Rows as MessagePack, exactly: every value is decoded as it was encoded."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import msgspec

from ..events import (
    KINDS,
    WITH_DATE,
    Chunk,
    Row,
    RowChange,
    Table,
)

Images: TypeAlias = tuple[Row | None, Row | None, Chunk | None]
"""The row before, the row after, and the chunk if it is part of a snapshot."""
Pair: TypeAlias = tuple[Row | None, Row | None]
"""The row before and the row after."""

_TYPES: Final[dict[str, Any]] = {
    kind: traits.python | tuple[str] if kind in WITH_DATE else traits.python for kind, traits in KINDS.items()
}
"""Types of decoded values. A date that Python has no value for is encoded as a tuple of its text."""

_encode = msgspec.msgpack.Encoder().encode


class RowBytes:
    """Encodes and decodes rows of one table of one source."""

    def __init__(self, source: str, table: Table) -> None:
        self.source = source
        self.table = table
        self.layout = zlib.compress(_encode((source, table)), 9)
        self._dates = [i for i, column in enumerate(table.columns) if column.kind in WITH_DATE]
        row = tuple.__class_getitem__(tuple(_TYPES[column.kind] | None for column in table.columns))
        shape = tuple.__class_getitem__((row | None, row | None, Chunk | None))
        self._decode: Callable[[bytes], Images] = msgspec.msgpack.Decoder(shape).decode
        pairs = list.__class_getitem__(tuple.__class_getitem__((row | None, row | None)))
        self._decode_pairs: Callable[[bytes], list[Pair]] = msgspec.msgpack.Decoder(pairs).decode

    def encode(self, before: Row | None, after: Row | None, chunk: Chunk | None) -> bytes:
        if self._dates:
            before, after = self._wrapped(before), self._wrapped(after)
        return _encode((before, after, chunk))

    def decode(self, change: bytes) -> Images:
        before, after, chunk = self._decode(change)
        if self._dates:
            before, after = self._unwrapped(before), self._unwrapped(after)
        return before, after, chunk

    def encode_all(self, changes: Iterable[RowChange]) -> bytes:
        """Encode the rows of changes, without their timestamps and operations."""
        if not self._dates:
            return _encode([(change.before, change.after) for change in changes])
        wrapped = self._wrapped
        return _encode([(wrapped(change.before), wrapped(change.after)) for change in changes])

    def decode_all(self, data: bytes) -> list[Pair]:
        pairs = self._decode_pairs(data)
        if not self._dates:
            return pairs
        unwrapped = self._unwrapped
        return [(unwrapped(before), unwrapped(after)) for before, after in pairs]

    def _wrapped(self, row: Row | None) -> Row | None:
        if row is None or not any(type(row[i]) is str for i in self._dates):
            return row
        return tuple([(v,) if i in self._dates and type(v) is str else v for i, v in enumerate(row)])

    def _unwrapped(self, row: Row | None) -> Row | None:
        if row is None or not any(type(row[i]) is tuple for i in self._dates):
            return row
        return tuple([v[0] if type(v) is tuple else v for v in row])
