"""The binlog's Table_map event: a table's columns as written in the rows events after it.

The format is that of MySQL's libbinlogevents (rows_event.h) and MariaDB's log_event_server.cc: names, one
type byte and 0 to 2 metadata bytes per column, a bit per column for nullable ones, and with
binlog_row_metadata=FULL a list of (type, length, value) fields for everything else.
"""

from __future__ import annotations

from typing import Any, Final, assert_never

from ...errors import SourceError
from ...events import Column, Table
from .charset import max_bytes, text_decoder
from .collation import collation
from .field import (
    BYTES_KINDS,
    KIND_OF_TYPE,
    METADATA_BYTES,
    TEXTUAL,
    UNSUPPORTED,
    Field,
    TableMap,
    Type,
    is_hash_of_unique_key,
    passed_over,
    value_bytes,
    visible,
)
from .known import map_of_known
from .known_table import KnownTable
from .metadata import Metadata, PayloadReader, bits_of

_SEQUENCE_COLUMNS: Final = [
    "next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment", "cache_size",
    "cycle_option", "cycle_count",
]  # fmt: skip
_INTEGERS: Final = (Type.TINY, Type.SHORT, Type.INT24, Type.LONG, Type.LONGLONG)


def names_of(payload: bytes) -> tuple[str, str]:
    """Return schema and table of a Table_map event's payload, without parsing the rest."""
    offset = 2 + payload[0]
    return payload[1 : offset - 1].decode(), payload[offset + 1 : offset + 1 + payload[offset]].decode()


def has_names(payload: bytes) -> bool:
    """Return True if the event tells the columns' names; also if it can't be read, which parsing reports."""
    try:
        return bool(_read(payload)[2].names)
    except (LookupError, ValueError):
        return True


def may_be_sequence(payload: bytes) -> bool:
    """Return True if the table has the columns of a MariaDB's sequence, whose NEXT VALUE is logged like a
    row; by their types only, if the event doesn't tell their names."""
    try:
        physical, nullable, metadata = _read(payload)
    except (LookupError, ValueError):
        return False
    codes = [code for code, _ in physical]
    if len(codes) != len(_SEQUENCE_COLUMNS) or any(nullable[: len(codes)]):
        return False
    value = codes[0]  # all values have the sequence's type
    return (
        value in _INTEGERS
        and codes == [value, value, value, value, Type.LONGLONG, Type.LONGLONG, Type.TINY, Type.LONGLONG]
        and metadata.names in ([], _SEQUENCE_COLUMNS)
    )


def map_of_widths(payload: bytes) -> TableMap:
    """Return a map with which rows are told apart, but not read: with names and types of the table only.

    It needs neither binlog_row_metadata=FULL nor supported column types. Raises SourceError for a payload
    that is incomplete.
    """
    try:
        names = names_of(payload)
        physical, nullable, _ = _read(payload)
    except (LookupError, ValueError):
        raise SourceError("a Table_map event of the binlog can't be read") from None
    columns = zip(physical, nullable, strict=False)  # the bits of the last byte may be more than the columns
    fields = [
        passed_over(f"column {number}", code, size, nullable=is_nullable)
        for number, ((code, size), is_nullable) in enumerate(columns, 1)
    ]
    return TableMap(Table(*names, (), ()), tuple(fields))


def parse_table_map(payload: bytes, known: KnownTable | None = None) -> TableMap:
    """Read a Table_map event's payload: its body after table id and flags, without the checksum.

    `known` is the table if its schema is known; without it binlog_row_metadata must be FULL. Raises
    SourceError, naming the table, if that is missing, if the event contradicts `known`, for a column whose
    type or charset isn't supported and for a payload that is incomplete.
    """
    try:
        schema, name = names_of(payload)
    except (IndexError, UnicodeDecodeError):
        raise SourceError("a Table_map event of the binlog can't be read") from None
    try:
        return _parse(schema, name, payload, known)
    except (LookupError, ValueError):
        raise SourceError(f"the Table_map event of table {schema}.{name} can't be read") from None


def _read(payload: bytes) -> tuple[list[tuple[int, int]], list[bool], Metadata]:
    """Return each column's real type with the number in its metadata, which are nullable, and the rest."""
    body = PayloadReader(payload)
    for _ in range(2):  # schema and table, each ended by a zero
        body.string()
        body.take(1)
    types, metadata = body.string(), PayloadReader(body.string())
    physical = [_physical(code, metadata.take(METADATA_BYTES.get(code, 0))) for code in types]
    nullable = bits_of(body.take((len(types) + 7) // 8))
    return physical, nullable, Metadata(body, [code for code, _ in physical])


def _parse(schema: str, name: str, payload: bytes, known: KnownTable | None) -> TableMap:
    physical, nullable, optional = _read(payload)
    if known is not None:
        return map_of_known(known, physical, nullable, optional)
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
    places = {i: place for place, i in enumerate(visible(fields))}
    columns = tuple(fields[i].column for i in places)
    return TableMap(Table(schema, name, columns, tuple(places[i] for i in optional.key)), tuple(fields))


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


class _Unsupported(Exception):
    """The part of a column that isn't supported."""


def _field(i: int, code: int, size: int, nullable: bool, optional: Metadata) -> Field:
    if code not in KIND_OF_TYPE:
        raise _Unsupported(UNSUPPORTED.get(code, f"type {code}"))
    kind = KIND_OF_TYPE[code]
    details: dict[str, Any] = {}
    if kind not in ("geometry", "vector") and (code in TEXTUAL or code in (Type.ENUM, Type.SET)):
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
            details["length"] = value_bytes(code, size) // max_bytes(details["charset"])
        case "binary" | "varbinary" | "text" | "blob" | "bit":
            details["length"] = value_bytes(code, size)
        case "time" | "datetime" | "timestamp":
            details["scale"] = size
        case "enum" | "set":
            decode = text_decoder(details["charset"])
            try:
                details["members"] = tuple(map(decode, optional.members[i]))
            except UnicodeDecodeError:
                raise _Unsupported(f"{kind} with members that aren't {details['charset']}") from None
        case "vector":
            details["length"] = optional.dimensions[i]
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "float" | "double" | "date" | "year"
            | "json" | "uuid" | "inet4" | "inet6" | "geometry"
        ):  # fmt: skip
            pass
        case _:
            assert_never(kind)
    unsigned = i in optional.unsigned and kind != "year"
    column = Column(optional.names[i], kind, unsigned=unsigned, nullable=nullable, **details)
    return Field(column, code, size, hidden=is_hash_of_unique_key(column.name, code))


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
