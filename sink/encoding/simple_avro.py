"""simple in Avro: the same messages by one schema that all consumers know, without a registry.

Source: TiCDC's documentation of its simple protocol, and messages that TiCDC wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from ...events import Column, Ddl, Op, RowChange, Ts
from .avro_bytes import avro_bytes, long_bytes, text_bytes
from .avro_values import (
    AvroFields,
    AvroWriter,
    binaries,
    doubles,
    longs,
    nullable,
    singles,
    texts,
    written,
)
from .columns import Parts, RowParts
from .definition import Definition
from .definitions import Effect
from .encoder import afters, befores, by_transaction
from .numbers import EnumIndex, SetMask
from .simple_encoder import NAME, AnySimpleEncoder, SimpleTable
from .simple_schema import table_schema
from .sql_default import constant
from .value_lines import value_lines

_DML: Final = b"\x16\6\6\2"
"""Bytes before a row: the branch of the message, its type, the branch of its payload, and the version."""
_OPS: Final[dict[Op, bytes]] = {"insert": b"\0", "update": b"\2", "delete": b"\4"}
_NULL, _VALUE, _TRUE = b"\0", b"\2", b"\1"
_END: Final = b"\0"
"""End of a map."""
_TOO_LARGE: Final = 2**63


class SimpleAvroEncoder(AnySimpleEncoder):
    """Writes Avro."""

    def _form(self, definition: Definition) -> SimpleTable:
        return _TableForm(definition, self._options, self._compress, self._large)

    def _ddl(self, kind: str, ddl: Ddl, now: int, effect: Effect) -> bytes:
        message = {
            "type": DDL_TYPES.index(kind),
            "sql": ddl.query,
            "commitTs": ddl.commit_ts,
            "buildTs": now,
            "tableSchema": effect.after and avro_table_schema(effect.after),
            "preTableSchema": effect.before and avro_table_schema(effect.before),
        }
        return _message(DDL, message)

    def _bootstrap(self, now: int, definition: Definition) -> bytes:
        return _message(BOOTSTRAP, {"buildTs": now, "tableSchema": avro_table_schema(definition)})

    def _watermark(self, ts: Ts, now: int) -> bytes:
        return _message(WATERMARK, {"commitTs": ts, "buildTs": now})


def _message(form: tuple[bytes, dict[str, object]], message: dict[str, object]) -> bytes:
    head, schema = form
    return head + avro_bytes(schema, message)


class _TableForm(SimpleTable):
    def _head(self) -> bytes:
        table, number = self._definition.table, self._definition.table_id
        return _DML + text_bytes(table.schema) + text_bytes(table.name) + long_bytes(number)

    def _fields(self, places: Sequence[int]) -> RowParts:
        columns = self._definition.table.columns
        ordered = sorted(places, key=lambda place: columns[place].name)
        count = long_bytes(len(ordered)) if ordered else b""
        return AvroFields([(place, self._writer(columns[place])) for place in ordered], count, _END)

    def _writer(self, column: Column) -> AvroWriter:
        """Return a writer of a map's entries."""
        name = text_bytes(column.name)
        branch, write = self._values_writer(column)
        return nullable(write, name + _NULL, name + branch)

    def _values_writer(self, column: Column) -> tuple[bytes, AvroWriter]:
        """Return the bytes of a value's branch, and the writer of values."""
        match column.kind:
            case "bigint" if column.unsigned:
                return b"\x0e", lambda values: longs(
                    [value if value < _TOO_LARGE else value - 2 * _TOO_LARGE for value in values]
                )
            case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year":
                return b"\2", longs
            case "float":
                return b"\4", singles
            case "double":
                return b"\6", doubles
            case "binary" | "varbinary" | "blob":
                return b"\x0a", binaries
            case "enum" | "set":
                numbers = (EnumIndex if column.kind == "enum" else SetMask)(column.members)
                return b"\2", lambda values: longs([numbers[value] for value in values])
            case (
                "decimal" | "bit" | "char" | "varchar" | "text" | "date" | "time" | "datetime"
                | "timestamp" | "json" | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
            ):  # fmt: skip
                pass
            case _:
                assert_never(column.kind)
        lines = value_lines(NAME, self._definition.table, column, self._options.zone)
        write = texts if lines is None else written(lines)
        if column.kind == "timestamp":
            return b"\x0c" + text_bytes(self._options.time_zone), write
        return b"\x08", write

    def _mark(self, *, only_key: bool, location: str) -> bytes:
        stored = _VALUE + text_bytes(location) if location else _NULL
        return stored + (_VALUE + _TRUE if only_key else _NULL)

    def _parts(self, op: Op, changes: list[RowChange], now: int, columns: RowParts, mark: bytes) -> Parts:
        new: Parts = [_NULL] if op == "delete" else [_VALUE, *columns.of(afters(changes))]
        old: Parts = [_NULL] if op == "insert" else [_VALUE, *columns.of(befores(changes))]
        return [
            self._start + _OPS[op],
            by_transaction(changes, lambda change: long_bytes(change.commit_ts)),
            long_bytes(now) + long_bytes(self._definition.version) + mark + _NULL,  # no checksum
            *new,
            *old,
        ]


