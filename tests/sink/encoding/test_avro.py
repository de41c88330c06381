"""avro and debezium-avro, with the schemas that they register, against those that TiCDC wrote."""

from __future__ import annotations

import json
from functools import cache
from io import BytesIO
from typing import Any

import fastavro
import pytest

from tidemill.sink.encoding.encoder import Encoder
from tidemill.testing.schema_registry import SchemaRegistryServer

from .compared import differences, encoder, option_sets
from .recorded import Recorded, lines

pytestmark = pytest.mark.usefixtures("decoder")


@cache
def schemas(encoding: str, options: str) -> dict[int, str]:
    """Return the schemas that the original registered, by id."""
    return {
        line["id"]: line["schema"]
        for line in lines("avro_schemas")
        if line["encoding"] == encoding and json.dumps(line["options"]) == options
    }


def compared(
    encoding: str, options: str, registry: SchemaRegistryServer, known: Any, read: Any = None
) -> str:
    """Return how messages and schemas differ from the recorded ones."""
    made: dict[str, Encoder] = {}

    def make(one: Recorded) -> Encoder:
        if one.time_zone not in made:
            given = {name: value for name, value in one.options.items() if name != "integrity"}
            changed = {"schema-registry": registry.url, "refuse-inexact": False}
            made[one.time_zone] = encoder(encoding, one._replace(options=given), **changed)
        return made[one.time_zone]

    ours = registry.schemas
    theirs = schemas(encoding, options)

    def form(key: bytes | None, value: bytes | None) -> Any:
        return body(key), body(value)

    def body(message: bytes | None) -> Any:
        if not message or message[0]:
            return message
        number = int.from_bytes(message[1:5])
        schema = (theirs if number > 100 else ours)[number]
        return schema, read(schema, message[5:]) if read else message[5:]

    return "\n".join(differences(encoding, encoding, options, make, form, known))


def debezium_known(one: Recorded) -> str:
    event = one.events[0]
    if event.get("table") == "表-1":
        return "the original fails for a virtual column, which no source delivers"
    if event.get("table") == "dflt":
        return "the original writes a column's default instead of NULL"
    return ""


def undated(schema: str, body: bytes) -> Any:
    """Return a message without its time, and without the tables that a schema change results in."""
    found = fastavro.schemaless_reader(BytesIO(body), json.loads(schema))
    return {name: value for name, value in found.items() if name not in ("ts_ms", "tableChanges")}


@pytest.mark.parametrize(("file", "encoding", "options"), option_sets("debezium-avro"))
def test_debezium_avro_is_what_ticdc_wrote(
    file: str, encoding: str, options: str, registry: SchemaRegistryServer
) -> None:
    assert compared(encoding, options, registry, debezium_known, undated) == ""


def avro_known(one: Recorded) -> str:
    event = one.events[0]
    if event.get("table") == "表-1":
        return "the original also writes a virtual column, which no source delivers"
    if event.get("table") == "dflt":
        return "the original declares a default of BIT in base64, which readers take for its characters"
    if "integrity" in one.options and event["op"] in ("insert", "update", "delete"):
        return "a row's checksum isn't part of a RowChange"
    if one.key is None and one.value is None and event["op"] == "delete":
        return "the original writes a message without key and value: refused"
    return ""


@pytest.mark.parametrize(("file", "encoding", "options"), option_sets("avro"))
def test_avro_is_what_ticdc_wrote(
    file: str, encoding: str, options: str, registry: SchemaRegistryServer
) -> None:
    assert compared(encoding, options, registry, avro_known) == ""
