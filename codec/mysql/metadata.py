"""The optional metadata of a Table_map event, and reading of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from .field import NUMERIC, TEXTUAL, Type

_BINARY: Final = 63
"""Number of the collation of bytes."""


class PayloadReader:
    """Reads a payload from its start. Raises IndexError at a premature end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        start, self.at = self.at, self.at + count
        if self.at > len(self.data):
            raise IndexError
        return self.data[start : self.at]

    def number(self) -> int:
        """Read a length-encoded integer."""
        (first,) = self.take(1)
        if first < 251:
            return first
        return int.from_bytes(self.take({252: 2, 253: 3, 254: 8}[first]), "little")

    def string(self) -> bytes:
        return self.take(self.number())

    def numbers(self) -> Iterator[int]:
        while self.at < len(self.data):
            yield self.number()

    def strings(self) -> Iterator[bytes]:
        while self.at < len(self.data):
            yield self.string()


def bits_of(data: bytes, *, high_first: bool = False) -> list[bool]:
    order = range(7, -1, -1) if high_first else range(8)
    return [byte >> bit & 1 == 1 for byte in data for bit in order]


class Metadata:
    """The optional metadata, with each field assigned to its columns."""

    def __init__(self, body: PayloadReader, types: Sequence[int]) -> None:
        self.names: list[str] = []
        self.key: tuple[int, ...] = ()
        self.has_signs = False
        self.unsigned: set[int] = set()
        self.collations: dict[int, int] = {}
        self.members: dict[int, list[bytes]] = {}
        self.dimensions: dict[int, int] = {}
        fields: dict[int, bytes] = {}
        while body.at < len(body.data):
            (kind,) = body.take(1)
            fields[kind] = body.string()
        numeric = [i for i, code in enumerate(types) if code in NUMERIC]
        textual = _textual(types, fields)
        listed = [i for i, code in enumerate(types) if code in (Type.ENUM, Type.SET)]
        for kind, data in fields.items():
            field = PayloadReader(data)
            match kind:
                case 1:  # SIGNEDNESS
                    self.has_signs = True
                    bits = bits_of(field.data, high_first=True)
                    self.unsigned.update(i for nth, i in enumerate(numeric) if bits[nth])
                case 2:  # DEFAULT_CHARSET
                    self._default_collation(field, textual)
                case 3:  # COLUMN_CHARSET
                    self.collations.update(zip(textual, field.numbers(), strict=True))
                case 4:  # COLUMN_NAME
                    self.names = [name.decode() for name in field.strings()]
                case 5:  # SET_STR_VALUE
                    self._members(field, [i for i in listed if types[i] == Type.SET])
                case 6:  # ENUM_STR_VALUE
                    self._members(field, [i for i in listed if types[i] == Type.ENUM])
                case 8:  # SIMPLE_PRIMARY_KEY
                    self.key = tuple(field.numbers())
                case 9:  # PRIMARY_KEY_WITH_PREFIX: pairs of column and length
                    self.key = tuple(field.numbers())[::2]
                case 10:  # ENUM_AND_SET_DEFAULT_CHARSET
                    self._default_collation(field, listed)
                case 11:  # ENUM_AND_SET_COLUMN_CHARSET
                    self.collations.update(zip(listed, field.numbers(), strict=True))
                case 13:  # VECTOR_DIMENSIONALITY
                    vectors = [i for i, code in enumerate(types) if code == Type.VECTOR]
                    self.dimensions.update(zip(vectors, field.numbers(), strict=True))
                case _:  # geometry types, visibility and fields of later servers: not needed for values
                    pass
        if any(i >= len(types) for i in self.key) or len(self.names) not in (0, len(types)):
            raise ValueError

    def _default_collation(self, field: PayloadReader, columns: Sequence[int]) -> None:
        self.collations.update(dict.fromkeys(columns, field.number()))
        others = tuple(field.numbers())
        for nth, number in zip(others[::2], others[1::2], strict=True):
            self.collations[columns[nth]] = number

    def _members(self, field: PayloadReader, columns: Sequence[int]) -> None:
        for i in columns:
            self.members[i] = [field.string() for _ in range(field.number())]


def _textual(types: Sequence[int], fields: Mapping[int, bytes]) -> list[int]:
    """Return the columns with a collation in the metadata. In MariaDB's, geometries are among them, always
    with that of binary; in MySQL's they aren't."""
    every = [i for i, code in enumerate(types) if code in TEXTUAL]
    others = [i for i in every if types[i] != Type.GEOMETRY]
    if 12 in fields:  # COLUMN_VISIBILITY, which only MySQL logs, if also the names
        return others
    if 3 in fields:
        return every if len(list(PayloadReader(fields[3]).numbers())) == len(every) else others
    if 2 in fields:
        default, *pairs = PayloadReader(fields[2]).numbers()
        collations = dict(zip(pairs[::2], pairs[1::2], strict=True))
        numbers = [collations.get(nth, default) for nth, i in enumerate(every) if types[i] == Type.GEOMETRY]
        return others if any(number != _BINARY for number in numbers) else every
    return every
