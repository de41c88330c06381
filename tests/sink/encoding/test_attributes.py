"""Attributes of types in messages: display widths, ZEROFILL, digits of floats, generated columns."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro

from tidemill.events import Column, RowChange, Table
from tidemill.sink.encoding.encodings import make_encoder
from tidemill.sink.files.ticdc_schema import columns_of
from tidemill.testing.schema_registry import SchemaRegistryServer

TABLE = Table(
    "s",
    "t",
    (
        Column("id", "int", nullable=False),
        Column("flag", "tinyint", width=1),
        Column("nr", "int", unsigned=True, width=8, zerofill=True),
        Column("f", "float", length=7, scale=3),
        Column("d", "double", length=12, scale=4),
        Column("plain", "float"),
        Column("made", "int", generated=True),
    ),
    (0,),
)
ROW = RowChange(1, 1, TABLE, "insert", None, (1, 1, 5, 1.25, 2.5, 0.5, 2))


def encoded(encoding: str, **options: Any) -> Any:
    [message] = [one for one in make_encoder(encoding, options, lambda: 0).rows([ROW]) if one.rows]
    return message


def test_canal_json_has_full_types() -> None:
    options = {"content-compatible": True}
    assert json.loads(encoded("canal-json", **options).value)["mysqlType"] == {
        "id": "int(11)", "flag": "tinyint(1)", "nr": "int(8) unsigned zerofill", "f": "float(7,3)",
        "d": "double(12,4)", "plain": "float", "made": "int(11)",
    }  # fmt: skip


def test_open_protocol_marks_generated_columns() -> None:
    row = json.loads(encoded("open-protocol").value[8:])["u"]
    assert {name for name, column in row.items() if column["f"] & 4} == {"made"}


def test_simple_has_lengths_and_no_decimals_of_floats() -> None:
    encoder: Any = make_encoder("simple", {}, lambda: 0)
    definition = json.loads(encoder.rows([ROW])[0].value)["tableSchema"]
    types = {column["name"]: column["dataType"] for column in definition["columns"]}
    assert {name: found["length"] for name, found in types.items()} == {
        "id": 11, "flag": 1, "nr": 8, "f": 7, "d": 12, "plain": 12, "made": 11,
    }  # fmt: skip
    assert [name for name, found in types.items() if "decimal" in found] == []
    assert [name for name, found in types.items() if "zerofill" in found] == ["nr"]


def test_debezium_declares_a_float_with_digits_as_a_double() -> None:
    [row, *_] = json.loads(encoded("debezium").value)["schema"]["fields"]
    types = {field["field"]: field["type"] for field in row["fields"]}
    assert (types["f"], types["d"], types["plain"]) == ("double", "double", "float")


def test_debezium_avro_writes_a_float_with_digits_as_a_double(registry: SchemaRegistryServer) -> None:
    message = encoded("debezium-avro", **{"schema-registry": registry.url})
    schema = json.loads(registry.schemas[int.from_bytes(message.value[1:5])])
    found: Any = fastavro.schemaless_reader(io.BytesIO(message.value[5:]), fastavro.parse_schema(schema))
    assert (found["after"]["f"], found["after"]["d"], found["after"]["plain"]) == (1.25, 2.5, 0.5)
    [after] = [field for field in schema["fields"] if field["name"] == "before"]
    row = next(part for part in after["type"] if isinstance(part, dict))
    types = {field["name"]: field["type"][1] for field in row["fields"]}
    assert (types["f"], types["plain"]) == ("double", "float")


def test_schema_files_of_ticdc_have_widths_and_digits() -> None:
    columns = columns_of(TABLE)
    assert {column["ColumnName"]: column.get("ColumnPrecision") for column in columns} == {
        "id": "11", "flag": "1", "nr": "8", "f": "7", "d": "12", "plain": "12", "made": "11",
    }  # fmt: skip
    scales = {column["ColumnName"]: column["ColumnScale"] for column in columns if "ColumnScale" in column}
    assert scales == {"f": "3", "d": "4"}
