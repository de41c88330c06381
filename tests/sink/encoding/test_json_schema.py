"""Debezium's messages with JSON Schemas in a schema registry."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest

from tidemill.errors import ConfigError, Retryable, SinkError
from tidemill.events import AddColumn, Column, RowChange, Table
from tidemill.sink.encoding.encodings import make_encoder
from tidemill.sink.encoding.json_schema import json_schema
from tidemill.sink.kafka.address import parsed
from tidemill.sink.kafka.kinds import _encoding
from tidemill.sink.kafka.options import KafkaOptions
from tidemill.testing.changes import alter
from tidemill.testing.schema_registry import SchemaRegistryServer

TABLE = Table(
    "shop",
    "orders",
    (
        Column("id", "int", nullable=False),
        Column("total", "decimal", length=10, scale=2),
        Column("flags", "bit", length=9, nullable=False),
        Column("seen", "timestamp", nullable=False, default="'2026-01-31 00:00:00'"),
        Column("size", "enum", members=("s", "l"), default="'s'", charset="utf8mb4"),
        Column("big", "bigint"),
        Column("raw", "blob"),
        Column("ratio", "float"),
        Column("is_open", "bit", length=1),
    ),
    key=(0,),
)
SEEN = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
FULL = (1, Decimal("1.50"), 257, SEEN, "l", 2**53, b"\0\xff", 0.5, 1)
EMPTY = (2, None, 0, SEEN, None, None, None, None, None)


def encoder(registry: SchemaRegistryServer, **options: Any):
    return make_encoder("debezium", {"schema-registry": registry.url, **options}, lambda: 7)


def changes(*rows: Any, table: Table = TABLE) -> list[RowChange]:
    first, *others = [RowChange(9, 8, table, "insert", None, row) for row in rows]
    return [first, *others]


def payload(data: bytes | None, registry: SchemaRegistryServer) -> tuple[Any, Any]:
    """Return the schema and the payload of a key or value in Confluent's frame."""
    assert data is not None
    assert data[0] == 0
    number = int.from_bytes(data[1:5])
    assert registry.kinds[number] == "JSON"
    return json.loads(registry.schemas[number]), json.loads(data[5:])


def problem(schema: Any, value: Any, where: str = "$") -> str:
    """Return why a value isn't valid, by the words that these schemas have; empty if it is."""
    if "oneOf" in schema:
        found = [problem(one, value, where) for one in schema["oneOf"]]
        return "" if found.count("") == 1 else f"{where}: {found}"
    kinds = {
        "object": dict,
        "string": str,
        "boolean": bool,
        "integer": int,
        "array": list,
        "null": type(None),
    }
    kind = kinds.get(schema["type"], (int, float))
    if not isinstance(value, kind) or (isinstance(value, bool) and schema["type"] != "boolean"):
        return f"{where}: {value!r} is no {schema['type']}"
    for name, one in schema.get("properties", {}).items():
        if name in value and (found := problem(one, value[name], f"{where}.{name}")):
            return found
    if schema.get("additionalProperties", True) is False:
        more = value.keys() - schema["properties"].keys()
        return f"{where}: {more} aren't properties" if more else ""
    items = value if "items" in schema else []
    return next((why for one in items if (why := problem(schema["items"], one, where))), "")


@pytest.mark.parametrize("is_open", [True, False])
def test_messages_are_valid_for_the_schemas_that_they_name(
    registry: SchemaRegistryServer, is_open: bool
) -> None:
    made = encoder(registry, object_additional_properties=is_open)
    updated = RowChange(9, 8, TABLE, "update", FULL, EMPTY)
    deleted = RowChange(9, 8, TABLE, "delete", EMPTY, None)
    messages = made.rows([*changes(FULL, EMPTY), updated, deleted])
    messages += made.ddl(alter(9, TABLE, "ALTER …", AddColumn(Column("n", "int"))))
    messages += encoder(registry, enable_tidb_extension=True, object_additional_properties=is_open).watermark(
        9
    )
    assert len(messages) == 6
    for message in messages:
        for data in (message.key, message.value):
            assert problem(*payload(data, registry)) == ""


def test_payloads_are_those_of_messages_with_schemas(registry: SchemaRegistryServer) -> None:
    plain = make_encoder("debezium", {}, lambda: 7).rows(changes(FULL))[0]
    framed = encoder(registry).rows(changes(FULL))[0]
    for data, whole in ((framed.key, plain.key), (framed.value, plain.value)):
        assert payload(data, registry)[1] == json.loads(whole or b"")["payload"]


