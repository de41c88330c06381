"""debezium-avro: Debezium's envelopes as Avro in Confluent's frame, as TiCDC writes them.

Source: Debezium's documentation of its MySQL connector, and messages and schemas that TiCDC wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...events import Ddl, Op, RowChange, Table, Ts
from ...events.per_table import PerTable
from .avro_bytes import avro_bytes, long_bytes, text_bytes
from .avro_columns import check_names
from .avro_values import AvroFields
from .columns import Parts, joined
from .debezium import source_of
from .debezium_avro_columns import avro_field, field_writer
from .debezium_avro_schemas import (
    CHANGE_KEY,
    change_value,
    envelope,
    record,
    source_record,
    text,
    watermark_key,
    watermark_value,
)
from .debezium_changes import table_changes
from .debezium_schemas import legal, schema_name
from .definition import Definition, Describe, definition_of
from .definitions import TableDefinitions
from .encoder import Message, Milliseconds, afters, befores, by_transaction, in_order
from .options import DebeziumAvroOptions, DebeziumOptions
from .oversize import check_sizes
from .schema_registry import SchemaRegistry
from .statement_kind import named

NAME: Final = "debezium-avro"

_OPS: Final[dict[Op, str]] = {"insert": "c", "update": "u", "delete": "d"}
_NULL, _VALUE = b"\0", b"\2"


class DebeziumAvroEncoder:
    """Writes keys and values. Registers a table's schemas at its first row."""

    name = NAME

    def __init__(
        self, options: DebeziumAvroOptions, now: Milliseconds, describe: Describe = definition_of
    ) -> None:
        self._options: Final = options
        self._now: Final = now
        self._definitions: Final = TableDefinitions(describe)
        self._source: Final = DebeziumOptions(cluster_id=options.cluster_id)
        self._registry: Final = SchemaRegistry(options.schema_registry)
        self._tables: Final = PerTable(
            lambda table: _TableForm(self._definitions.of(table), options, self._registry)
        )

    def rows(self, changes: Sequence[RowChange], last: bool = True) -> list[Message]:  # noqa: ARG002
        now = self._now()

        def encode(table: Table, op: Op, group: list[RowChange]) -> list[Message]:
            return self._tables[table].messages(op, group, self._source, now)

        return in_order(changes, encode)

    def ddl(self, ddl: Ddl) -> list[Message]:
        effects = self._definitions.effects(ddl)
        if not self._options.avro_enable_watermark or not ddl.query:
            return []
        schema, table = named(ddl)
        value = {
            "source": source_of(self._source, schema, table, ddl.commit_ts, 0),
            "ts_ms": self._now(),
            "databaseName": schema,
            "schemaName": None,
            "ddl": ddl.query,
            "tableChanges": table_changes(ddl, effects),
        }
        return [
            self._alone(
                (CHANGE_KEY, {"databaseName": schema}),
                (change_value(self._options.cluster_id, schema), value),
            )
        ]

    def watermark(self, ts: Ts) -> list[Message]:
        if not self._options.avro_enable_watermark:
            return []
        cluster = self._options.cluster_id
        source = source_of(self._source, "", "", ts, 0)
        value = {"source": source, "op": "m", "ts_ms": self._now(), "transaction": None}
        return [self._alone((watermark_key(cluster), {}), (watermark_value(cluster), value))]

    def _alone(self, key: tuple[dict[str, Any], Any], value: tuple[dict[str, Any], Any]) -> Message:
        """Return a message without rows, of schemas and values; their names are the subjects."""
        parts = [
            self._registry.frame_of(schema["connect.name"], text(schema)) + avro_bytes(schema, content)
            for schema, content in (key, value)
        ]
        return Message(parts[0], parts[1], 0)


class _TableForm:
    """Schemas of one table, and the form of its rows."""

    def __init__(
        self, definition: Definition, options: DebeziumAvroOptions, registry: SchemaRegistry
    ) -> None:
        table = definition.table
        check_names(NAME, table)
        self._table: Final = table
        self._options: Final = options
        space = schema_name(options.cluster_id, table.schema)
        fields = [avro_field(NAME, definition, column, options) for column in table.columns]
        handle = sorted(definition.handle_key)
        columns = [
            (place, field_writer(NAME, table, column, options)) for place, column in enumerate(table.columns)
        ]
        self._columns: Final = AvroFields(columns)
        self._keys: Final = AvroFields([columns[place] for place in handle])
        name, topic = legal(table.name), options.topic_of(table)
        key = record(space, f"{name}Key", [fields[place] for place in handle])
        self._key_frame: Final = registry.frame_of(f"{topic}-key", text(key))
        value = text(envelope(space, name, fields))
        self._value_frame: Final = registry.frame_of(f"{topic}-value", value)
        self._source: Final = source_record(space)

    def messages(self, op: Op, changes: list[RowChange], source: DebeziumOptions, now: int) -> list[Message]:
        rows = befores(changes) if op == "delete" else afters(changes)
        keys = joined(len(rows), [self._key_frame, *self._keys.of(rows)])
        messages = list(map(Message, keys, self._values(op, changes, source, now)))
        check_sizes(NAME, self._options, changes, messages)
        return messages

    def _values(self, op: Op, changes: list[RowChange], source: DebeziumOptions, now: int) -> list[bytes]:
        def source_bytes(change: RowChange) -> bytes:
            source_fields = source_of(source, self._table.schema, self._table.name, change.commit_ts, 0)
            return avro_bytes(self._source, source_fields | {"snapshot": None, "thread": None})

        before: Parts = [_NULL] if op == "insert" else [_VALUE, *self._columns.of(befores(changes))]
        after: Parts = [_NULL] if op == "delete" else [_VALUE, *self._columns.of(afters(changes))]
        end = text_bytes(_OPS[op]) + long_bytes(now)
        parts = [self._value_frame, *before, *after, by_transaction(changes, source_bytes), end]
        return joined(len(changes), parts)
