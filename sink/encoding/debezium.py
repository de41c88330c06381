"""debezium: the envelopes of Debezium's MySQL connector as JSON, as TiCDC writes them.

Source: Debezium's documentation of its MySQL connector, and messages that TiCDC wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ...events import (
    ChangeDetails,
    CreateTable,
    Ddl,
    DropTable,
    Op,
    RenameTables,
    Row,
    RowChange,
    Table,
    Ts,
    physical_ms,
)
from ..per_table import PerTable
from ..row_code import compile_rows
from .compression import compressor
from .debezium_changes import table_change
from .debezium_schemas import CHANGE_KEY, TRANSACTION, change_value, field, schema_name, source_schema
from .debezium_types import NAME, column_form
from .definition import Definition, Describe, definition_of
from .encoder import Message, Milliseconds, afters, befores, groups
from .json_schema import json_schema
from .json_text import json_bytes, json_lines
from .options import DebeziumOptions
from .oversize import RECORD_BYTES, check_size
from .schema_registry import SchemaRegistry
from .statement_kind import named, statement_kind

_OPS: Final[dict[Op, str]] = {"insert": "c", "update": "u", "delete": "d"}


class DebeziumEncoder:
    """Writes keys and values with schemas. Watermarks are messages only with `enable_tidb_extension`."""

    name = NAME

    def __init__(
        self, options: DebeziumOptions, now: Milliseconds, describe: Describe = definition_of
    ) -> None:
        self._options: Final = options
        self._now: Final = now
        self._describe: Final = describe
        self._compress: Final = compressor(options.large_message_handle_compression)
        self._schemas: Final = Schemas(options)
        self._tables: Final = PerTable(lambda table: _TableForm(describe(table), options, self._schemas))
        self._source_schema: Final = source_schema(self._schemas.has_extension, start_ts=False)

    def rows(self, changes: Sequence[RowChange], last: bool = True) -> list[Message]:  # noqa: ARG002
        found = []
        for table, op, group in groups(changes):
            form = self._tables[table]
            source = source_of(self._options, table.schema, table.name, group[0].commit_ts, group[0].start_ts)
            head = b'%b{"source":%b,"ts_ms":%d,"transaction":null,"op":"%b",' % (
                form.value_start,
                json_bytes(source),
                self._now(),
                _OPS[op].encode(),
            )
            for key, value in zip(form.keys(op, group), form.values(op, group), strict=True):
                found.append(self._message(table, key, head + value))
        return found

    def _message(self, table: Table, key: bytes, value: bytes) -> Message:
        message = Message(self._compress(key), self._compress(value))
        size = len(message.key or b"") + len(message.value or b"") + RECORD_BYTES
        check_size(NAME, table, size, self._options)
        return message

    def ddl(self, ddl: Ddl) -> list[Message]:
        if not ddl.query:
            return []  # a table as its snapshot found it: no statement ran
        schema, table = named(ddl)
        payload = {
            "source": source_of(self._options, schema, table, ddl.commit_ts, 0),
            "ts_ms": self._now(),
            "databaseName": schema,
            "schemaName": None,
            "ddl": ddl.query,
            "tableChanges": table_changes(ddl, self._describe),
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
            parts.append(self._compress(start + json_bytes(payload) + end))
        return Message(parts[0], parts[1], 0)


def source_of(options: DebeziumOptions, schema: str, table: str, ts: Ts, start_ts: Ts) -> dict[str, Any]:
    found = {
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
        found["start_ts"] = start_ts
    return found | {"cluster_id": options.cluster_id}


def table_changes(ddl: Ddl, describe: Describe) -> list[dict[str, Any]]:
    """Return the tables after a statement, as far as it says what they are."""
    match ddl.actions:
        case [CreateTable(table), *_]:
            return [table_change("CREATE", describe(table))]
        case [DropTable()]:
            return [{"type": "DROP", "id": f'"{ddl.schema}"."{ddl.table}"', "table": None}]
        case [RenameTables()] | []:
            return []
        case [*_, ChangeDetails(table=table)] if statement_kind(ddl).name != "TRUNCATE":
            return [table_change("ALTER", describe(table))]
    return []


class Schemas:
    """Writes the schemas of messages: into each message, into a schema registry, or nowhere."""

    def __init__(self, options: DebeziumOptions) -> None:
        self._is_left_out: Final = options.debezium_disable_schema
        self._is_open: Final = options.object_additional_properties
        url = options.schema_registry
        self._registry: Final = SchemaRegistry(url) if url else None
        self.has_extension: Final = options.enable_tidb_extension or bool(url)
        """True if the schema of `source` has the fields of TiDB, which messages have anyway."""

    def around(self, subject: str, schema: dict[str, Any]) -> tuple[bytes, bytes]:
        """Return the bytes before and after a payload. Raises as SchemaRegistry.id_of does."""
        if self._registry is not None:
            text = json_bytes(json_schema(schema, is_open=self._is_open)).decode()
            return self._registry.frame_of(subject, text, "JSON"), b""
        end = b"}" if self._is_left_out else b',"schema":%b}' % json_bytes(schema)
        return b'{"payload":', end


class _TableForm:
    """Schemas of one table, and generated code for its rows."""

    def __init__(self, definition: Definition, options: DebeziumOptions, schemas: Schemas) -> None:
        table = definition.table
        self._table: Final = table
        self._options: Final = options
        forms = [column_form(definition, column, options) for column in table.columns]
        scope: dict[str, Any] = {
            f"f{place}": form.convert for place, form in enumerate(forms) if form.convert
        }
        parts = [
            f"{column.name!r}: "
            + (f"None if c{place} is None else f{place}(c{place})" if f"f{place}" in scope else f"c{place}")
            for place, column in enumerate(table.columns)
        ]
        handle = sorted(definition.handle_key)
        self._columns: Final = _compiled(table, parts, scope)
        self._keys: Final = _compiled(table, [parts[place] for place in handle], scope)
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
        self.value_start, self._value_end = schemas.around(f"{topic}-value", value)
        """Bytes before a value's first field."""

    def keys(self, op: Op, changes: list[RowChange]) -> list[bytes]:
        rows = befores(changes) if op == "delete" else afters(changes)
        return [self._key_start + key + self._key_end for key in json_lines(self._keys(rows))]

    def values(self, op: Op, changes: list[RowChange]) -> list[bytes]:
        """Return the rest of messages after the field `op`."""
        before = [] if op == "insert" else json_lines(self._columns(befores(changes)))
        after = [] if op == "delete" else json_lines(self._columns(afters(changes)))
        end = b"}" + self._value_end
        if op == "insert":
            return [b'"before":null,"after":' + row + end for row in after]
        if op == "delete":
            return [b'"after":null,"before":' + row + end for row in before]
        if not self._options.output_old_value:
            return [b'"after":' + row + end for row in after]
        return [b'"before":' + old + b',"after":' + new + end for old, new in zip(before, after, strict=True)]


def _compiled(
    table: Table, parts: list[str], scope: dict[str, Any]
) -> Callable[[Iterable[Row]], list[dict[str, Any]]]:
    return compile_rows(len(table.columns), f"{{{', '.join(parts)}}}", scope)


def _of_key(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "default"}


def _envelope(name: str, fields: list[dict[str, Any]], source: dict[str, Any]) -> dict[str, Any]:
    def row(place: str) -> dict[str, Any]:
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
