"""simple in Avro: the same messages by one schema that all consumers know, without a registry.

Source: TiCDC's documentation of its simple protocol, and messages that TiCDC wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ...events import Ddl, Op, Row, RowChange, Table, Ts
from ..row_code import compile_rows
from .avro_bytes import avro_bytes, long_bytes, text_bytes
from .avro_code import SCOPE, bytes_code, long_code, text_code
from .columns import Texts
from .definition import Definition
from .encoder import afters, befores, by_transaction
from .options import SimpleOptions
from .simple_avro_schema import BOOTSTRAP, DDL, DDL_TYPES, WATERMARK, avro_table_schema
from .simple_encoder import NAME, AnySimpleEncoder, RowParts, SimpleTable
from .value_text import Scope, text_expression

_DML: Final = b"\x16\6\6\2"
"""Bytes before a row: the branch of the message, its type, the branch of its payload, and the version."""
_OPS: Final[dict[Op, bytes]] = {"insert": b"\0", "update": b"\2", "delete": b"\4"}
_NULL, _VALUE, _TRUE = b"\0", b"\2", b"\1"


class SimpleAvroEncoder(AnySimpleEncoder):
    """Writes Avro."""

    def _form(self, definition: Definition) -> SimpleTable:
        return _TableForm(definition, self._options, self._compress, self._large)

    def _ddl(self, kind: str, ddl: Ddl, now: int, definition: Definition | None) -> bytes:
        found = {
            "type": DDL_TYPES.index(kind),
            "sql": ddl.query,
            "commitTs": ddl.commit_ts,
            "buildTs": now,
            "tableSchema": None if definition is None else avro_table_schema(definition),
            "preTableSchema": None,
        }
        return _message(DDL, found)

    def _bootstrap(self, now: int, definition: Definition) -> bytes:
        return _message(BOOTSTRAP, {"buildTs": now, "tableSchema": avro_table_schema(definition)})

    def _watermark(self, ts: Ts, now: int) -> bytes:
        return _message(WATERMARK, {"commitTs": ts, "buildTs": now})


def _message(form: tuple[bytes, dict[str, Any]], found: dict[str, Any]) -> bytes:
    head, schema = form
    return head + avro_bytes(schema, found)


class _TableForm(SimpleTable):
    def _head(self) -> bytes:
        table, number = self._definition.table, self._definition.table_id
        return _DML + text_bytes(table.schema) + text_bytes(table.name) + long_bytes(number)

    def _fields(self, places: Sequence[int]) -> RowParts:
        render = _render(self._definition.table, self._options, places)
        return lambda rows: [render(rows)]

    def _mark(self, *, only_key: bool, location: str) -> bytes:
        stored = _VALUE + text_bytes(location) if location else _NULL
        return stored + (_VALUE + _TRUE if only_key else _NULL)

    def _parts(
        self, op: Op, changes: list[RowChange], now: int, columns: RowParts, mark: bytes
    ) -> list[bytes | Texts]:
        start = [
            self._start + _OPS[op],
            by_transaction(changes, lambda change: long_bytes(change.commit_ts)),
            long_bytes(now) + long_bytes(self._definition.version) + mark + _NULL,  # no checksum
        ]
        new = [_NULL] if op == "delete" else [_VALUE, *columns(afters(changes))]
        old = [_NULL] if op == "insert" else [_VALUE, *columns(befores(changes))]
        return [*start, *new, *old]


_Render = Callable[[Iterable[Row]], list[bytes]]


def _render(table: Table, options: SimpleOptions, places: Iterable[int]) -> _Render:
    """Return code that writes rows as maps."""
    scope = Scope(options.zone)
    scope |= SCOPE
    ordered = sorted(places, key=lambda place: table.columns[place].name)
    parts = []
    for place in ordered:
        name = scope.keep(text_bytes(table.columns[place].name) + _NULL)
        branch, value = _value(table, place, scope, options)
        start = scope.keep(text_bytes(table.columns[place].name) + branch)
        parts.append(f"{name} if c{place} is None else {start} + {value}")
    count = scope.keep(long_bytes(len(ordered)) if ordered else b"")
    joined = "".join(f"{part}," for part in parts)
    return compile_rows(len(table.columns), f"b''.join(({count}, {joined} b'\\0'))", scope)


def _value(table: Table, place: int, scope: Scope, options: SimpleOptions) -> tuple[bytes, str]:
    """Return the number of a value's branch, and a Python expression for its bytes."""
    column, var = table.columns[place], f"c{place}"
    match column.kind:
        case "bigint" if column.unsigned:
            return b"\x0e", f"long_bytes({var} if {var} < {2**63} else {var} - {2**64})"
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year":
            return b"\2", long_code(var)
        case "float":
            return b"\4", f"float_bytes({var})"
        case "double":
            return b"\6", f"double_bytes({var})"
        case "binary" | "varbinary" | "blob":
            return b"\x0a", bytes_code(var)
    text = text_expression(NAME, table, column, var, scope)
    match column.kind:
        case "enum" | "set":
            return b"\2", f"long_bytes({text.removeprefix('str(').removesuffix(')')})"
        case "timestamp":
            zone = scope.keep(text_bytes(options.time_zone))
            return b"\x0c", f"{zone} + {text_code(text)}"
    return b"\x08", text_code(text)
