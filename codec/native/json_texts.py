"""Native writing of rows as JSON objects, from their Arrow columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import pyarrow as pa

from .library import native

MOST_BYTES: Final = (1 << 31) - 1
"""Maximum bytes of the texts in an array of string."""
_OUTPUTS: Final[Sequence[tuple[Callable[[pa.DataType], bool], str]]] = (
    (pa.types.is_signed_integer, "AS_INT"),
    (pa.types.is_unsigned_integer, "AS_UINT"),
    (pa.types.is_floating, "AS_DOUBLE"),
    (pa.types.is_decimal128, "AS_DECIMAL"),
    (pa.types.is_date32, "AS_DATE"),
    (pa.types.is_timestamp, "AS_DATETIME"),
    (pa.types.is_duration, "AS_DURATION"),
    (pa.types.is_large_string, "AS_TEXT"),
    (pa.types.is_large_binary, "AS_BYTES"),
)
"""Kind of value in an array, by the type of the array."""


class Field(NamedTuple):
    """A column of the rows."""

    name: str
    """The name as JSON, with a colon."""
    is_quoted: bool
    scale: int
    """Digits after the point, of a decimal or of the fraction of a second."""
    values: pa.Array


class JsonColumn(NamedTuple):
    """A column as source/json_texts.h describes it."""

    output: int
    width: int
    scale: int
    is_quoted: bool
    before: bytes
    first: int
    validity: Any
    offsets: Any
    values: Any


def json_texts(fields: Sequence[Field], count: int, absent: pa.Array | None) -> pa.Array:
    """Return the object of each of `count` rows, as string; null where `absent` is true.

    Raises ValueError or OverflowError for rows that only Python can write: a column has another type than
    `codec.images` lists, a date isn't in the calendar, or the texts are too large for one array.
    """
    columns = tuple([_column(field, "," if place else "") for place, field in enumerate(fields)])
    mask, first = (None, 0) if absent is None else (absent.buffers()[1], absent.offset)
    buffers_read = native.json_texts(columns, count, mask, first, powers_of_ten(), MOST_BYTES)
    buffers = [None if one is None else pa.py_buffer(one) for one in buffers_read]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def _column(field: Field, before: str) -> JsonColumn:
    values = field.values
    output, width = _form(values.type)
    scale = getattr(values.type, "scale", field.scale)  # a decimal's type has it
    validity, *offsets, data = values.buffers()
    head = output, width, scale, field.is_quoted, f"{before}{field.name}".encode(), values.offset
    return JsonColumn(*head, validity, offsets[0] if offsets else None, data)


@cache
def _form(type_: pa.DataType) -> tuple[int, int]:
    """Return what such an array holds, and the bytes of an element; 0 of text and bytes."""
    for is_such, output in _OUTPUTS:
        if is_such(type_) and getattr(type_, "unit", "us") == "us":
            is_variable = output in ("AS_TEXT", "AS_BYTES")
            return getattr(native, output), 0 if is_variable else type_.bit_width // 8
    raise ValueError(f"values of type {type_} are written by Python")


@cache
def powers_of_ten() -> bytes:
    """Return the first 128 bits of the powers of ten that source/double_text.h names, rounded up."""
    return b"".join(_leading_bits(power).to_bytes(16, sys.byteorder) for power in range(-292, 325))


def _leading_bits(power: int) -> int:
    whole: int = 10 ** abs(power)
    bits = whole.bit_length()
    if power < 0:
        return -(-(1 << 127 + bits) // whole)
    return whole << 128 - bits if bits <= 128 else -(-whole >> bits - 128)
