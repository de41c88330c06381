"""debezium: the envelopes of Debezium's MySQL connector as JSON, as TiCDC writes them.

Source: Debezium's documentation of its MySQL connector, and messages that TiCDC wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...events import Ddl, Op, RowChange, Table, Ts, physical_ms
from ...events.per_table import PerTable
from .columns import Fields, Parts, joined
from .compression import compressor
from .debezium_changes import table_changes
from .debezium_columns import column_form
from .debezium_schemas import CHANGE_KEY, TRANSACTION, change_value, field, schema_name, source_schema
from .debezium_types import NAME
from .definition import Definition, Describe, definition_of
from .definitions import TableDefinitions
from .encoder import Message, Milliseconds, afters, befores, by_transaction, in_order
from .json_schema import json_schema
from .json_text import json_bytes
from .options import DebeziumOptions
from .oversize import check_sizes
from .schema_registry import SchemaRegistry
from .statement_kind import named

_OPS: Final[dict[Op, bytes]] = {"insert": b"c", "update": b"u", "delete": b"d"}


class DebeziumEncoder:
    """Writes keys and values with schemas. Watermarks are messages only with `enable_tidb_extension`."""

    name = NAME

    def __init__(
        self, options: DebeziumOptions, now: Milliseconds, describe: Describe = definition_of
    ) -> None:
        self._options: Final = options
        self._now: Final = now
        self._definitions: Final = TableDefinitions(describe)
        self._compress: Final = compressor(options.large_message_handle_compression)
        self._schemas: Final = Schemas(options)
        self._tables: Final = PerTable(
            lambda table: _TableForm(self._definitions.of(table), options, self._schemas)
        )
        self._source_schema: Final = source_schema(self._schemas.has_extension, start_ts=False)

    def rows(self, changes: Sequence[RowChange], last: bool = True) -> list[Message]:  # noqa: ARG002
        now = self._now()

        def encode(table: Table, op: Op, group: list[RowChange]) -> list[Message]:
            keys, values = self._tables[table].rows(op, group, now)
            messages = list(map(Message, self._compress(keys), self._compress(values)))
            check_sizes(NAME, self._options, group, messages)
            return messages

        return in_order(changes, encode)

    def ddl(self, ddl: Ddl) -> list[Message]:
        effects = self._definitions.effects(ddl)
        if not ddl.query:
            return []  # a table as its snapshot found it: no statement ran
        schema, table = named(ddl)
        payload = {
            "source": source_of(self._options, schema, table, ddl.commit_ts, 0),
            "ts_ms": self._now(),
            "databaseName": schema,
            "schemaName": None,
            "ddl": ddl.query,
            "tableChanges": table_changes(ddl, effects),
        }
        return [self._whole({"databaseName": schema}, CHANGE_KEY, payload, change_value(self._source_schema))]

    def watermark(self, ts: Ts) -> list[Message]:
        if not self._options.enable_tidb_extension:
            return []
        source = source_of(self._options, "", "", ts, 0)
        payload = {"source": source, "ts_ms": self._now(), "transaction": None, "op": "m"}
        name = schema_name(self._options.cluster_id, "watermark")
        key = {"type": "struct", "name": f"{name}.Key", "optional": False, "fields": []}
        value = {
            "type": "struct",
            "optional": False,
            "name": f"{name}.Envelope",
            "version": 1,
            "fields": [
                self._source_schema,
                field("op", "string"),
                field("ts_ms", "int64", True),
                TRANSACTION,
            ],
        }
        return [self._whole({}, key, payload, value)]

    def _whole(self, key: Any, key_schema: Any, value: Any, value_schema: Any) -> Message:
        parts = []
        for payload, schema in ((key, key_schema), (value, value_schema)):
            start, end = self._schemas.around(schema["name"], schema)
            parts.append(start + json_bytes(payload) + end)
        key_bytes, value_bytes = self._compress(parts)
        return Message(key_bytes, value_bytes, 0)


def source_of(options: DebeziumOptions, schema: str, table: str, ts: Ts, start_ts: Ts) -> dict[str, object]:
    source_fields = {
        "version": "2.4.0.Final",
        "connector": "TiCDC",
        "name": options.cluster_id,
        "ts_ms": physical_ms(ts),
        "snapshot": "false",
        "db": schema,
        "table": table,
        "server_id": 0,
        "gtid": None,
        "file": "",
        "pos": 0,
        "row": 0,
        "thread": 0,
        "query": None,
        "commit_ts": ts,
    }
    if options.debezium_include_start_ts and start_ts:
        source_fields["start_ts"] = start_ts
    return source_fields | {"cluster_id": options.cluster_id}


class Schemas:
    """Writes the schemas of messages: into each message, into a schema registry, or nowhere."""

    def __init__(self, options: DebeziumOptions) -> None:
        self._is_left_out: Final = options.debezium_disable_schema
        self._is_open: Final = options.object_additional_properties
        url = options.schema_registry
        self._registry: Final = SchemaRegistry(url) if url else None
        self.has_extension: Final = options.enable_tidb_extension or bool(url)
        """True if the schema of `source` has the fields of TiDB, which messages have anyway."""

    def around(self, subject: str, schema: dict[str, object]) -> tuple[bytes, bytes]:
        """Return the bytes before and after a payload. Raises as SchemaRegistry.id_of does."""
        if self._registry is not None:
            text = json_bytes(json_schema(schema, is_open=self._is_open)).decode()
            return self._registry.frame_of(subject, text, "JSON"), b""
        end = b"}" if self._is_left_out else b',"schema":%b}' % json_bytes(schema)
        return b'{"payload":', end


class _TableForm:
    """Schemas of one table, and the form of its rows."""

    def __init__(self, definition: Definition, options: DebeziumOptions, schemas: Schemas) -> None:
        table = definition.table
        self._table: Final = table
        self._options: Final = options
        forms = [column_form(definition, column, options) for column in table.columns]
        handle = sorted(definition.handle_key)
        names = [json_bytes(column.name) + b":" for column in table.columns]
        columns = [(place, names[place], form.write) for place, form in enumerate(forms)]
        self._columns: Final = Fields(columns, b",")
        self._keys: Final = Fields([columns[place] for place in handle], b",")
        name, topic = schema_name(options.cluster_id, table.schema, table.name), options.topic_of(table)
        fields = [form.schema for form in forms]
        key = {
            "type": "struct",
            "name": f"{name}.Key",
            "optional": False,
            "fields": [_of_key(fields[place]) for place in handle],
        }
        value = _envelope(
            name, fields, source_schema(schemas.has_extension, options.debezium_include_start_ts)
        )
        self._key_start, self._key_end = schemas.around(f"{topic}-key", key)
        self._value_start, self._value_end = schemas.around(f"{topic}-value", value)

    def rows(self, op: Op, changes: list[RowChange], now: int) -> tuple[list[bytes], list[bytes]]:
        """Return keys and values."""
        rows = befores(changes) if op == "delete" else afters(changes)
        keys = [self._key_start, b"{", *self._keys.of(rows), b"}", self._key_end]
        start: Parts = [
            self._value_start,
            b'{"source":',
            by_transaction(changes, self._source),
            b',"ts_ms":%d,"transaction":null,"op":"%b",' % (now, _OPS[op]),
        ]
        row: Parts = [b"{", *self._columns.of(rows), b"}"]
        match op:
            case "insert":
                images: Parts = [b'"before":null,"after":', *row]
            case "delete":
                images = [b'"after":null,"before":', *row]
            case "update" if self._options.output_old_value:
                old = self._columns.of(befores(changes))
                images = [b'"before":{', *old, b'},"after":', *row]
            case _:
                images = [b'"after":', *row]
        count = len(changes)
        return joined(count, keys), joined(count, [*start, *images, b"}", self._value_end])

    def _source(self, change: RowChange) -> bytes:
        table = self._table
        return json_bytes(
            source_of(self._options, table.schema, table.name, change.commit_ts, change.start_ts)
        )


def _of_key(schema: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in schema.items() if name != "default"}


def _envelope(name: str, fields: list[dict[str, object]], source: dict[str, object]) -> dict[str, object]:
    def row(place: str) -> dict[str, object]:
        return {"type": "struct", "optional": True, "name": f"{name}.Value", "field": place, "fields": fields}

    return {
        "type": "struct",
        "optional": False,
        "name": f"{name}.Envelope",
        "version": 1,
        "fields": [
            row("before"),
            row("after"),
            source,
            field("op", "string"),
            field("ts_ms", "int64", True),
            TRANSACTION,
        ],
    }
