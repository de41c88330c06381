"""The payloads of the simple protocol in Avro that have no rows, and definitions of tables in them."""

from __future__ import annotations

from typing import Final

from .definition import Definition
from .simple_schema import table_schema
from .sql_default import constant

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
    found = table_schema(definition)
    for column, described in zip(definition.table.columns, found["columns"], strict=True):
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
    return found
