"""Conversion of a table of TiDB to events.Table: its visible columns and its key."""

from __future__ import annotations

from typing import Final, assert_never

from ...events import (
    BYTE_STRINGS,
    DISPLAY_WIDTHS,
    FLOATS,
    WITH_CHARSET,
    Column,
    Table,
    display_width,
)
from .column_type import LENGTH_BYTES, ColumnFlag, is_unsigned
from .columns import Columns, columns_of, primary_index
from .field import Field
from .table_info import ColumnInfo, TableInfo

_MOMENTS: Final = ("datetime", "timestamp")
_NUMBERS: Final = frozenset(
    ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "year")
)
_NOW: Final = "CURRENT_TIMESTAMP"


def to_table(schema: str, info: TableInfo) -> Table:
    """Return a table with the columns that users see, without virtual generated ones, which no row contains.

    Raises SourceError for a column of an unknown type.
    """
    columns = columns_of(schema, info)
    return Table(
        schema=schema,
        name=info.name,
        columns=tuple(map(_column, columns.visible)),
        key=_key(info, columns),
        charset=info.charset or None,
        collation=info.collation or None,
    )


def _key(info: TableInfo, columns: Columns) -> tuple[int, ...]:
    """Return the key's columns; empty if one of them isn't visible."""
    places = {field.column.id: place for place, field in enumerate(columns.visible)}
    if columns.handle is not None:
        ids = [columns.handle]
    else:
        index = primary_index(info)
        ids = [info.columns[part.offset].id for part in index.columns] if index else []
    return tuple(places[id_] for id_ in ids) if all(id_ in places for id_ in ids) else ()


def _column(field: Field) -> Column:
    column, kind = field.column, field.kind
    textual = kind in WITH_CHARSET
    return Column(
        name=column.name,
        kind=kind,
        unsigned=is_unsigned(column) and kind not in ("bit", "year"),
        length=_length(field),
        scale=field.scale if kind in ("decimal", "time", *_MOMENTS) or _has_digits(field) else 0,
        members=column.elements,
        charset=column.charset if textual else None,
        collation=column.collation if textual else None,
        nullable=not column.flags & ColumnFlag.NOT_NULL,
        default=_default(field),
        on_update=_now(column) if column.flags & ColumnFlag.ON_UPDATE_NOW else None,
        generated=bool(column.generated),
        width=_width(field),
        zerofill=bool(column.flags & ColumnFlag.ZEROFILL) and kind in _NUMBERS - {"year"},
    )


def _width(field: Field) -> int:
    if field.kind not in DISPLAY_WIDTHS or field.column.length < 0:
        return 0
    return display_width(field.kind, field.column.length, unsigned=is_unsigned(field.column))


def _has_digits(field: Field) -> bool:
    """Return True for a FLOAT(M,D) or DOUBLE(M,D)."""
    return field.kind in FLOATS and field.column.decimal >= 0


def _length(field: Field) -> int:
    match field.kind:
        case "text" | "blob":
            return LENGTH_BYTES[field.column.type]
        case "char" | "varchar" | "binary" | "varbinary" | "bit" | "decimal":
            return field.column.length
        case "float" | "double" if _has_digits(field):
            return field.column.length
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "float" | "double" | "date" | "time"
            | "datetime" | "timestamp" | "year" | "enum" | "set" | "json" | "uuid" | "inet4" | "inet6"
            | "geometry" | "vector"
        ):  # fmt: skip
            return 0
        case _:
            assert_never(field.kind)


def _default(field: Field) -> str | None:
    """Return a column's default; that of a TIMESTAMP is in UTC."""
    column, default = field.column, field.column.default
    if field.kind == "bit" and column.default_bit is not None:
        return f"b'{int.from_bytes(column.default_bit, 'big'):0{column.length}b}'"
    if default is None:
        return None
    text = str(default)
    if field.kind in _MOMENTS and text.upper().startswith(_NOW):
        return _now(column)
    if column.default_is_expression:
        return f"({text})"
    if field.kind in _NUMBERS:
        return text
    if field.kind in BYTE_STRINGS:
        return f"x'{text.encode().hex()}'"
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _now(column: ColumnInfo) -> str:
    return f"{_NOW}({column.decimal})" if column.decimal > 0 else _NOW
