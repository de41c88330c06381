"""avro: a record for each row, as TiCDC writes them, in Confluent's frame.

Source: TiCDC's documentation of its Avro protocol, and messages and schemas that TiCDC wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from ...events import Ddl, Op, Row, RowChange, Table, Ts, physical_ms
from ...events.per_table import PerTable
from .avro_bytes import long_bytes, text_bytes
from .avro_columns import avro_column, check_names
from .avro_values import AvroFields
from .columns import Parts, joined
from .debezium_schemas import legal, schema_name
from .definition import Definition, Describe, definition_of
from .encoder import Message, Milliseconds, afters, befores, by_transaction, in_order, refuse
from .json_text import html_json_bytes
from .options import AvroOptions
from .oversize import check_sizes
from .schema_registry import SchemaRegistry
from .statement_kind import named, statement_kind

NAME: Final = "avro"

_OPS: Final[dict[Op, str]] = {"insert": "c", "update": "u", "delete": "d"}
_BEFORE: Final = "_ticdc_before"
_DDL, _WATERMARK, _DELETE = b"\1", b"\2", b"\3"
"""First bytes of messages that have no schema."""


class AvroEncoder:
    """Writes keys and values; a deleted row has no value. Registers a table's schemas at its first row."""

    name = NAME

    def __init__(
        self,
        options: AvroOptions,
        now: Milliseconds,  # noqa: ARG002
        describe: Describe = definition_of,
    ) -> None:
        self._options: Final = options
        registry = SchemaRegistry(options.schema_registry)
        self._tables: Final = PerTable(lambda table: _TableForm(describe(table), options, registry))

    def rows(self, changes: Sequence[RowChange], last: bool = True) -> list[Message]:  # noqa: ARG002
        return in_order(changes, lambda table, op, group: self._tables[table].messages(op, group))

    def ddl(self, ddl: Ddl) -> list[Message]:
        if not self._options.avro_enable_watermark or not ddl.query:
            return []
        schema, table = named(ddl)
        message = {
            "query": ddl.query,
            "type": statement_kind(ddl).number,
            "schema": schema,
            "table": table,
            "commitTs": ddl.commit_ts,
        }
        return [Message(None, _DDL + html_json_bytes(message), 0)]

    def watermark(self, ts: Ts) -> list[Message]:
        if not self._options.avro_enable_watermark:
            return []
        return [Message(None, _WATERMARK + ts.to_bytes(8), 0)]


class _TableForm:
    """Schemas of one table, and the form of its rows."""

    def __init__(self, definition: Definition, options: AvroOptions, registry: SchemaRegistry) -> None:
        table = definition.table
        check_names(NAME, table)
        self._table: Final = table
        self._options: Final = options
        self._key_places: Final = sorted(definition.table.key)
        fields, self._columns = _record(table, range(len(table.columns)), options)
        key_fields, self._keys = _record(table, self._key_places, options)
        topic = options.topic_of(table)
        self._key_frame = b""
        if self._key_places:
            key = self._schema(key_fields)
            self._key_frame = registry.frame_of(f"{topic}-key", key)
        value = self._schema([*fields, *self._more_fields(fields)])
        self._value_frame: Final = registry.frame_of(f"{topic}-value", value)

    def _schema(self, fields: list[dict[str, object]]) -> str:
        schema = self._named(legal(self._table.name), fields)
        return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))

    def _named(self, name: str, fields: list[dict[str, object]]) -> dict[str, object]:
        space = schema_name(self._options.keyspace, self._table.schema)
        return {"type": "record", "name": name, "namespace": space, "fields": fields}

    def _more_fields(self, fields: list[dict[str, object]]) -> list[dict[str, object]]:
        more_fields: list[dict[str, object]] = []
        if self._options.avro_include_before_value:
            before = self._named(f"{legal(self._table.name)}_before", fields)
            more_fields.append({"default": None, "name": _BEFORE, "type": ["null", before]})
        if self._options.avro_include_before_value or self._options.enable_tidb_extension:
            more_fields.append({"default": "", "name": "_tidb_op", "type": "string"})
        if self._options.enable_tidb_extension:
            more_fields.append({"default": 0, "name": "_tidb_commit_ts", "type": "long"})
            more_fields.append({"default": 0, "name": "_tidb_commit_physical_time", "type": "long"})
        return more_fields

    def messages(self, op: Op, changes: list[RowChange]) -> list[Message]:
        rows = befores(changes) if op == "delete" else afters(changes)
        keys: list[bytes] | list[None] = [None] * len(rows)
        if self._key_places:
            keys = joined(len(rows), [self._key_frame, *self._keys.of(rows)])
        messages = list(map(Message, keys, self._values(op, changes, rows)))
        check_sizes(NAME, self._options, changes, messages)
        return messages

    def _values(self, op: Op, changes: list[RowChange], rows: list[Row]) -> Sequence[bytes | None]:
        options = self._options
        before: Parts = []
        if options.avro_include_before_value:
            before = [b"\0"] if op == "insert" else [b"\2", *self._columns.of(befores(changes))]
        elif op == "delete":
            return self._deletes(changes)
        tail: Parts = []
        if options.avro_include_before_value or options.enable_tidb_extension:
            tail = [text_bytes(_OPS[op])]
        if options.enable_tidb_extension:
            tail += [by_transaction(changes, _times)]
        return joined(len(rows), [self._value_frame, *self._columns.of(rows), *before, *tail])

    def _deletes(self, changes: list[RowChange]) -> Sequence[bytes | None]:
        """Return messages that have no values before."""
        if self._options.avro_enable_watermark:
            times = by_transaction(changes, lambda change: change.commit_ts.to_bytes(8))
            return joined(len(changes), [_DELETE, times])
        if not self._key_places:
            refuse(
                NAME,
                self._table,
                "",
                "a message of a deleted row has the primary key only, and the table has none: "
                "set avro-include-before-value = true",
            )
        return [None] * len(changes)


def _times(change: RowChange) -> bytes:
    return long_bytes(change.commit_ts) + long_bytes(physical_ms(change.commit_ts))


def _record(
    table: Table, places: Iterable[int], options: AvroOptions
) -> tuple[list[dict[str, object]], AvroFields]:
    """Return the fields of some columns, and what writes them."""
    columns = [(place, avro_column(NAME, table, table.columns[place], options)) for place in places]
    fields = [column.field for _, column in columns]
    return fields, AvroFields([(place, column.write) for place, column in columns])
