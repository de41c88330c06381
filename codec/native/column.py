"""The description of a column, as source/column.h defines it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple

from .library import native

_times: Final = Context(prec=65).multiply


class Description(NamedTuple):
    input: int
    """The form in which a value is stored."""
    output: int
    """The kind of object, or of Arrow array, that a value becomes."""
    size: int = 0
    """Bytes of a value, or of the length before it."""
    digits: int = 0
    scale: int = 0
    padding: int = 0
    width: int = 0
    """Bytes of an element of the Arrow array, if they have a fixed number."""
    flags: int = 0
    reader: Callable[[bytes], Any] | None = None
    """The pure Python decoder of a value's bytes: it makes the values that aren't regular."""
    members: Any = None
    """Strings of an enum, by number; or a function: of a set's bits, or of a decimal's int and `unit`."""
    unit: Any = None


def decimal(input_: int, digits: int, scale: int) -> Description:
    """Describe a decimal of up to MAX_DIGITS digits."""
    made = Description(input_, native.AS_DECIMAL, digits=digits, scale=scale, width=16, members=Decimal)
    return made._replace(members=_times, unit=Decimal(1).scaleb(-scale)) if scale else made
