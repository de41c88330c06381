"""simple in Avro: the same messages by one schema that all consumers know, without a registry.

Source: TiCDC's documentation of its simple protocol, and messages that TiCDC wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ...events import Ddl, Op, Row, RowChange, Table, Ts
from ..per_table import PerTable
from ..row_code import compile_rows
from .avro_bytes import avro_bytes, long_bytes, text_bytes
from .avro_code import SCOPE, bytes_code, long_code, text_code
from .compression import compressor
from .definition import Definition, Describe, definition_of
from .encoder import Message, Milliseconds, afters, befores, groups, refuse
from .options import SimpleOptions
from .oversize import RECORD_BYTES, too_large
from .simple_avro_schema import BOOTSTRAP, DDL, DDL_TYPES, WATERMARK, avro_table_schema
from .simple_bootstrap import Bootstraps
from .statement_kind import statement_kind, table_after
from .value_text import Scope, text_expression

NAME: Final = "simple"

_DML: Final = b"\x16\6\6\2"
"""Bytes before a row: the branch of the message, its type, the branch of its payload, and the version."""
_OPS: Final[dict[Op, bytes]] = {"insert": b"\0", "update": b"\2", "delete": b"\4"}
_NULL, _VALUE, _TRUE = b"\0", b"\2", b"\1"


class SimpleAvroEncoder:
    """Writes no keys. A table's definition comes with its CREATE and, by `bootstrap`, at any time."""

    name = NAME

    def __init__(self, options: SimpleOptions, now: Milliseconds, describe: Describe = definition_of) -> None:
        self._now: Final = now
        self._describe: Final = describe
        self._compress: Final = compressor(options.large_message_handle_compression)
        self._tables: Final = PerTable(lambda table: _TableForm(describe(table), options))
        self._bootstraps: Final = Bootstraps(options, now)

    def rows(self, changes: Sequence[RowChange], last: bool = True) -> list[Message]:  # noqa: ARG002
        found = []
        for table, op, group in groups(changes):
            values = self._tables[table].values(op, group, self._now())
            if self._bootstraps.due(table, len(values)):
                found += self.bootstrap(table)
            found += [Message(None, self._compress(value)) for value in values]
        return found

    def ddl(self, ddl: Ddl) -> list[Message]:
        table = table_after(ddl)
        if not ddl.query:  # a table as its snapshot found it: no statement ran
            return [] if table is None else self.bootstrap(table)
        kind = DDL_TYPES.index(statement_kind(ddl).name)
        found = {
            "type": kind,
            "sql": ddl.query,
            "commitTs": ddl.commit_ts,
            "buildTs": self._now(),
            "tableSchema": None if table is None else avro_table_schema(self._describe(table)),
            "preTableSchema": None,
        }
        return [self._message(DDL, found)]

    def bootstrap(self, table: Table) -> list[Message]:
        """Return a message with a table's definition."""
        schema = avro_table_schema(self._describe(table))
        return [self._message(BOOTSTRAP, {"buildTs": self._now(), "tableSchema": schema})]

    def watermark(self, ts: Ts) -> list[Message]:
        return [self._message(WATERMARK, {"commitTs": ts, "buildTs": self._now()})]

    def _message(self, form: tuple[bytes, dict[str, Any]], found: dict[str, Any]) -> Message:
        head, schema = form
        return Message(None, self._compress(head + avro_bytes(schema, found)), 0)


class _TableForm:
    """The form of one table's rows."""

    def __init__(self, definition: Definition, options: SimpleOptions) -> None:
        table = definition.table
        self._definition: Final = definition
        self._options: Final = options
        self._limit: Final = options.max_message_bytes and options.max_message_bytes - RECORD_BYTES
        names = text_bytes(table.schema) + text_bytes(table.name)
        self._head: Final = _DML + names + long_bytes(definition.table_id)
        self._columns: Final = _render(table, options, range(len(table.columns)))
        self._keys: Final = _render(table, options, definition.handle_key)

    def values(self, op: Op, changes: list[RowChange], now: int) -> list[bytes]:
        found = self._values(op, changes, now, self._columns, False)
        if self._limit:
            table = self._definition.table
            for index, value in enumerate(found):
                if len(value) > self._limit:
                    too_large(NAME, table, len(value), self._options, bool(self._definition.handle_key))
                    (found[index],) = self._values(op, [changes[index]], now, self._keys, True)
                    if len(found[index]) > self._limit:
                        refuse(NAME, table, "", f"the key of a row alone takes {len(found[index])} bytes")
        return found

    def _values(
        self, op: Op, changes: list[RowChange], now: int, columns: _Render, only_key: bool
    ) -> list[bytes]:
        parts = (
            self._head,
            _OPS[op],
            long_bytes(changes[0].commit_ts),
            long_bytes(now),
            long_bytes(self._definition.version),
            _NULL,  # location of a claim check
            _VALUE + _TRUE if only_key else _NULL,
            _NULL,  # checksum
        )
        head = b"".join(parts)
        if op == "delete":
            start = head + _NULL + _VALUE
            return [start + row for row in columns(befores(changes))]
        after = columns(afters(changes))
        start = head + _VALUE
        if op == "insert":
            return [start + row + _NULL for row in after]
        return [
            b"%b%b\2%b" % (start, row, old) for row, old in zip(after, columns(befores(changes)), strict=True)
        ]


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
