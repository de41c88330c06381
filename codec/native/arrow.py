"""Arrow columns of rows, by the native decoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from ...events import Column
from .column import Description
from .library import native

Buffers: TypeAlias = "tuple[Any, Any, Any]"
"""Validity and offsets, each None if the array has none, and values."""


class Assembly:
    """Makes the arrays of a table's columns from their buffers."""

    def __init__(self, columns: Sequence[Column], descriptions: Sequence[Description]) -> None:
        pairs = zip(columns, descriptions, strict=True)
        self._columns = [(_type(*pair), _conversion(*pair)) for pair in pairs]

    def arrays(self, columns: Sequence[Buffers], count: int) -> list[pa.Array]:
        """Return the arrays of `count` rows. Raises ValueError, or an error of Arrow, for a value that an
        array can't hold."""
        arrays = []
        for (type_, convert), buffers in zip(self._columns, columns, strict=True):
            validity, offsets, values = [None if one is None else pa.py_buffer(one) for one in buffers]
            held = [validity, values] if offsets is None else [validity, offsets, values]
            array = pa.Array.from_buffers(type_, count, held)
            arrays.append(array if convert is None else convert(array))
        return arrays


def _conversion(column: Column, description: Description) -> Callable[[pa.Array], pa.Array] | None:
    """Return what makes the array from one of numbers or stored bytes; None if it is that array."""
    members, read = description.members, description.reader
    if description.output == native.AS_MEMBER:
        texts = pa.array(members, pa.large_string())
        return lambda numbers: texts.take(numbers)
    if description.output == native.AS_MEMBERS:
        return lambda bits: _each_once(members, bits)
    if description.output == native.AS_OTHER:
        assert read is not None
        type_ = pa.large_binary() if column.kind in ("varbinary", "blob") else pa.large_string()
        return lambda stored: pa.array(
            [None if value is None else read(value) for value in stored.to_pylist()], type_
        )
    return None


def _each_once(printed: Callable[[int], str], numbers: pa.Array) -> pa.Array:
    """Return the text of each number, of which there are few different ones."""
    encoded = numbers.dictionary_encode()
    return pa.array(map(printed, encoded.dictionary.to_pylist()), pa.large_string()).take(encoded.indices)


def _type(column: Column, description: Description) -> pa.DataType:
    """Return the type of the array that the native decoder fills."""
    match description.output:
        case native.AS_TEXT | native.AS_ASCII:
            return pa.large_string()
        case native.AS_BYTES | native.AS_OTHER:
            return pa.large_binary()
        case native.AS_DOUBLE:
            return pa.float32() if description.width == 4 else pa.float64()
        case native.AS_DECIMAL:
            return pa.decimal128(column.length, column.scale)
        case native.AS_DATE:
            return pa.date32()
        case native.AS_DATETIME:
            return pa.timestamp("us")
        case native.AS_TIMESTAMP:
            return pa.timestamp("us", "UTC")
        case native.AS_DURATION:
            return pa.duration("us")
        case native.AS_UINT | native.AS_MEMBERS:
            return getattr(pa, f"uint{8 * description.width}")()
    return getattr(pa, f"int{8 * description.width}")()
