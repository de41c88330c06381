"""The schema registry's client, on a registry that answers, fails and rejects."""

from __future__ import annotations

import json

import pytest

from tidemill.errors import ConfigError, Retryable, SinkError
from tidemill.events import Column, RowChange, Table
from tidemill.sink.encoding.encodings import make_encoder
from tidemill.sink.encoding.schema_registry import SchemaRegistry, frame
from tidemill.testing.schema_registry import Fault, SchemaRegistryServer, schema_registry

TEXT = '"string"'


def test_a_schema_is_registered_once_and_its_id_is_kept(registry: SchemaRegistryServer) -> None:
    client = SchemaRegistry(registry.url)
    assert [client.id_of("a-value", TEXT), client.id_of("a-value", TEXT)] == [1, 1]
    assert registry.requests == 1
    assert client.id_of("b/é-value", TEXT) == 1
    assert set(registry.subjects) == {"a-value", "b/é-value"}


def test_a_message_begins_with_a_zero_and_the_schemas_id() -> None:
    assert frame(258) == b"\0\0\0\1\2"


@pytest.mark.parametrize("fault", ["closed", "half", 500, 503, 429])
def test_a_registry_that_fails_is_asked_again(registry: SchemaRegistryServer, fault: int | Fault) -> None:
    registry.faults.append(fault)
    client = SchemaRegistry(registry.url)
    with pytest.raises(Retryable, match=r"schema registry http://127\.0\.0\.1:\d+ .*waits for it"):
        client.id_of("a-value", TEXT)
    assert client.id_of("a-value", TEXT) == 1


def test_a_registry_that_is_silent_is_asked_again(registry: SchemaRegistryServer) -> None:
    registry.faults.append("silent")
    with pytest.raises(Retryable, match="timed out"):
        SchemaRegistry(registry.url, timeout_seconds=0.05).id_of("a-value", TEXT)


def test_a_registry_that_is_down_is_waited_for() -> None:
    with schema_registry() as server:
        pass
    with pytest.raises(Retryable, match="doesn't answer"):
        SchemaRegistry(server.url).id_of("a-value", TEXT)


def test_an_incompatible_schema_stops_the_feed(registry: SchemaRegistryServer) -> None:
    client = SchemaRegistry(registry.url)
    client.id_of("a-value", TEXT)
    with pytest.raises(
        SinkError, match=r"subject a-value isn't compatible .*string can't be read as int.*NONE"
    ):
        client.id_of("a-value", '"int"')
    registry.compatibility = "NONE"
    assert client.id_of("a-value", '"int"') == 2


def test_wrong_credentials_stop_the_feed_and_right_ones_in_the_url_are_used(
    registry: SchemaRegistryServer,
) -> None:
    registry.user = "me:p@ss"
    with pytest.raises(SinkError, match="HTTP 401, Unauthorized: put a user and password"):
        SchemaRegistry(registry.url).id_of("a-value", TEXT)
    url = registry.url.replace("http://", "http://me:p%40ss@")
    assert SchemaRegistry(url).id_of("a-value", TEXT) == 1


def test_errors_dont_show_the_password() -> None:
    with schema_registry() as server:
        url = server.url.replace("http://", "http://me:secret@")
    with pytest.raises(Retryable) as caught:
        SchemaRegistry(url).id_of("a-value", TEXT)
    assert "secret" not in str(caught.value)


def test_another_server_at_the_url_is_refused(registry: SchemaRegistryServer) -> None:
    with pytest.raises(SinkError, match=r"HTTP 404.*check the URL"):
        SchemaRegistry(f"{registry.url}/elsewhere").id_of("a-value", TEXT)


@pytest.mark.parametrize("url", ["", "registry:8081", "ftp://registry"])
def test_a_url_that_names_no_registry_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"schema-registry = .*http://registry:8081"):
        SchemaRegistry(url)


def test_rows_that_no_registry_knows_come_again(registry: SchemaRegistryServer) -> None:
    table = Table("s", "t", (Column("id", "int", nullable=False),), key=(0,))
    change = RowChange(1, 1, table, "insert", None, (1,))
    encoder = make_encoder("avro", {"schema-registry": registry.url, "topic": "{table}.cdc"}, lambda: 0)
    registry.faults.append(503)
    with pytest.raises(Retryable):
        encoder.rows([change])
    [message] = encoder.rows([change])
    assert message.key == b"\0\0\0\0\1\2"
    assert set(registry.subjects) == {"t.cdc-key", "t.cdc-value"}


def test_a_new_column_that_readers_can_leave_out_is_compatible(registry: SchemaRegistryServer) -> None:
    old = Table("s", "t", (Column("id", "int", nullable=False),), key=(0,))
    encoder = make_encoder("avro", {"schema-registry": registry.url}, lambda: 0)
    encoder.rows([RowChange(1, 1, old, "insert", None, (1,))])
    new = Table("s", "t", (*old.columns, Column("v", "varchar", length=9)), key=(0,))
    encoder.rows([RowChange(2, 2, new, "insert", None, (1, "x"))])
    schemas = [json.loads(registry.schemas[number]) for number in registry.subjects["s_t-value"]]
    assert [len(schema["fields"]) for schema in schemas] == [1, 2]
    must = Table("s", "t", (*new.columns, Column("w", "int", nullable=False)), key=(0,))
    with pytest.raises(SinkError, match=r"s_t-value\.w: a new field has no default"):
        encoder.rows([RowChange(3, 3, must, "insert", None, (1, "x", 2))])
