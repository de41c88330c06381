"""The encoders alone, in rows per second of CPU, each beside another writer of the same messages.

That is `json.dumps` of dictionaries, which `json.loads` made of the encoder's keys and values; so it only
prints what the encoder also has to make. For csv it is `csv.writer` of the rows, which also turns values into
text; for Avro `fastavro` with the same schemas; for Canal the `protobuf` classes, filled from dictionaries.
"""

from __future__ import annotations

import csv
import io
import json
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from importlib import resources
from typing import Any, Final

from ..codec.proto import canal
from ..events import Row, RowChange
from ..sink.encoding.encoder import Message
from ..sink.encoding.encodings import make_encoder
from ..testing.schema_registry import SchemaRegistryServer, schema_registry
from .sink import TABLE

ENCODINGS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "canal-json": ("canal-json", {}),
    "canal-json with the extension": ("canal-json", {"enable-tidb-extension": True}),
    "open-protocol": ("open-protocol", {"max-batch-size": 1}),
    "debezium without schema": ("debezium", {"debezium-disable-schema": True}),
    "debezium": ("debezium", {}),
    "maxwell": ("maxwell", {}),
    "csv": ("csv", {}),
    "simple": ("simple", {}),
    "simple in Avro": ("simple", {"encoding-format": "avro"}),
    "canal-protobuf": ("canal-protobuf", {}),
    "avro": ("avro", {"topic": "avro"}),
    "debezium-avro": ("debezium-avro", {"topic": "debezium"}),
}
_MOMENT: Final = datetime(2026, 3, 1, 4, 5, 6)  # noqa: DTZ001 - a datetime column has no zone
_BATCH: Final = 1000
_SIMPLE: Final = resources.files("tidemill.testing").joinpath("simple.avsc").read_text()


def run(*, rows: int = 20_000, rounds: int = 5) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share; `ratio` is that of canal-json."""
    changes = changes_of(rows)
    figures: dict[str, Any] = {}
    with schema_registry() as registry:
        for name, (encoding, options) in ENCODINGS.items():
            given = options | {"schema-registry": registry.url} if "avro" in encoding else options
            ours, theirs, ratios = [], [], []
            for _ in range(rounds):
                spent, messages = _encode(encoding, given, changes)
                yardstick = _yardstick(name, messages, registry)
                ours.append(rows / spent)
                theirs.append(rows / yardstick)
                ratios.append(yardstick / spent)
            figures[name] = {
                "rows_per_second": round(statistics.median(ours)),
                "yardstick_rows_per_second": round(statistics.median(theirs)),
                "ratio": round(statistics.median(ratios), 2),
            }
    return {
        "bench": "encodings",
        "settings": {"rows": rows, "rounds": rounds, "columns": len(TABLE.columns)},
        "figures": figures,
        "yardstick": "json.dumps, fastavro or protobuf of the same dictionaries; csv.writer of the rows",
        "ratio": figures["canal-json"]["ratio"],
    }


def changes_of(rows: int) -> list[RowChange]:
    """Return inserts of this number of rows."""
    return [
        RowChange(
            448231984775593985,
            448231984775593984,
            TABLE,
            "insert",
            None,
            row,
        )
        for row in _values(rows)
    ]


def _values(rows: int) -> Iterator[Row]:
    for n in range(rows):
        yield n, n * 7_919, Decimal(n).scaleb(-2), n / 7, f"customer {n}", _MOMENT, n % 100, f"note {n} " * 4


def _encode(encoding: str, options: dict[str, Any], changes: list[RowChange]) -> tuple[float, list[Message]]:
    encoder = make_encoder(encoding, options, lambda: 1_700_000_000_000)
    encoder.rows(changes[:1])  # makes the table's form
    messages: list[Message] = []
    begun = time.process_time()
    for start in range(0, len(changes), _BATCH):
        messages += encoder.rows(changes[start : start + _BATCH])
    return time.process_time() - begun, messages


def _yardstick(name: str, messages: list[Message], registry: SchemaRegistryServer) -> float:
    """Return the seconds in which another writer makes these messages, of the same values."""
    if name == "simple in Avro":
        return _fastavro([(b"\0", _SIMPLE, message.value or b"") for message in messages])
    if "avro" in name:
        parts = [part for message in messages for part in (message.key, message.value) if part]
        schemas = {head: registry.schemas[int.from_bytes(head[1:])] for head in {part[:5] for part in parts}}
        return _fastavro([(part[:5], schemas[part[:5]], part) for part in parts])
    if name == "canal-protobuf":
        return _protobuf([message.value or b"" for message in messages])
    if name == "csv":
        rows = [("I", TABLE.name, TABLE.schema, *row) for row in _values(len(messages))]
        return _timed(lambda: _csv(rows))
    head = 8 if name == "open-protocol" else 0  # before a value, and twice before a key
    parts = [(message.key or b"")[head:] for message in messages]
    parts += [message.value or b"" for message in messages]
    documents = [json.loads(part[head:]) for part in parts if part]
    return _timed(lambda: [json.dumps(document, ensure_ascii=False).encode() for document in documents])


def _csv(rows: list[Row]) -> bytes:
    stream = io.StringIO(newline="")
    csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC).writerows(rows)
    return stream.getvalue().encode()


def _fastavro(parts: list[tuple[bytes, str, bytes]]) -> float:
    """Time records, given as their first bytes, their schema and all of their bytes."""
    from fastavro import parse_schema, schemaless_reader, schemaless_writer

    schemas = {text: parse_schema(json.loads(text)) for text in {text for _, text, _ in parts}}
    records = []
    for head, text, value in parts:
        found = schemaless_reader(
            io.BytesIO(value[len(head) :]), schemas[text], None, return_record_name=True
        )
        records.append((head, schemas[text], found))

    def write() -> None:
        for head, schema, record in records:
            stream = io.BytesIO()
            stream.write(head)
            schemaless_writer(stream, schema, record)
            stream.getvalue()

    return _timed(write)


def _protobuf(values: list[bytes]) -> float:
    from google.protobuf.json_format import MessageToDict

    messages = []
    for value in values:
        [entry] = canal.Messages.FromString(canal.Packet.FromString(value).body).messages
        found = canal.Entry.FromString(entry)
        change = canal.RowChange.FromString(found.storeValue)
        messages.append(
            (
                MessageToDict(found.header, use_integers_for_enums=True)
                | {"executeTime": found.header.executeTime},
                MessageToDict(change, use_integers_for_enums=True),
            )
        )

    def write() -> None:
        for header, change in messages:
            stored = canal.RowChange(**change).SerializeToString()
            entry = canal.Entry(header=header, entryType=canal.EntryType.ROWDATA, storeValue=stored)
            body = canal.Messages(messages=[entry.SerializeToString()]).SerializeToString()
            canal.Packet(type=canal.PacketType.MESSAGES, body=body).SerializeToString()

    return _timed(write)


def _timed(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun
