"""One conformance suite: every encoder writes what the original wrote for the same events."""

from __future__ import annotations

import json
import re
from importlib import resources
from io import BytesIO
from typing import Any

import fastavro
import pytest

from tidemill.events import Transaction
from tidemill.sink.encoding.encoder import Encoder
from tidemill.sink.files.message_lines import message_lines

from .compared import differences, encoder, option_sets
from .recorded import NOW, Recorded, recorded, row_change

pytestmark = pytest.mark.usefixtures("decoder")

# --- canal-json


def unpacked(value: bytes) -> bytes:
    if value.startswith(b"{"):
        return value
    import pyarrow as pa

    if value.startswith(b"\x04\x22\x4d\x18"):
        return pa.input_stream(pa.BufferReader(value), compression="lz4").read()
    size = shift = at = 0
    while True:  # a varint says how long the Snappy block's content is
        size |= (value[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if value[at - 1] < 0x80:
            return pa.decompress(value, size, codec="snappy", asbytes=True)


def canal_form(key: bytes | None, value: bytes | None) -> Any:
    """Return a message without its time, the types of columns in order of their names."""
    text = re.sub(r'"ts":\d+', '"ts":0', unpacked(value or b"").decode())
    before, mark, rest = text.partition('"mysqlType":{')
    if not mark:
        return key, text
    types, _, after = rest.partition('},"old"')
    return key, before, sorted(json.loads("{" + types + "}").items()), after


def canal_known(one: Recorded) -> str:
    event = one.events[0]
    if "output-row-key" in one.options:
        return "the row's key in TiKV isn't part of a RowChange"
    if one.options.get("delete-only-output-handle-key-columns") and event.get("table") == "nokey":
        return "the original writes a delete without any column: refused"
    return ""


@pytest.mark.parametrize(("file", "encoding", "options"), option_sets("canal-json"))
def test_canal_json_is_what_ticdc_wrote(file: str, encoding: str, options: str) -> None:
    if encoding == "canal-json-file":
        assert lines_of_a_file(options) == []
        return

    def make(one: Recorded) -> Encoder:
        return encoder("canal-json", one)

    assert "\n".join(differences(file, encoding, options, make, canal_form, canal_known)) == ""


def lines_of_a_file(options: str) -> list[str]:
    """Return the recorded files that the lines of the file sink differ from, but for their ends."""
    found = []
    for one in recorded("canal-json"):
        if one.encoding == "canal-json-file" and json.dumps(one.options) == options and one.value is not None:
            given = {name: value for name, value in one.options.items() if name != "terminator"}
            lines = message_lines("canal-json", given | {"time-zone": one.time_zone}, lambda: NOW)
            rows = [row_change(event) for event in one.events]
            ours = b"".join(
                lines.of(Transaction(row.commit_ts, row.start_ts, "source", [row])) for row in rows
            )
            theirs = one.value.replace(one.options["terminator"].encode(), b"\n")
            if list(map(plain_line, ours.split(b"\n"))) != list(map(plain_line, theirs.split(b"\n"))):
                found.append(str(one))
    return found


def plain_line(line: bytes) -> Any:
    return canal_form(None, line) if line else line


# --- open-protocol


def open_form(key: bytes | None, value: bytes | None) -> Any:
    return key, value


def open_parts(data: bytes) -> list[bytes]:
    found = []
    while data:
        size = int.from_bytes(data[:8])
        found.append(data[8 : 8 + size])
        data = data[8 + size :]
    return found


def open_unpacked(key: bytes | None, value: bytes | None) -> Any:
    return key, [unpacked(part) if part else part for part in open_parts(value or b"")]


def becomes_null(event: dict[str, Any]) -> bool:
    if event["op"] != "update":
        return False
    return any(event["after"][name] is None and value is not None for name, value in event["before"].items())


def open_known(one: Recorded) -> str:
    if one.batched and one.options.get("max-batch-size"):
        return "one of several messages of a batch"
    if one.batched and "max-message-bytes" in one.options:
        return "the original's batches may be larger than max-message-bytes: ours are not"
    if one.options.get("only-output-updated-columns") and any(map(becomes_null, one.events)):
        return "the original loses the name of a column that became NULL"
    return ""


@pytest.mark.parametrize(("file", "encoding", "options"), option_sets("open"))
def test_open_protocol_is_what_ticdc_wrote(file: str, encoding: str, options: str) -> None:
    def make(one: Recorded) -> Encoder:
        return encoder("open-protocol", one)

    form = open_unpacked if "compression" in options else open_form
    assert "\n".join(differences(file, encoding, options, make, form, open_known)) == ""


# --- debezium


def debezium_form(key: bytes | None, value: bytes | None) -> Any:
    """Return a message without its time, and without the tables that a schema change results in."""
    text = re.sub(r'"ts_ms":\d+,"(transaction|databaseName)', r'"ts_ms":0,"\1', (value or b"").decode())
    return key, re.sub(r'"tableChanges":\[.*?\](}|}})((,"schema")|$)', r"\2", text)


def debezium_known(one: Recorded) -> str:
    event = one.events[0]
    if event.get("table") == "表-1" and "debezium-disable-schema" not in one.options:
        return "the original declares a virtual column, twice, that its rows don't have"
    if event.get("table") == "dflt" and "debezium-disable-schema" not in one.options:
        return "the original declares a default as a double that it is not"
    if event.get("table") == "dflt":
        return "the original writes a column's default instead of NULL"
    return ""


@pytest.mark.parametrize(("file", "encoding", "options"), option_sets("debezium"))
def test_debezium_is_what_ticdc_wrote(file: str, encoding: str, options: str) -> None:
    def make(one: Recorded) -> Encoder:
        return encoder("debezium", one, **{"refuse-inexact": False})

    assert "\n".join(differences(file, encoding, options, make, debezium_form, debezium_known)) == ""


# --- csv


def joined(key: bytes | None, value: bytes | None) -> Any:
    return key, (value or b"").decode()


def csv_known(one: Recorded) -> str:
    return "the lines of several messages in one" if one.batched else ""


@pytest.mark.parametrize(("file", "encoding", "options"), option_sets("csv"))
def test_csv_is_what_ticdc_wrote(file: str, encoding: str, options: str) -> None:
    def make(one: Recorded) -> Encoder:
        given = {name: value for name, value in one.options.items() if name != "output-handle-key"}
        return encoder("csv", one._replace(options=given), **{"refuse-inexact": False})

    assert "\n".join(differences(file, encoding, options, make, joined, csv_known)) == ""


# --- simple


def simple_form(key: bytes | None, value: bytes | None) -> Any:
    """Return a message without its time and, of a schema change, without the tables."""
    text = re.sub(r'"buildTs":\d+', '"buildTs":0', (value or b"").decode())
    return key, text if "BOOTSTRAP" in text else re.sub(r',"(tableSchema|preTableSchema)":.*', "}", text)


SIMPLE_SCHEMA = fastavro.parse_schema(
    json.loads(resources.files("tidemill.testing").joinpath("simple.avsc").read_text())
)


def simple_avro_form(key: bytes | None, value: bytes | None) -> Any:
    """Return a message as simple_form does; a map has no order."""
    assert value is not None
    stream = BytesIO(value[1:])  # the first byte is the branch of the schema that is a Message
    found = fastavro.schemaless_reader(stream, SIMPLE_SCHEMA, return_record_name=True)
    assert stream.read() == b""
    name, payload = found["payload"]
    payload["buildTs"] = 0
    if name == "DDL":
        payload["tableSchema"] = payload["preTableSchema"] = None
    return key, name, payload


def simple_known(one: Recorded) -> str:
    event = one.events[0]
    if "integrity" in one.options and event["op"] != "watermark":
        return "a row's checksum isn't part of a RowChange"
    if event["op"] == "bootstrap" and event["table"] == "表-1":
        return "no source delivers a virtual column"
    if event["op"] == "bootstrap" and "create_sql" not in event:
        return "a table without a definition in these files"
    return ""


@pytest.mark.parametrize(("file", "encoding", "options"), option_sets("simple"))
def test_simple_is_what_ticdc_wrote(file: str, encoding: str, options: str) -> None:
    def make(one: Recorded) -> Encoder:
        given = {name: value for name, value in one.options.items() if name != "integrity"}
        return encoder("simple", one._replace(options=given))

    form = simple_avro_form if '"avro"' in options else simple_form
    assert "\n".join(differences(file, encoding, options, make, form, simple_known)) == ""
