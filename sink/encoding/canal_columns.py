"""Rows as Canal's RowData: Protobuf without objects for columns."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo
from itertools import repeat
from operator import add, ne
from typing import Final, assert_never

from ...codec.proto import canal
from ...events import (
    FLOATS,
    Column,
    Kind,
    Row,
    Table,
)
from .columns import Parts, Texts, Values, Writer, columns_of, joined
from .definition import Definition, full_type
from .numbers import java_number, single_text
from .protobuf_bytes import Heads, delimited, varint
from .value_lines import doubles_within, each, split, value_lines

_TYPES: Final[dict[Kind, int]] = {
    "bit": -7, "tinyint": -6, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5,
    "float": 7, "double": 8, "decimal": 3, "char": 1, "varchar": 12, "json": 12, "year": 12, "vector": 12,
    "date": 91, "time": 92, "datetime": 93, "timestamp": 93,
    "binary": 2004, "varbinary": 2004, "blob": 2004, "text": 2005, "enum": 4, "set": -7,
    "uuid": 12, "inet4": 12, "inet6": 12, "geometry": 2004,
}  # fmt: skip

WIDER: Final[dict[Kind, tuple[int, int]]] = {
    "tinyint": (2**7, 5),
    "smallint": (2**15, 4),
    "int": (2**31, -5),
    "bigint": (2**63, 3),
}
"""Of unsigned integers: the least value that the signed type can't hold, and the type that it has then."""


def sql_type(column: Column) -> int:
    return _TYPES[column.kind]


_ROW: Final = b"\x62"
"""Tag of a row in a RowChange."""
_SHORT: Final = 1 << 14
"""Number of bytes from which on a row's length takes more than two."""
_BEFORE: Final = 1
_AFTER: Final = 2
_VALUE: Final = 8
_TYPE: Final = 10


class CanalColumns:
    """The form of one table's columns. Each row is a whole field of a RowChange."""

    def __init__(self, encoding: str, definition: Definition, zone: tzinfo) -> None:
        places = range(len(definition.table.columns))
        self._columns: Final = [_Column(encoding, definition, place, zone) for place in places]

    def inserts(self, rows: list[Row]) -> list[bytes]:
        pairs = zip(self._columns, columns_of(rows), strict=True)
        return _rows(len(rows), [column.alike(_AFTER, values, True) for column, values in pairs])

    def deletes(self, rows: list[Row]) -> list[bytes]:
        return _rows(len(rows), self._before(columns_of(rows)))

    def updates(self, before: list[Row], after: list[Row]) -> list[bytes]:
        old, new = columns_of(before), columns_of(after)
        triples = zip(self._columns, old, new, strict=True)
        differ = [column.differ(was, becomes) for column, was, becomes in triples]
        changed = zip(self._columns, new, differ, strict=True)
        now: list[Parts] = [[column.fields(_AFTER, values, flags)] for column, values, flags in changed]
        return _rows(len(after), [*self._before(old), *now])

    def _before(self, columns: list[Values]) -> list[Parts]:
        pairs = zip(self._columns, columns, strict=True)
        return [column.alike(_BEFORE, values, False) for column, values in pairs]


class _Column:
    """One column: an empty value, NULL, has no text and no type's name before it."""

    def __init__(self, encoding: str, definition: Definition, place: int, zone: tzinfo) -> None:
        self._definition: Final = definition
        self._place: Final = place
        column = definition.table.columns[place]
        self._texts: Final = texts_of(encoding, definition.table, column, zone)
        kind = sql_type(column)
        least, wider = WIDER.get(column.kind, (None, kind)) if column.unsigned else (None, kind)
        self._least: Final[int | None] = least
        self._tail: Final = delimited(_TYPE, full_type(column).encode())
        flags = (False, True)
        self._nulls: Final = {
            field: [delimited(field, self._head(kind, changed, True) + self._tail) for changed in flags]
            for field in (_BEFORE, _AFTER)
        }
        self._heads: Final = {
            field: [[self._values_head(field, one, changed) for one in (kind, wider)] for changed in flags]
            for field in (_BEFORE, _AFTER)
        }

    def alike(self, field: int, values: Values, updated: bool) -> Parts:
        """Return the parts of fields() if all rows, or none, are updated."""
        if None in values or (self._least is not None and max(values) >= self._least):
            return [self.fields(field, values, repeat(updated))]
        texts = self._texts(values)
        return [list(map(self._heads[field][updated][False].__getitem__, map(len, texts))), texts, self._tail]

    def fields(self, field: int, values: Values, updated: Iterable[bool]) -> Texts:
        """Return the column of each row as field _BEFORE or _AFTER of the row."""
        nulls, heads, tail, least = self._nulls[field], self._heads[field], self._tail, self._least
        wide: Iterable[bool] = repeat(False)
        if least is not None:
            wide = [value is not None and value >= least for value in values]
        return [
            nulls[changed] if value is None else heads[changed][wider][len(text)] + text + tail
            for value, text, changed, wider in zip(values, self._texts(values), updated, wide, strict=False)
        ]

    def differ(self, before: Values, after: Values) -> Iterable[bool]:
        if self._definition.table.columns[self._place].kind in FLOATS:
            return map(ne, map(str, before), map(str, after))  # -0.0 equals 0.0, but isn't the same value
        return map(ne, before, after)

    def _values_head(self, field: int, kind: int, updated: bool) -> Heads:
        return Heads(field, self._head(kind, updated, False), _VALUE, len(self._tail))

    def _head(self, kind: int, updated: bool, null: bool) -> bytes:
        table = self._definition.table
        column = canal.Column(
            index=self._place,
            sqlType=kind,
            name=table.columns[self._place].name,
            isKey=self._place in table.key,
            updated=updated,
            isNull=null,
        )
        head: bytes = column.SerializeToString()
        return head


def texts_of(encoding: str, table: Table, column: Column, zone: tzinfo) -> Writer:
    """Return a writer of texts as Canal writes them; that of NULL isn't used.

    Raises NotEncodable for a kind that has no text.
    """
    match column.kind:
        case "float":
            return split(each(lambda value: java_number(single_text(value))))
        case "double":
            return split(doubles_within(1e-3, 1e7, b".0", lambda value: java_number(repr(value))))
        case "binary" | "varbinary" | "blob":
            return lambda values: [(value or b"").decode("latin-1").encode() for value in values]
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "bit" | "char"
            | "varchar" | "text" | "date" | "time" | "datetime" | "timestamp" | "year" | "enum" | "set"
            | "json" | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            pass
        case _:
            assert_never(column.kind)
    lines = value_lines(encoding, table, column, zone)
    return (lambda values: [(value or "").encode() for value in values]) if lines is None else split(lines)


class _Starts(dict[int, bytes]):
    """The bytes before a row, by its length; those of short rows are kept."""

    def __missing__(self, length: int) -> bytes:
        head = _ROW + varint(length)
        if length < _SHORT:
            self[length] = head
        return head


_STARTS: Final = _Starts()


def _rows(count: int, columns: list[Parts]) -> list[bytes]:
    rows = joined(count, [part for parts in columns for part in parts])
    return list(map(add, map(_STARTS.__getitem__, map(len, rows)), rows))