_NUMERIC: Final = frozenset(
    ("tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "bit", "year", "decimal")
)

_SCALED: Final = frozenset(("decimal", "time", "datetime", "timestamp"))


def _record(**fields: object) -> dict[str, object]:
    return {"type": "record", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def _array(items: object) -> dict[str, object]:
    return {"type": "array", "items": items}


def _maybe(kind: object) -> list[object]:
    return ["null", kind]


_DATA_TYPE: Final = _record(
    mysqlType="string",
    charset="string",
    collate="string",
    length="long",
    decimal=_maybe("int"),
    elements=_maybe(_array("string")),
    unsigned=_maybe("boolean"),
    zerofill=_maybe("boolean"),
)
_COLUMN: Final = _record(name="string", dataType=_DATA_TYPE, nullable="boolean", default=_maybe("string"))
_INDEX: Final = _record(
    name="string", unique="boolean", primary="boolean", nullable="boolean", columns=_array("string")
)
_TABLE: Final = _record(
    schema="string",
    table="string",
    tableID="long",
    version="long",
    columns=_array(_COLUMN),
    indexes=_array(_INDEX),
)

WATERMARK: Final = b"\x16\0\0\2", _record(commitTs="long", buildTs="long")
"""Bytes before a payload's fields (branch, type and branch again, version 1), and the fields."""
BOOTSTRAP: Final = b"\x16\2\2\2", _record(buildTs="long", tableSchema=_TABLE)
DDL: Final = (
    b"\x16\4\4\2",
    _record(
        type="int",
        sql="string",
        commitTs="long",
        buildTs="long",
        tableSchema=_maybe(_TABLE),
        preTableSchema=_maybe(_TABLE),
    ),
)
DDL_TYPES: Final = ("CREATE", "ALTER", "ERASE", "RENAME", "TRUNCATE", "CINDEX", "DINDEX", "QUERY")
"""Kinds of statements, in the order of the enum's symbols."""


def avro_table_schema(definition: Definition) -> dict[str, object]:
    """Return a definition in which numbers have all their attributes, and a BIT's default is its bytes."""
    schema = table_schema(definition)
    for column, described in zip(definition.table.columns, schema["columns"], strict=True):
        kind = described["dataType"]
        numeric = column.kind in _NUMERIC
        decimal = column.scale if column.kind in _SCALED else None
        described["dataType"] = {
            **kind,
            "decimal": decimal,
            "elements": kind.get("elements"),
            "unsigned": kind.get("unsigned", False) if numeric else None,
            "zerofill": kind.get("zerofill", False) if numeric else None,
        }
        if column.kind == "bit" and described["default"] is not None:
            number: int = constant(column)
            described["default"] = number.to_bytes((column.length + 7) // 8).decode("latin-1")
    return schema
