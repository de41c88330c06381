"""The binlog's Table_map event: a table's columns as written in the rows events after it.

The format is that of MySQL's libbinlogevents (rows_event.h) and MariaDB's log_event_server.cc: names, one
type byte and 0 to 2 metadata bytes per column, a bit per column for nullable ones, and with
binlog_row_metadata=FULL a list of (type, length, value) fields for everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from ...errors import SourceError
from ...events import Column, Table
from .charset import max_bytes, text_decoder
from .collation import collation
from .field import BYTES_KINDS, KIND_OF_TYPE, METADATA_BYTES, NUMERIC, TEXTUAL, UNSUPPORTED, Field, Type


class TableMap(Struct, frozen=True):
    table: Table
    fields: tuple[Field, ...]
    """One for each column of `table`."""


def names_of(payload: bytes) -> tuple[str, str]:
    """Return schema and table of a Table_map event's payload, without parsing the rest."""
    at = 2 + payload[0]
    return payload[1 : at - 1].decode(), payload[at + 1 : at + 1 + payload[at]].decode()


def parse_table_map(payload: bytes) -> TableMap:
    """Read a Table_map event's payload: its body after table id and flags, without the checksum.

    Raises SourceError, naming the table, if binlog_row_metadata=FULL is missing, for a column whose type or
    charset isn't supported and for a payload that is incomplete.
    """
    try:
        schema, name = names_of(payload)
    except (IndexError, UnicodeDecodeError):
        raise SourceError("a Table_map event of the binlog can't be read") from None
    try:
        return _parse(schema, name, payload)
    except (LookupError, ValueError):
        raise SourceError(f"the Table_map event of table {schema}.{name} can't be read") from None


def _parse(schema: str, name: str, payload: bytes) -> TableMap:
    body = _Cursor(payload)
    for _ in range(2):  # schema and table, each ended by a zero
        body.string()
        body.take(1)
    types, metadata = body.string(), _Cursor(body.string())
    physical = [_physical(code, metadata.take(METADATA_BYTES.get(code, 0))) for code in types]
    nullable = _bits(body.take((len(types) + 7) // 8))
    optional = _Optional(body, [code for code, _ in physical])
    if not optional.names:
        raise SourceError(
            f"the binlog holds no column names of table {schema}.{name}: "
            "the source must run with binlog_row_metadata=FULL"
        )
    fields = []
    for i, (code, size) in enumerate(physical):
        try:
            fields.append(_field(i, code, size, nullable[i], optional))
        except _Unsupported as what:
            raise SourceError(
                f"column {optional.names[i]} of table {schema}.{name}: {what} isn't supported; "
                "leave the table out"
            ) from None
    columns = tuple(field.column for field in fields)
    return TableMap(Table(schema, name, columns, optional.key), tuple(fields))


class _Cursor:
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


def _bits(data: bytes, *, high_first: bool = False) -> list[bool]:
    order = range(7, -1, -1) if high_first else range(8)
    return [byte >> bit & 1 == 1 for byte in data for bit in order]


def _physical(code: int, metadata: bytes) -> tuple[int, int]:
    """Return a column's real type and the number in its metadata."""
    if code == Type.STRING:
        first, second = metadata
        if first | 0x30 != Type.STRING:
            return first, second  # an enum or a set
        # Two bits of the type, which are otherwise always set, hold the top of the length, inverted.
        return code, second | (first & 0x30 ^ 0x30) << 4
    if code == Type.BIT:
        return code, metadata[1] * 8 + metadata[0]
    return code, int.from_bytes(metadata, "little")


class _Optional:
    """The optional metadata, with each field assigned to its columns."""

    def __init__(self, body: _Cursor, types: Sequence[int]) -> None:
        self.names: list[str] = []
        self.key: tuple[int, ...] = ()
        self.unsigned: set[int] = set()
        self.collations: dict[int, int] = {}
        self.members: dict[int, list[bytes]] = {}
        numeric = [i for i, code in enumerate(types) if code in NUMERIC]
        textual = [i for i, code in enumerate(types) if code in TEXTUAL]
        listed = [i for i, code in enumerate(types) if code in (Type.ENUM, Type.SET)]
        while body.at < len(body.data):
            (kind,) = body.take(1)
            field = _Cursor(body.string())
            match kind:
                case 1:  # SIGNEDNESS
                    bits = _bits(field.data, high_first=True)
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
                case _:  # geometry types, visibility and fields of later servers: not needed for values
                    pass
        if any(i >= len(types) for i in self.key) or len(self.names) not in (0, len(types)):
            raise ValueError

    def _default_collation(self, field: _Cursor, columns: Sequence[int]) -> None:
        self.collations.update(dict.fromkeys(columns, field.number()))
        others = tuple(field.numbers())
        for nth, number in zip(others[::2], others[1::2], strict=True):
            self.collations[columns[nth]] = number

    def _members(self, field: _Cursor, columns: Sequence[int]) -> None:
        for i in columns:
            self.members[i] = [field.string() for _ in range(field.number())]


class _Unsupported(Exception):
    """The part of a column that isn't supported."""


def _field(i: int, code: int, size: int, nullable: bool, optional: _Optional) -> Field:
    if code not in KIND_OF_TYPE:
        raise _Unsupported(UNSUPPORTED.get(code, f"type {code}"))
    kind = KIND_OF_TYPE[code]
    details: dict[str, Any] = {}
    if code in TEXTUAL or code in (Type.ENUM, Type.SET):
        charset, order = _collation(optional.collations[i])
        if charset != "binary":
            details = {"charset": charset, "collation": order}
        elif kind in BYTES_KINDS:
            kind = BYTES_KINDS[kind]
        else:
            raise _Unsupported(f"{kind} with CHARACTER SET binary")
    match kind:
        case "decimal":
            details["length"], details["scale"] = size & 0xFF, size >> 8
        case "char" | "varchar":
            details["length"] = size // max_bytes(details["charset"])
        case "binary" | "varbinary" | "text" | "blob" | "bit":
            details["length"] = size
        case "time" | "datetime" | "timestamp":
            details["scale"] = size
        case "enum" | "set":
            decode = text_decoder(details["charset"])
            details["members"] = tuple(map(decode, optional.members[i]))
    unsigned = i in optional.unsigned and kind != "year"
    column = Column(optional.names[i], kind, unsigned=unsigned, nullable=nullable, **details)
    return Field(column, code, size)


def _collation(number: int) -> tuple[str, str | None]:
    try:
        charset, order = collation(number)
    except LookupError:
        raise _Unsupported(f"collation {number}") from None
    if charset != "binary":
        try:
            text_decoder(charset)
        except LookupError:
            raise _Unsupported(f"character set {charset}") from None
    return charset, order
