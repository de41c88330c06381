"""Every encoding refuses what it can't represent, and names the table and the column."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tidemill.errors import ConfigError
from tidemill.events import Column, RowChange, Table
from tidemill.sink.encoding.encoder import NotEncodable
from tidemill.sink.encoding.encodings import ENCODINGS, make_encoder
from tidemill.testing.schema_registry import SchemaRegistryServer

pytestmark = pytest.mark.usefixtures("decoder")


def insert(column: Column, value: Any, key: tuple[int, ...] = ()) -> RowChange:
    return RowChange(1, 1, Table("s", "t", (column,), key), "insert", None, (value,))


def encode(encoding: str, change: RowChange, **options: Any) -> bytes:
    [message] = make_encoder(encoding, options, lambda: 0).rows([change])
    return message.value or b""


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_geometry_is_refused(encoding: str, registry: SchemaRegistryServer) -> None:
    given = {"schema_registry": registry.url} if "avro" in encoding else {}
    with pytest.raises(NotEncodable, match=rf"{encoding} can't represent column g of table s\.t: "):
        encode(encoding, insert(Column("g", "geometry"), b"\0" * 25), **given)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_message_beyond_the_limit_is_refused(encoding: str, registry: SchemaRegistryServer) -> None:
    given = {"schema_registry": registry.url} if "avro" in encoding else {}
    change = insert(Column("c", "varchar", length=999), "x" * 999)
    with pytest.raises(NotEncodable, match="max-message-bytes = 500"):
        encode(encoding, change, max_message_bytes=500, **given)


@pytest.mark.parametrize("encoding", ["canal-json", "open-protocol", "simple"])
def test_keys_alone_are_refused_for_a_table_without_a_key(encoding: str) -> None:
    change = insert(Column("c", "varchar", length=999), "x" * 999)
    options = {"max_message_bytes": 500, "large_message_handle_option": "handle-key-only"}
    if encoding == "canal-json":
        options["enable-tidb-extension"] = True
    with pytest.raises(NotEncodable, match="no key"):
        encode(encoding, change, **options)


@pytest.mark.parametrize("encoding", ["canal-json", "open-protocol"])
def test_keys_alone_of_a_delete_are_refused_for_a_table_without_a_key(encoding: str) -> None:
    change = RowChange(1, 1, Table("s", "t", (Column("c", "int"),)), "delete", (1,), None)
    with pytest.raises(NotEncodable, match="needs a key"):
        encode(encoding, change, **{"delete-only-output-handle-key-columns": True})


@pytest.mark.parametrize(
    ("column", "value", "option", "written"),
    [
        (
            Column("d", "decimal", length=20, scale=2),
            Decimal("12345678901234567.80"),
            "decimal-handling-mode",
            b'"12345678901234567.80"',
        ),
        (
            Column("u", "bigint", unsigned=True),
            2**63,
            "bigint-unsigned-handling-mode",
            b'"9223372036854775808"',
        ),
    ],
    ids=["decimal", "bigint unsigned"],
)
def test_debezium_refuses_inexact_numbers_and_writes_them_as_strings(
    column: Column, value: Any, option: str, written: bytes
) -> None:
    with pytest.raises(NotEncodable, match=option):
        encode("debezium", insert(column, value))
    assert written in encode("debezium", insert(column, value), **{option: "string"})


def test_debezium_refuses_a_zero_date() -> None:
    with pytest.raises(NotEncodable, match=r"column d of table s\.t: .*zero"):
        encode("debezium", insert(Column("d", "date"), "0000-00-00"))


def test_debezium_writes_null_for_a_column_with_a_default() -> None:
    value = encode("debezium", insert(Column("a", "int", default="7"), None), debezium_disable_schema=True)
    assert b'"after":{"a":null}' in value


def test_csv_without_quotes_refuses_text_that_reads_as_null() -> None:
    with pytest.raises(NotEncodable, match="null"):
        encode("csv", insert(Column("c", "varchar", length=9), "NULL"), quote="", null="NULL")


def test_an_unknown_encoding_and_option_are_refused_with_what_is_accepted() -> None:
    with pytest.raises(ConfigError, match="accepted: canal-json"):
        make_encoder("canal", {}, lambda: 0)
    with pytest.raises(ConfigError, match="did you mean 'enable-tidb-extension'"):
        make_encoder("canal-json", {"enable-tidb-extensions": True}, lambda: 0)
    with pytest.raises(ConfigError, match="time-zone"):
        make_encoder("csv", {"time-zone": "Mars/Olympus"}, lambda: 0)


def test_open_protocol_writes_the_name_of_a_column_that_became_null() -> None:
    table = Table("s", "t", (Column("a", "int", nullable=False), Column("b", "int")), key=(0,))
    change = RowChange(1, 1, table, "update", (1, 2), (1, None))
    value = encode("open-protocol", change, **{"only-output-updated-columns": True})
    assert value.endswith(b'"p":{"b":{"t":3,"f":65,"v":2}}}')


@pytest.mark.parametrize("encoding", ["avro", "debezium-avro"])
def test_avro_refuses_an_unsigned_number_that_is_no_long(
    encoding: str, registry: SchemaRegistryServer
) -> None:
    change = insert(Column("u", "bigint", unsigned=True), 2**63)
    given = {"schema_registry": registry.url}
    with pytest.raises(
        NotEncodable, match=rf"{encoding} can't .* column u .*avro-bigint-unsigned-handling-mode"
    ):
        encode(encoding, change, **given)
    registry.compatibility = "NONE"
    text = encode(encoding, change, **given, **{"avro-bigint-unsigned-handling-mode": "string"})
    assert b"9223372036854775808" in text


@pytest.mark.parametrize("encoding", ["avro", "debezium-avro"])
def test_avro_refuses_columns_that_get_the_same_name(encoding: str, registry: SchemaRegistryServer) -> None:
    table = Table("s", "t", (Column("a.b", "int"), Column("a_b", "int")))
    change = RowChange(1, 1, table, "insert", None, (1, 2))
    with pytest.raises(NotEncodable, match=r"column a_b .*name for it is a_b, as for column a\.b"):
        encode(encoding, change, schema_registry=registry.url)


def test_avro_refuses_a_deleted_row_that_nothing_names(registry: SchemaRegistryServer) -> None:
    change = RowChange(1, 1, Table("s", "t", (Column("c", "int"),)), "delete", (1,), None)
    with pytest.raises(NotEncodable, match=r"primary key only, .* avro-include-before-value = true"):
        encode("avro", change, schema_registry=registry.url)
    assert encode("avro", change, schema_registry=registry.url, avro_include_before_value=True)


@pytest.mark.parametrize("encoding", ["avro", "debezium", "debezium-avro"])
def test_an_invalid_enum_value_is_refused_if_it_reads_as_a_member(
    encoding: str, registry: SchemaRegistryServer
) -> None:
    given = {"schema_registry": registry.url} if "avro" in encoding else {}
    registry.compatibility = "NONE"
    assert encode(encoding, insert(Column("e", "enum", members=("a",)), ""), **given)
    change = insert(Column("e", "enum", members=("a", "")), "0")
    with pytest.raises(NotEncodable, match=r"column e .*invalid value"):
        encode(encoding, change, **given)
    assert encode(encoding, change, **given, refuse_inexact=False)


def test_a_default_of_a_time_is_declared(registry: SchemaRegistryServer) -> None:
    encode("avro", insert(Column("t", "time", default="'12:00:00'"), None), schema_registry=registry.url)
    assert '"default":"12:00:00"' in registry.schemas[1]


def test_debezium_avro_refuses_a_zero_date_in_its_own_name(registry: SchemaRegistryServer) -> None:
    with pytest.raises(NotEncodable, match=r"debezium-avro can't represent column d of table s\.t: .*zero"):
        encode("debezium-avro", insert(Column("d", "date"), "0000-00-00"), schema_registry=registry.url)


@pytest.mark.parametrize("encoding", ["canal-protobuf", "avro"])
def test_keys_alone_and_compression_are_refused_where_no_reader_knows_them(encoding: str) -> None:
    for name, value in (
        ("large-message-handle-option", "handle-key-only"),
        ("large-message-handle-compression", "lz4"),
    ):
        with pytest.raises(ConfigError, match=name):
            make_encoder(encoding, {name: value}, lambda: 0)
