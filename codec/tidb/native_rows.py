"""Native reading of the rows of TiDB, in formats 1 and 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never

from ...events import (
    FLOATS,
    INTEGERS,
    Block,
    Row,
    Table,
    not_a_member,
)
from ..native.column import Description, decimal
from ..native.library import native
from .column_type import is_unsigned
from .columns import Columns
from .field import UNREADABLE, Field

if TYPE_CHECKING:
    from ..native._native import TidbLayout
    from ..native.arrow import Assembly

_WIDTHS: Final = {"tinyint": 1, "smallint": 2, "mediumint": 4, "int": 4, "bigint": 8, "bit": 8, "year": 2}
"""Bytes of an element of an Arrow array of integers."""
_MOMENTS: Final = {"date": ("AS_DATE", 4), "datetime": ("AS_DATETIME", 8), "timestamp": ("AS_TIMESTAMP", 8)}

Read = Callable[[bytes, bytes], Row]
"""Maps a key and a value to the row: the decoder in Python."""
NativeTable: TypeAlias = "tuple[TidbLayout | None, Table, Read, Any]"
"""How rows of a table are read: without a layout by Python; last, what runs of the table have as block."""


class TidbRows:
    """The layout of a table's rows in TiDB."""

    def __init__(self, columns: Columns, table: Table, *, verify_checksums: bool) -> None:
        """Raises OverflowError or ValueError for columns that it can't be of; see `native_rows`."""
        self._columns = table.columns
        # A checksum is over all columns of a row, also over those that aren't asked for.
        fields = columns.stored if verify_checksums else columns.visible
        visible = {field.column.id for field in columns.visible}
        hidden = [field.column.id not in visible for field in fields]
        described = tuple(map(_describe, fields, hidden))
        self._descriptions = [one for one in described if not one.flags & native.HIDDEN]
        places = {field.column.id: i for i, field in enumerate(fields)}
        origins = [
            (field.column.id, *((native.IN_VALUE, None) if is_hidden else _origin(columns, field)))
            for field, is_hidden in zip(fields, hidden, strict=True)
        ]
        parts = [(places[id_], id_ in columns.prefixes) for id_ in columns.common_handle]
        layout = native.Layout(described)
        self.native: Final = native.TidbLayout(layout, tuple(origins), tuple(parts), verify_checksums)

    def rows(self, pairs: Sequence[tuple[bytes, bytes]], python: Read) -> list[Row]:
        """Return the rows of these keys and values; `python` reads those that aren't regular."""
        return native.tidb_rows(self.native, pairs, python)

    def columns(self, blocks: Sequence[Block], *, after: bool) -> tuple[bytes, list[Any]]:
        """Return 0 for each change that has no such row, else 1, and the Arrow array of each column; none if
        no change has one.

        Raises ValueError, or an error of Arrow, for rows that are to be read one by one.
        """
        has, parts = native.tidb_columns(self.native, tuple(blocks), after)
        return has, self._assembly.arrays(parts, len(has)) if parts else []

    def packed_columns(self, packed: Any, has: bytes, *, after: bool) -> list[Any]:
        """Return the Arrow array of each column of packed changes, an array of binary without nulls: of the
        rows after them, or before. Where a byte of `has` is 0 the change has no such row, and all its columns
        are NULL.

        Raises as `columns` does.
        """
        _, ends, data = packed.buffers()
        parts = native.tidb_packed_columns(self.native, data or b"", ends or b"", packed.offset, has, after)
        return self._assembly.arrays(parts, len(packed))

    @cached_property
    def _assembly(self) -> Assembly:
        from ..native.arrow import Assembly  # here, as it needs pyarrow

        return Assembly(self._columns, self._descriptions)


def native_rows(columns: Columns, table: Table, *, verify_checksums: bool = True) -> TidbRows | None:
    """Return the native layout of a table's rows; None if there is none: a column of its key isn't visible,
    an integer handle isn't of an integer type, or the definition is damaged."""
    kinds = {field.column.id: field.kind for field in columns.visible}
    has_handle = columns.handle is None or kinds.get(columns.handle) in INTEGERS
    is_damaged = len({field.column.id for field in columns.stored}) < len(columns.stored)
    if not has_handle or is_damaged or not kinds.keys() >= set(columns.common_handle):
        return None
    try:
        return TidbRows(columns, table, verify_checksums=verify_checksums)
    except (OverflowError, ValueError):
        return None


def _origin(columns: Columns, field: Field) -> tuple[int, bytes | EllipsisType | None]:
    """Return where a column's value is if a row lacks it."""
    id_ = field.column.id
    if id_ == columns.handle:
        return native.IN_HANDLE, None
    return (native.REQUIRED if id_ in columns.required else native.IN_VALUE), _initial(field)


def _initial(field: Field) -> bytes | EllipsisType | None:
    """Return the cell of the value in a row without the column; Ellipsis if Python is to make it."""
    try:
        bare = field.bare_default()
        return None if bare is None else field.storage.encode(bare)
    except (*UNREADABLE, TypeError):
        return ...


def _describe(field: Field, hidden: bool) -> Description:
    return _described(field)._replace(reader=_reader(field), flags=native.HIDDEN * hidden)


def _reader(field: Field) -> Callable[[bytes], object]:
    """Return the function of a cell's bytes that makes any value."""
    decode, read = field.storage.decode, field.read
    return _refuse if field.kind in FLOATS else lambda cell: read(decode(cell))


def _refuse(cell: bytes) -> float:
    """Leave the whole row to Python: its generated code reads the bytes of a NaN, which no TiDB writes."""
    raise ValueError(f"{cell.hex()} isn't a regular float")


def _described(field: Field) -> Description:
    column, kind, scale = field.column, field.kind, field.scale
    match kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" if is_unsigned(column):
            return Description(native.TIDB_UINT, native.AS_UINT, width=_WIDTHS[kind])
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year":
            return Description(native.TIDB_INT, native.AS_INT, width=_WIDTHS[kind])
        case "bit":
            return Description(native.TIDB_UINT, native.AS_UINT, width=8)
        case "float" | "double":
            width = 4 if kind == "float" else 8
            return Description(native.TIDB_FLOAT, native.AS_DOUBLE, width=width)
        case "decimal":
            if 1 <= column.length <= native.MAX_DIGITS and scale <= column.length:
                return decimal(native.TIDB_DECIMAL, column.length, scale)
            return Description(native.TIDB_DECIMAL, native.AS_OTHER, digits=1)
        case "date" | "datetime" | "timestamp":
            made, width = _MOMENTS[kind]
            return Description(native.TIDB_MOMENT, getattr(native, made), scale=scale, width=width)
        case "time":
            return Description(native.TIDB_DURATION, native.AS_DURATION, scale=scale, width=8)
        case "enum":
            members = (not_a_member(column.elements), *column.elements)
            return Description(native.TIDB_UINT, native.AS_MEMBER, width=4, members=members)
        case "set":
            return Description(native.TIDB_UINT, native.AS_MEMBERS, width=8, members=field.read)
        case "json":
            return Description(native.TIDB_JSON, native.AS_OTHER)
        case "binary" | "varbinary" | "blob":
            return Description(native.TIDB_BYTES, native.AS_BYTES)
        case "char" | "varchar" | "text" | "uuid" | "inet4" | "inet6" | "geometry" | "vector":
            return Description(native.TIDB_BYTES, native.AS_TEXT)
        case _:
            assert_never(kind)