def test_schemas_are_registered_once_under_the_topic_s_name(registry: SchemaRegistryServer) -> None:
    made = encoder(registry, topic="cdc.{table}")
    made.rows(changes(FULL))
    made.rows(changes(EMPTY))
    assert registry.requests == 2
    assert set(registry.subjects) == {"cdc.orders-key", "cdc.orders-value"}


def test_a_schema_is_what_confluent_s_converter_registers(registry: SchemaRegistryServer) -> None:
    message = encoder(registry).rows(changes(FULL))[0]
    assert payload(message.key, registry)[0] == {
        "type": "object",
        "title": "default.shop.orders.Key",
        "properties": {"id": {"type": "integer", "connect.type": "int32", "connect.index": 0}},
    }
    schema = payload(message.value, registry)[0]
    after = schema["properties"]["after"]
    assert (schema["title"], schema["connect.version"]) == ("default.shop.orders.Envelope", 1)
    assert after["connect.index"] == 1
    null, row = after["oneOf"]
    assert (null, row["title"]) == ({"type": "null"}, "default.shop.orders.Value")
    assert row["properties"]["total"] == {
        "oneOf": [{"type": "null"}, {"type": "number", "connect.type": "float64"}],
        "connect.index": 1,
    }
    assert row["properties"]["flags"] == {
        "type": "string",
        "connect.type": "bytes",
        "title": "io.debezium.data.Bits",
        "connect.parameters": {"length": "9"},
        "connect.version": 1,
        "connect.index": 2,
    }
    assert row["properties"]["size"]["oneOf"][1]["default"] == "s"


def test_an_array_s_items_have_a_schema():
    names = {"type": "array", "optional": True, "items": {"type": "string", "optional": False}}
    assert json_schema(names, is_open=True) == {
        "oneOf": [{"type": "null"}, {"type": "array", "items": {"type": "string"}}]
    }


WIDER = Table("shop", "orders", (*TABLE.columns, Column("note", "varchar", length=9)), key=(0,))


def test_an_added_column_is_compatible_if_objects_have_no_further_properties(
    registry: SchemaRegistryServer,
) -> None:
    made = encoder(registry, object_additional_properties=False)
    made.rows(changes(FULL))
    made.rows(changes((*FULL, "x"), table=WIDER))
    assert len(registry.subjects["shop_orders-value"]) == 2
    with pytest.raises(
        SinkError, match=r"note: PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL\): write to anoth"
    ):
        encoder(registry, object_additional_properties=False).rows(changes(FULL))


def test_an_added_column_stops_the_feed_otherwise_unless_the_subject_allows_all(
    registry: SchemaRegistryServer,
) -> None:
    encoder(registry).rows(changes(FULL))
    with pytest.raises(SinkError, match=r"shop_orders-value.*note: PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"):
        encoder(registry).rows(changes((*FULL, "x"), table=WIDER))
    registry.compatibility = "NONE"
    encoder(registry).rows(changes((*FULL, "x"), table=WIDER))


def test_a_subject_of_avro_is_refused(registry: SchemaRegistryServer) -> None:
    make_encoder("debezium-avro", {"schema-registry": registry.url}, lambda: 7).rows(changes(FULL))
    with pytest.raises(SinkError, match="a schema of another type"):
        encoder(registry).rows(changes(FULL))


def test_rows_that_no_registry_knows_come_again(registry: SchemaRegistryServer) -> None:
    made = encoder(registry)
    registry.faults.append(503)
    with pytest.raises(Retryable):
        made.rows(changes(FULL))
    assert made.rows(changes(FULL))[0].value is not None


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"schema-registry": "here"}, r"schema-registry = 'here': the URL of a schema registry"),
        ({"schema-registry": "http://r", "debezium-disable-schema": True}, "give one of them"),
        (
            {"schema-registry": "http://r", "large-message-handle-compression": "lz4"},
            "readers of Confluent's frame don't know it",
        ),
        ({"topic": "{db}"}, r"topic = '\{db\}': accepted are \{schema\} and \{table\}"),
    ],
)
def test_options_that_don_t_go_together_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        make_encoder("debezium", options, lambda: 7)


def test_kafka_names_the_subjects_by_its_topic():
    given = {"schema-registry": "http://r"}
    address, options = parsed("kafka://b/cdc.{table}", KafkaOptions(format="debezium", encoding=given))
    assert _encoding(address.topic, options)["topic"] == "cdc.{table}"
    _, plain = parsed("kafka://b/cdc.{table}", KafkaOptions(format="debezium"))
    assert "topic" not in _encoding(address.topic, plain)
