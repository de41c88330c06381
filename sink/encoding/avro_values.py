"""The values of a column in Avro's binary encoding, by calls of C code for all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, Literal, TypeAlias

from ...codec.proto import avro
from ...events import Row
from .avro_bytes import long_bytes
from .columns import Parts, Values, column_of, joined
from .value_lines import Lines, decimals, split

AvroWriter: TypeAlias = Callable[[Values], Parts]
"""Returns the parts of values: none is NULL, and there is at least one."""

_SMALL: Final = [long_bytes(number) for number in range(1 << 13)]
"""Bytes of the numbers that take up to two of them."""
_LONG: Final = re.compile(rb"[\x80-\xff]*[\0-\x7f]")


class _Lengths(dict[int, bytes]):
    """The bytes of lengths; those of short values are kept."""

    def __missing__(self, length: int) -> bytes:
        prefix = long_bytes(length)
        if length < len(_SMALL):
            self[length] = prefix
        return prefix


_LENGTHS: Final = _Lengths()


def longs(values: Values) -> Parts:
    """Write integers of at most 64 bits as int or long, which are written in the same way."""
    if min(values) >= 0 and max(values) < len(_SMALL):
        return [list(map(_SMALL.__getitem__, values))]
    packed = avro.Longs(values=values).SerializeToString()
    return [_LONG.findall(packed)[2:]]  # after the field's number and size


def singles(values: Values) -> Parts:
    return [list(map(_SINGLE, values))]


def doubles(values: Values) -> Parts:
    return [list(map(_DOUBLE, values))]


_SINGLE: Final = Struct("<f").pack
_DOUBLE: Final = Struct("<d").pack


def binaries(values: Sequence[bytes]) -> Parts:
    """Write bytes after their length."""
    return [list(map(_LENGTHS.__getitem__, map(len, values))), list(values)]


def texts(values: Sequence[str]) -> Parts:
    return binaries(list(map(str.encode, values)))


def written(lines: Lines) -> AvroWriter:
    """Return a writer of the texts of values."""
    texts_of = split(lines)
    return lambda values: binaries(texts_of(values))


def unscaled(scale: int) -> AvroWriter:
    """Return a writer of the digits of decimals as the shortest two's complement, high byte first."""
    lines = decimals(scale)

    def write(values: Values) -> Parts:
        numbers = list(map(int, lines(values).replace(b".", b"").split(b"\n")))
        sizes = [(number + (number < 0)).bit_length() // 8 + 1 for number in numbers]
        pairs = zip(numbers, sizes, strict=True)
        return binaries([number.to_bytes(size, signed=True) for number, size in pairs])

    return write


def bits(length: int, order: Literal["big", "little"]) -> AvroWriter:
    """Return a writer of the bytes of a BIT of this length."""
    size = (length + 7) // 8
    return lambda values: binaries([value.to_bytes(size, order) for value in values])


def nullable(write: AvroWriter, null: bytes, branch: bytes) -> AvroWriter:
    """Return a writer of values that may be NULL: `null`, or `branch` before the value."""

    def parts(values: Values) -> Parts:
        if None not in values:
            return [branch, *write(values)]
        present = [value for value in values if value is not None]
        if not present:
            return [null]
        remaining = iter(joined(len(present), [branch, *write(present)]))
        return [[null if value is None else next(remaining) for value in values]]

    return parts


class AvroFields:
    """Some columns of a table, with constant bytes before and after all of them."""

    def __init__(
        self, fields: Sequence[tuple[int, AvroWriter]], before: bytes = b"", after: bytes = b""
    ) -> None:
        """A field is a place in the table, and the writer of its values."""
        self._fields: Final = fields
        self._before: Final = before
        self._after: Final = after

    def of(self, rows: Sequence[Row]) -> Parts:
        """Return the parts of messages with these rows."""
        parts = [part for place, write in self._fields for part in write(column_of(rows, place))]
        return [self._before, *parts, self._after]
