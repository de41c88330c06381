"""The parts of Debezium's schemas that are the same for all tables."""

from __future__ import annotations

import re
from typing import Final

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_]")


def schema_name(*parts: str) -> str:
    """Return a name that Avro accepts: other characters than letters, digits and _ become _."""
    return ".".join(map(legal, parts))


def legal(name: str) -> str:
    replaced = _ILLEGAL.sub("_", name)
    return f"_{replaced}" if replaced[:1].isdigit() else replaced


def field(name: str, kind: str, optional: bool = False) -> dict[str, object]:
    return {"type": kind, "optional": optional, "field": name}


def source_schema(extended: bool, start_ts: bool) -> dict[str, object]:
    """Return the schema of `source`; `extended` has TiDB's fields."""
    snapshot = {
        "type": "string",
        "optional": True,
        "name": "io.debezium.data.Enum",
        "version": 1,
        "parameters": {"allowed": "true,last,false,incremental"},
        "default": "false",
        "field": "snapshot",
    }
    fields = [
        field("version", "string"),
        field("connector", "string"),
        field("name", "string"),
        field("ts_ms", "int64"),
        snapshot,
        field("db", "string"),
        field("sequence", "string", True),
        field("table", "string", True),
        field("server_id", "int64"),
        field("gtid", "string", True),
        field("file", "string"),
        field("pos", "int64"),
        field("row", "int32"),
        field("thread", "int64", True),
        field("query", "string", True),
    ]
    if extended:
        fields += [field("commit_ts", "int64"), field("cluster_id", "string")]
        if start_ts:
            fields.append(field("start_ts", "int64"))
    return {
        "type": "struct",
        "fields": fields,
        "optional": False,
        "name": "io.debezium.connector.mysql.Source",
        "field": "source",
    }


TRANSACTION: Final = {
    "type": "struct",
    "fields": [field("id", "string"), field("total_order", "int64"), field("data_collection_order", "int64")],
    "optional": True,
    "name": "event.block",
    "version": 1,
    "field": "transaction",
}

CHANGE_KEY: Final = {
    "type": "struct",
    "name": "io.debezium.connector.mysql.SchemaChangeKey",
    "optional": False,
    "version": 1,
    "fields": [{"field": "databaseName", "optional": False, "type": "string"}],
}


def _list(name: str, kind: dict[str, object], optional: bool) -> dict[str, object]:
    return {"field": name, "optional": optional, "type": "array", "items": kind}


def _part(name: str, kind: str, optional: bool) -> dict[str, object]:
    return {"field": name, "optional": optional, "type": kind}


_STRING: Final = {"type": "string", "optional": False}
_COLUMN: Final = {
    "name": "io.debezium.connector.schema.Column",
    "optional": False,
    "type": "struct",
    "version": 1,
    "fields": [
        _part("name", "string", False),
        _part("jdbcType", "int32", False),
        _part("nativeType", "int32", True),
        _part("typeName", "string", False),
        _part("typeExpression", "string", True),
        _part("charsetName", "string", True),
        _part("length", "int32", True),
        _part("scale", "int32", True),
        _part("position", "int32", False),
        _part("optional", "boolean", True),
        _part("autoIncremented", "boolean", True),
        _part("generated", "boolean", True),
        _part("comment", "string", True),
        _part("defaultValueExpression", "string", True),
        _list("enumValues", _STRING, True),
    ],
}
_TABLE: Final = {
    **_part("table", "struct", True),
    "name": "io.debezium.connector.schema.Table",
    "version": 1,
    "fields": [
        _part("defaultCharsetName", "string", True),
        _list("primaryKeyColumnNames", _STRING, True),
        _list("columns", _COLUMN, False),
        _part("comment", "string", True),
    ],
}
_CHANGE: Final = {
    "name": "io.debezium.connector.schema.Change",
    "optional": False,
    "type": "struct",
    "version": 1,
    "fields": [_part("type", "string", False), _part("id", "string", False), _TABLE],
}


def change_value(source: dict[str, object]) -> dict[str, object]:
    """Return the schema of a schema change."""
    return {
        "optional": False,
        "type": "struct",
        "version": 1,
        "name": "io.debezium.connector.mysql.SchemaChangeValue",
        "fields": [
            source,
            _part("ts_ms", "int64", False),
            _part("databaseName", "string", True),
            _part("schemaName", "string", True),
            _part("ddl", "string", True),
            _list("tableChanges", _CHANGE, False),
        ],
    }
