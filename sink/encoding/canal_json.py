"""canal-json: one JSON object per row, every value a string.

Source: the canal-json documentation of TiCDC, and messages that TiCDC wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from itertools import repeat
from operator import ne
from typing import Final

from ...events import (
    BYTE_STRINGS,
    Column,
    Ddl,
    Op,
    Row,
    RowChange,
    Table,
    Ts,
    physical_ms,
)
from ...events.per_table import PerTable
from .canal_columns import WIDER, sql_type
from .claims import Claim, ClaimStore
from .columns import Fields, Parts, Texts, Writer, column_of, columns_of, joined
from .compression import Compress, compressor
from .definition import Definition, Describe, bare_type, definition_of, full_type
from .encoder import Message, Milliseconds, afters, befores, by_transaction, in_order, refuse
from .json_text import html_json_bytes, html_json_lines
from .options import CanalOptions
from .oversize import LargeRows
from .statement_kind import named, statement_kind
from .value_lines import HTML_STRINGS, value_lines, wrapped

NAME: Final = "canal-json"

_TYPES: Final[dict[Op, bytes]] = {
    "insert": b'INSERT","es":',
    "update": b'UPDATE","es":',
    "delete": b'DELETE","es":',
}


class CanalJsonEncoder:
    """Writes no keys. Schema changes are messages; watermarks only with `enable_tidb_extension`."""

    name = NAME

    def __init__(
        self,
        options: CanalOptions,
        now: Milliseconds,
        describe: Describe = definition_of,
        claims: ClaimStore | None = None,
    ) -> None:
        self._options: Final = options
        self._now: Final = now
        compress = self._compress = compressor(options.large_message_handle_compression)
        large = LargeRows(NAME, options, claims)
        self._tables: Final = PerTable(lambda table: _TableForm(describe(table), options, compress, large))

    def rows(self, changes: Sequence[RowChange], last: bool = True) -> list[Message]:  # noqa: ARG002
        now = self._now()
        values = in_order(changes, lambda table, op, group: self._tables[table].values(op, group, now))
        return list(map(Message, repeat(None), values))

    def ddl(self, ddl: Ddl) -> list[Message]:
        if not ddl.query:
            return []  # a table as its snapshot found it: no statement ran
        schema, table = named(ddl)
        ts = ddl.commit_ts
        return [self._without_rows(schema, table, True, statement_kind(ddl).name, ts, ddl.query, "commitTs")]

    def watermark(self, ts: Ts) -> list[Message]:
        if not self._options.enable_tidb_extension:
            return []
        return [self._without_rows("", "", False, "TIDB_WATERMARK", ts, "", "watermarkTs")]

    def _without_rows(
        self, schema: str, table: str, is_ddl: bool, kind: str, ts: Ts, sql: str, extension: str
    ) -> Message:
        message: dict[str, object] = {
            "id": 0,
            "database": schema,
            "table": table,
            "pkNames": None,
            "isDdl": is_ddl,
            "type": kind,
            "es": physical_ms(ts),
            "ts": self._now(),
            "sql": sql,
            "sqlType": None,
            "mysqlType": None,
            "data": None,
            "old": None,
        }
        if self._options.enable_tidb_extension:
            message["_tidb"] = {extension: ts}
        [value] = self._compress([html_json_bytes(message)])
        return Message(None, value, 0)


class _TableForm:
    """The parts of messages that are the same for all rows of a table."""

    def __init__(
        self, definition: Definition, options: CanalOptions, compress: Compress, large: LargeRows
    ) -> None:
        table = definition.table
        self._table: Final = table
        self._options: Final = options
        self._compress: Final = compress
        self._large: Final = large
        self._all: Final = tuple(range(len(table.columns)))
        self._handle: Final = tuple(sorted(definition.handle_key))
        self._definition: Final = definition
        primary = [table.columns[place].name for place in sorted(table.key)]
        head = {"id": 0, "database": table.schema, "table": table.name, "pkNames": primary, "isDdl": False}
        self._head: Final = html_json_bytes(head)[:-1] + b',"type":"'
        self._parts: Final = {self._all: _ColumnsForm(definition, options, self._all)}

    def _part(self, places: tuple[int, ...]) -> _ColumnsForm:
        if places not in self._parts:
            self._parts[places] = _ColumnsForm(self._definition, self._options, places)
        return self._parts[places]

    def values(self, op: Op, changes: list[RowChange], now: int) -> list[bytes]:
        places = self._all
        if op == "delete" and self._options.delete_only_output_handle_key_columns:
            places = self._handle
            if not places:
                refuse(NAME, self._table, "", "delete-only-output-handle-key-columns needs a key")
        texts = self._compress(self._render(op, changes, now, places, b""))

        def short(place: int, location: str) -> bytes:
            mark = b',"onlyHandleKey":true'
            if location:
                mark = b',"claimCheckLocation":%b' % html_json_bytes(location)
            (value,) = self._compress(self._render(op, [changes[place]], now, self._handle, mark))
            return value

        def claim(place: int) -> Claim:
            change = changes[place]
            (stamp,) = self._render(op, [change], 0, places, b"")
            return Claim(change.commit_ts, None, texts[place], stamp)

        self._large.replace(self._table, texts, len, short, claim, has_key=bool(self._handle))
        return texts

    def _render(
        self, op: Op, changes: list[RowChange], now: int, places: tuple[int, ...], mark: bytes
    ) -> list[bytes]:
        tail: bytes | Texts = b"}]}"
        if self._options.enable_tidb_extension:
            extension = b'}],"_tidb":{"commitTs":%d%b}}'
            tail = by_transaction(changes, lambda change: extension % (change.commit_ts, mark))
        form = self._part(places)
        rows = befores(changes) if op == "delete" else afters(changes)
        before: Parts = [b',"old":null,"data":[{']
        if op == "update":
            old = form.fields.of(befores(changes))
            if self._options.only_output_updated_columns or self._options.content_compatible:
                texts = [form.fields.texts(columns_of(some)) for some in (befores(changes), rows)]
                differ = [list(map(ne, *both)) for both in zip(*texts, strict=True)]
                old = [form.fields.some(texts[0], differ)]
            before = [b',"old":[{', *old, b'}],"data":[{']
        start = [
            self._head,
            _TYPES[op],
            by_transaction(changes, lambda change: b"%d" % physical_ms(change.commit_ts)),
            b',"ts":%d,"sql":"","sqlType":' % now,
            form.types(rows),
        ]
        return joined(len(changes), [*start, *before, *form.fields.of(rows), tail])


class _ColumnsForm:
    """The form of some of a table's columns."""

    def __init__(self, definition: Definition, options: CanalOptions, places: tuple[int, ...]) -> None:
        table = definition.table
        columns = [table.columns[place] for place in places]
        type_of = full_type if options.content_compatible else bare_type
        mysql_types = html_json_bytes({c.name: type_of(c) for c in columns})
        self._types: Final = _TypesOfRow(columns, mysql_types)
        self._unsigned: Final = [
            (place, WIDER[column.kind][0])
            for place, column in zip(places, columns, strict=True)
            if column.unsigned and column.kind in WIDER
        ]
        fields = [
            (place, html_json_bytes(column.name) + b":", _writer(table, column, options.zone))
            for place, column in zip(places, columns, strict=True)
        ]
        self.fields: Final = Fields(fields, b",")

    def types(self, rows: list[Row]) -> bytes | Texts:
        """Return the types of each row, or those of all."""
        if not self._unsigned:
            return self._types[()]
        wide = [
            [value is not None and value >= least for value in column_of(rows, place)]
            for place, least in self._unsigned
        ]
        return [self._types[flags] for flags in zip(*wide, strict=True)]


class _TypesOfRow(dict[tuple[bool, ...], bytes]):
    """sqlType and mysqlType, by which of the row's unsigned integers are too large for the signed type."""

    def __init__(self, columns: list[Column], mysql_types: bytes) -> None:
        super().__init__()
        self._columns: Final = columns
        self._mysql_types: Final = mysql_types

    def __missing__(self, wide: tuple[bool, ...]) -> bytes:
        flags = iter(wide)
        types = {
            column.name: WIDER[column.kind][1]
            if column.unsigned and column.kind in WIDER and next(flags)
            else sql_type(column)
            for column in self._columns
        }
        text = self[wide] = html_json_bytes(types) + b',"mysqlType":' + self._mysql_types
        return text


def _writer(table: Table, column: Column, zone: tzinfo) -> Writer:
    """Return a writer of JSON strings."""
    if column.kind in BYTE_STRINGS:
        return lambda values: html_json_lines(
            [None if value is None else value.decode("latin-1") for value in values]
        )
    lines = value_lines(NAME, table, column, zone)
    return HTML_STRINGS if lines is None else wrapped(lines, b'"', b'"')
