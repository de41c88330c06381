"""Native writing of rows as texts, from tuples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from .json_texts import powers_of_ten
from .library import native

Output: TypeAlias = Literal["INT", "DOUBLE", "DECIMAL", "DATE", "DATETIME", "DURATION", "TEXT", "OTHER"]
"""Kinds of values that native code writes; OTHER has none."""


class ValueWriter(NamedTuple):
    """Writes the values of a column, as source/row_texts.h describes it: in native code as in Python.

    An INT is a whole number, a DOUBLE has neither an exponent nor ".0", a DATETIME has no zone or UTC's, and
    a TEXT is what a JSON string contains: a text with its escapes, or bytes as base64.
    """

    output: int
    scale: int
    """Digits after the point: of a decimal, or the fraction of a second."""
    is_html: bool
    """True if HTML may contain the JSON of texts."""
    is_number: bool
    """True for decimals without zeros at their end, and times as whole numbers: a DATE is days since 1970, a
    DURATION microseconds, a DATETIME milliseconds since 1970, or microseconds with more than 3 digits."""
    members: Mapping[Any, int] | None
    """The numbers that are written in place of values."""
    before: bytes
    after: bytes
    null: bytes
    write: Callable[[Sequence[Any]], list[bytes]]

    def __call__(self, values: Sequence[Any]) -> list[bytes]:
        return self.write(values)


class RowValues(NamedTuple):
    """The values at a place of each row."""

    rows: list[tuple[Any, ...]]
    place: int
    writer: ValueWriter


Part: TypeAlias = bytes | list[bytes] | RowValues
"""A piece that all rows have; pieces of each row; or values of each."""


def output_number(output: Output) -> int:
    """Return the number of the kind in the native module; 0 without one."""
    return getattr(native, f"AS_{output}", 0)


def row_texts(count: int, parts: Sequence[Part]) -> list[bytes]:
    """Return `count` texts, each of which has one piece of every part."""
    return native.row_texts(count, tuple(parts), powers_of_ten())
