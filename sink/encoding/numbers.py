"""Numbers, enums, sets and vectors as other systems print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from struct import pack, unpack
from typing import Final

from ...events import not_a_member

_SHORT: Final = 8
"""Characters of a double's text up to which it has at most six digits, which a 32-bit float keeps."""


def single_text(value: float) -> str:
    """Return the shortest decimal that reads back as the same 32-bit float; as repr() writes doubles."""
    text = repr(value)
    if len(text) <= _SHORT and "e" not in text:
        return text
    bits = pack("<f", value)
    for digits in range(1, 9):
        shortest = float(f"{value:.{digits}g}")
        if abs(shortest) < _LARGEST and pack("<f", shortest) == bits:
            return repr(shortest)
    return repr(float(f"{value:.9g}"))


_LARGEST: Final = 3.4028235677973366e38
"""Smallest double that is too large for a 32-bit float."""


def plain(text: str) -> str:
    """Return the text of repr() without exponent, and without ".0"."""
    if "e" in text:
        return format(Decimal(text), "f")
    return text.removesuffix(".0")


def plain_double(value: float) -> str:
    return plain(repr(value))


def plain_single(value: float) -> str:
    return plain(single_text(value))


def json_number(text: str) -> str:
    """Return the text of repr() as ECMAScript prints the number: exponents below 1e-6 and from 1e21 on."""
    mantissa, mark, exponent = text.partition("e")
    if not mark:
        return text.removesuffix(".0")
    size = int(exponent)
    return plain(text) if -7 < size < 21 else f"{mantissa}e{size:+03}"


def go_number(text: str) -> str:
    """Return the text of repr() as Go's %v prints the number: exponents below 1e-4 and from 1e6 on."""
    value = Decimal(text)
    size = value.adjusted() if value else 0
    if -5 < size < 6:
        return plain(text)
    sign, digits, _ = value.normalize().as_tuple()
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    return f"{'-' if sign else ''}{first}{'.' + rest if rest else ''}e{size:+03}"


def java_number(text: str) -> str:
    """Return the text of repr() as Java prints the number: "1.0"; exponents below 1e-3 and from 1e7 on."""
    value = Decimal(text)
    size = value.adjusted() if value else 0
    if -4 < size < 7:
        number = plain(text)
        return number if "." in number else f"{number}.0"
    sign, digits, _ = value.normalize().as_tuple()
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{size}"


def vector_text(value: bytes) -> str:
    """Return 32-bit floats, low byte first, as TiDB prints a vector: "[1,2.5]"."""
    numbers = unpack(f"<{len(value) // 4}f", value)
    return f"[{','.join([json_number(single_text(x)) for x in numbers])}]"


class EnumIndex(dict[str, int]):
    """The index of each member of an enum, from 1; 0 for an invalid value."""

    def __init__(self, members: Sequence[str]) -> None:
        super().__init__({not_a_member(members): 0})
        for index in range(len(members), 0, -1):  # the first of equal members wins
            self[members[index - 1]] = index


class SetMask(dict[str, int]):
    """The bits of each combination of a set's members."""

    def __init__(self, members: Sequence[str]) -> None:
        super().__init__({"": 0})
        self._bits: Mapping[str, int] = {member: 1 << bit for bit, member in enumerate(members)}

    def __missing__(self, text: str) -> int:
        mask = self[text] = sum(self._bits[member] for member in text.split(","))
        return mask
