"""Keys in a form that Python compares as the source does, and that a checkpoint can store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from ipaddress import ip_address
from struct import Struct
from typing import Any, Final, TypeAlias, assert_never

from msgspec import Struct as Message
from msgspec.structs import replace

from .collation import form_of
from .kinds import AS_INT, KINDS
from .table import Column, Table, not_a_member

KeyPart: TypeAlias = int | str
OrderedKey: TypeAlias = tuple[KeyPart, ...]
"""One part for each column of the key. Two forms are equal if the source holds the keys for equal."""


class KeyRange(Message, frozen=True, gc=False):
    """Keys above `after`, up to and including `up_to`; without a bound if that is None or empty.

    A bound with fewer parts than the keys stands for all keys that begin with it.
    """

    after: OrderedKey | None = None
    up_to: OrderedKey | None = None

    def has(self, key: OrderedKey) -> bool:
        after, up_to = self.after, self.up_to
        return (not after or key[: len(after)] > after) and (not up_to or key[: len(up_to)] <= up_to)


_DIGITS: Final = 65
_NINES: Final = 10**_DIGITS - 1
_MICROSECOND: Final = timedelta(microseconds=1)

_float64 = Struct("<d")
_int64 = Struct("<q")
_LEAST_INT64: Final = -(1 << 63)

_Part: TypeAlias = Callable[[Any], KeyPart]


def key_order(table: Table) -> Callable[[Sequence[Any]], OrderedKey] | None:
    """Return the function from a row to its key in this form; None if the table has no key, or one that
    can't be compared here: of strings in other collations than `form_of` knows, of SET, or of UUID."""
    parts = [_part(table.columns[index]) for index in table.key]
    if not parts or None in parts:
        return None
    if all(table.columns[index].kind in AS_INT for index in table.key):
        if len(table.key) == 1:
            (first,) = table.key
            return lambda row: (row[first],)
        return lambda row: tuple([row[index] for index in table.key])
    pairs = [(index, part) for index, part in zip(table.key, parts, strict=True) if part is not None]
    return lambda row: tuple([part(row[index]) for index, part in pairs])


def key_table(table: Table) -> Table:
    """Return a table with the columns of the key only, in its order."""
    columns = tuple([table.columns[index] for index in table.key])
    return replace(table, columns=columns, key=tuple(range(len(columns))))


def exact_form(column: Column) -> _Part | None:
    """Return the function from a column's value that isn't NULL to its form, which is the same however the
    value was read; None if there is none. Texts are equal by their characters, not by a collation."""
    if column.kind in ("char", "varchar", "text", "enum", "uuid"):
        return str
    return _bytes if column.kind == "blob" else _part(column)


def _part(column: Column) -> _Part | None:
    order = KINDS[column.kind].order
    match order:
        case "integer":
            return int
        case "decimal":
            return lambda value: _decimal(value, column.scale)
        case "float":
            return float_form
        case "address":
            return lambda value: ip_address(value).packed.hex()
        case "date":
            return str
        case "moment":
            return moment_form
        case "duration":
            return lambda value: value // _MICROSECOND
        case "bytes":
            return _bytes
        case "collation":
            return form_of(column.collation or "")
        case "members":
            return _enum(column.members)
        case "unknown":
            return None
        case _:
            assert_never(order)


def _bytes(value: bytes) -> str:
    return bytes(value).hex()


def _enum(members: Sequence[str]) -> _Part:
    """Return the function from a member to its number, from 1; 0 for an invalid value."""
    numbers = {member: number for number, member in enumerate(members, 1)} | {not_a_member(members): 0}
    return numbers.__getitem__


def float_form(value: float) -> int:
    """Return the bits of a number as an int that rises with it, so that a checkpoint has it exactly."""
    (bits,) = _int64.unpack(_float64.pack(value))
    return int(bits if bits >= 0 else _LEAST_INT64 - bits)


def float_of(form: int) -> float:
    """Return the number from its form."""
    bits = form if form >= 0 else _LEAST_INT64 - form
    (value,) = _float64.unpack(_int64.pack(bits))
    return float(value)


def _decimal(value: Decimal, scale: int) -> str:
    """Return the digits after the sign, 0 or 1; those of a negative number as the complement.

    They are text, as a number may have 65 of them; arithmetic of Decimals would round it to 28.
    """
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)) + "0" * (int(exponent) + scale))
    return f"0{_NINES - number:0{_DIGITS}}" if sign and number else f"1{number:0{_DIGITS}}"


def unscaled(form: str) -> int:
    """Return a decimal's digits, with its sign, from its form."""
    number = int(form[1:])
    return number if form[0] == "1" else number - _NINES


def moment_form(value: datetime | date | str) -> str:
    """Return a date and time, in the form that the source prints or in its own, as text of microseconds."""
    text = value if isinstance(value, str) else value.strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")
    return (text if "." in text else f"{text}.").ljust(26, "0")
