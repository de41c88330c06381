"""The fields of a table whose schema is known, checked against what a Table_map event says of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, assert_never

from msgspec.structs import replace

from ...errors import SourceError
from ...events import (
    FLOATS,
    Column,
    Kind,
    Table,
)
from .charset import max_bytes, text_decoder
from .collation import collation
from .field import Field, TableMap, Type, is_hash_of_unique_key, passed_over, value_bytes
from .known_table import KnownTable
from .metadata import Metadata

Physical = tuple[int, int]
"""A column's type and the number in its metadata."""

_TYPES: Final[dict[Kind, tuple[int, ...]]] = {
    "tinyint": (Type.TINY,),
    "smallint": (Type.SHORT,),
    "mediumint": (Type.INT24,),
    "int": (Type.LONG,),
    "bigint": (Type.LONGLONG,),
    "decimal": (Type.NEWDECIMAL,),
    "float": (Type.FLOAT,),
    "double": (Type.DOUBLE,),
    "bit": (Type.BIT,),
    "year": (Type.YEAR,),
    "date": (Type.DATE, Type.NEWDATE),
    "time": (Type.TIME2, Type.TIME),
    "datetime": (Type.DATETIME2, Type.DATETIME),
    "timestamp": (Type.TIMESTAMP2, Type.TIMESTAMP),
    "char": (Type.STRING,),
    "binary": (Type.STRING,),
    "varchar": (Type.VARCHAR, Type.VAR_STRING, Type.VARCHAR_COMPRESSED),
    "varbinary": (Type.VARCHAR, Type.VAR_STRING, Type.VARCHAR_COMPRESSED),
    "text": (Type.BLOB, Type.BLOB_COMPRESSED),
    "blob": (Type.BLOB, Type.BLOB_COMPRESSED),
    "enum": (Type.ENUM,),
    "set": (Type.SET,),
    "json": (Type.JSON, Type.BLOB, Type.BLOB_COMPRESSED),
    "uuid": (Type.STRING,),
    "inet4": (Type.STRING,),
    "inet6": (Type.STRING,),
    "geometry": (Type.GEOMETRY,),
    "vector": (Type.VECTOR, Type.VARCHAR),
}
UNTOLD_KINDS: Final[frozenset[Kind]] = frozenset({"uuid", "inet4", "inet6", "vector"})
"""Kinds whose columns look like others in a Table_map."""
_FIXED_BYTES: Final[dict[Kind, int]] = {"uuid": 16, "inet4": 4, "inet6": 16}
_FLOAT_BYTES: Final = 4


def is_shown(column: Column) -> bool:
    """Return True if the type has a part that no Table_map tells: a width, digits or a geometry's type."""
    has_digits = column.kind in FLOATS and column.length > 0
    return bool(column.width or column.zerofill or column.subtype or has_digits)


def map_of_known(
    known_table: KnownTable, physical: Sequence[Physical], nullable: Sequence[bool], metadata: Metadata
) -> TableMap:
    """Return the table with a field for each column of the rows, hidden if it is left out. Raises SourceError
    if the rows contradict the definition."""
    table, complete = known_table.table, known_table.complete
    names = metadata.names
    known = [column.name for column in complete.columns]
    if names:
        hidden = [
            name not in known and is_hash_of_unique_key(name, code)
            for name, (code, _) in zip(names, physical, strict=True)
        ]
        listed = [name for name, hides in zip(names, hidden, strict=True) if not hides]
        if listed != known:
            raise _contradiction(table, f"has the columns {', '.join(listed)}, not {', '.join(known)}")
    else:
        hidden = [False] * len(physical)
        if len(physical) != len(known):
            raise _contradiction(table, f"has {len(physical)} columns, not {len(known)}")
    places = [i for i, hides in enumerate(hidden) if not hides]
    if metadata.key and metadata.key != tuple(places[i] for i in complete.key):
        raise _contradiction(table, "has another primary key")
    fields = [
        passed_over(names[i] if names else "", code, size, nullable=nullable[i])
        for i, (code, size) in enumerate(physical)
    ]
    columns = []
    for i, column in zip(places, complete.columns, strict=True):
        if known_table.whole is not None and column.generated:
            continue
        code, size = physical[i]
        if code not in _TYPES[column.kind] or _size(column, code, size) != size:
            raise _contradiction(table, f"has column {column.name} of type {code}, size {size}")
        columns.append(_checked(table, column, i, metadata))
        fields[i] = Field(replace(columns[-1], nullable=nullable[i]), code, size)
    made = tuple(columns)
    return TableMap(table if made == table.columns else replace(table, columns=made), tuple(fields))


def _size(column: Column, code: int, size: int) -> int:
    """Return the number that the metadata of such a column must have; `size` is what they have."""
    kind = column.kind
    match kind:
        case "decimal":
            return column.length | column.scale << 8
        case "char" | "varchar":
            return size - value_bytes(code, size) + column.length * max_bytes(column.charset or "")
        case "binary" | "varbinary":
            return size - value_bytes(code, size) + column.length
        case "text" | "blob" | "bit":
            return column.length
        case "time" | "datetime" | "timestamp":
            return column.scale
        case "enum":
            return 1 if len(column.members) < 256 else 2
        case "set":
            return (len(column.members) + 7) // 8 if len(column.members) <= 32 else 8
        case "uuid" | "inet4" | "inet6":
            return _FIXED_BYTES[kind]
        case "vector" if code == Type.VARCHAR:
            return column.length * _FLOAT_BYTES
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "float" | "double" | "date" | "year"
            | "json" | "geometry" | "vector"
        ):  # fmt: skip
            return size
        case _:
            assert_never(kind)


def _checked(table: Table, column: Column, i: int, metadata: Metadata) -> Column:
    """Compare a column with those metadata that the event has. Its members are taken from them: an
    information_schema prints a character beyond the 16-bit plane as "?"."""
    if metadata.has_signs and column.kind != "year" and column.unsigned != (i in metadata.unsigned):
        raise _contradiction(table, f"has column {column.name} with another sign")
    if column.charset is None or i not in metadata.collations:
        return column
    charset, _ = collation(metadata.collations[i])
    if charset != column.charset:
        raise _contradiction(table, f"has column {column.name} with CHARACTER SET {charset}")
    if i not in metadata.members:
        return column
    members = tuple(map(text_decoder(charset), metadata.members[i]))
    if members == column.members:
        return column
    if tuple(re.sub("[\U00010000-\U0010ffff]", "?", member) for member in members) != column.members:
        raise _contradiction(table, f"has column {column.name} with other members")
    return replace(column, members=members)


def _contradiction(table: Table, what: str) -> SourceError:
    return SourceError(
        f"the binlog's table {table.full_name} {what}: its schema isn't the one that is known here; start "
        "again with a new snapshot"
    )
