"""The records of Debezium's Avro that are the same for all tables."""

from __future__ import annotations

import json
from typing import Final

from .debezium_schemas import schema_name


def one(name: str, kind: object) -> dict[str, object]:
    """Return a field that is always there."""
    return {"connect.field": name, "name": name, "type": kind}


def maybe(name: str, kind: object) -> dict[str, object]:
    """Return a field that may be null."""
    return {**one(name, ["null", kind]), "default": None}


def record(space: str, name: str, fields: list[dict[str, object]], version: int = 0) -> dict[str, object]:
    schema: dict[str, object] = {
        "type": "record",
        "name": name,
        "namespace": space,
        "connect.name": f"{space}.{name}",
        "fields": fields,
    }
    if version:
        schema["connect.version"] = version
    return schema


def text(schema: dict[str, object]) -> str:
    """Return a schema as it is registered."""
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def source_record(space: str) -> dict[str, object]:
    fields = [
        one("version", "string"),
        one("connector", "string"),
        one("name", "string"),
        one("ts_ms", "long"),
        maybe("snapshot", "string"),
        one("db", "string"),
        one("table", "string"),
        one("server_id", "long"),
        maybe("gtid", "string"),
        one("file", "string"),
        one("pos", "long"),
        one("row", "int"),
        maybe("thread", "long"),
        maybe("query", "string"),
        one("commit_ts", "long"),
        one("cluster_id", "string"),
    ]
    return record(space, "Source", fields)


def envelope(space: str, table: str, fields: list[dict[str, object]]) -> dict[str, object]:
    """Return the record of a row's message."""
    parts = [
        maybe("before", record(space, table, fields)),
        maybe("after", f"{space}.{table}"),
        one("source", source_record(space)),
        one("op", "string"),
        one("ts_ms", "long"),
    ]
    return record(space, f"{table}Envelope", parts, 1)


CHANGE_KEY: Final = record(
    "io.debezium.connector.mysql", "SchemaChangeKey", [one("databaseName", "string")], 1
)
_SCHEMA: Final = "io.debezium.connector.schema"
_STRINGS: Final = {"type": "array", "items": "string"}
_COLUMN: Final = record(
    _SCHEMA,
    "Column",
    [
        one("name", "string"),
        one("jdbcType", "int"),
        maybe("nativeType", "int"),
        one("typeName", "string"),
        maybe("typeExpression", "string"),
        maybe("charsetName", "string"),
        maybe("length", "int"),
        maybe("scale", "int"),
        one("position", "int"),
        maybe("optional", "boolean"),
        maybe("autoIncremented", "boolean"),
        maybe("generated", "boolean"),
        maybe("comment", "string"),
        maybe("defaultValueExpression", "string"),
        maybe("enumValues", _STRINGS),
    ],
    1,
)
_TABLE: Final = record(
    _SCHEMA,
    "Table",
    [
        maybe("defaultCharsetName", "string"),
        maybe("primaryKeyColumnNames", _STRINGS),
        one("columns", {"type": "array", "items": _COLUMN}),
        maybe("comment", "string"),
    ],
    1,
)
_CHANGE: Final = record(
    _SCHEMA, "Change", [one("type", "string"), one("id", "string"), maybe("table", _TABLE)], 1
)


def change_value(cluster: str, schema: str) -> dict[str, object]:
    """Return the record of a schema change."""
    fields = [
        one("source", source_record(schema_name(cluster, schema))),
        one("ts_ms", "long"),
        maybe("databaseName", "string"),
        maybe("schemaName", "string"),
        maybe("ddl", "string"),
        one("tableChanges", {"type": "array", "items": _CHANGE}),
    ]
    return record("io.debezium.connector.mysql", "SchemaChangeValue", fields, 1)


def watermark_key(cluster: str) -> dict[str, object]:
    return record(schema_name(cluster, "watermark"), "Key", [])


def watermark_value(cluster: str) -> dict[str, object]:
    space = schema_name(cluster, "watermark")
    block = [one("id", "string"), one("total_order", "long"), one("data_collection_order", "long")]
    fields = [
        one("source", source_record(space)),
        one("op", "string"),
        maybe("ts_ms", "long"),
        maybe("transaction", record("event", "block", block, 1)),
    ]
    return record(space, "Envelope", fields, 1)
