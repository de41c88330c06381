"""The encoders alone, in rows per second, each beside `json.dumps` of the same messages as dictionaries.

A message of the yardstick is what the encoder wrote, read back by `json.loads`; so the yardstick only prints
what the encoder also has to make. csv's yardstick is `csv.writer` of the same fields, Avro's is `fastavro`
with the same schemas, and Canal's is the `protobuf` classes filled from the same dictionaries.
"""

from __future__ import annotations

import csv
import io
import json
import statistics
import time
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from ..codec.proto import canal
from ..events import RowChange
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
    "canal-protobuf": ("canal-protobuf", {}),
    "avro": ("avro", {"topic": "avro"}),
    "debezium-avro": ("debezium-avro", {"topic": "debezium"}),
}
_MOMENT: Final = datetime(2026, 3, 1, 4, 5, 6)  # noqa: DTZ001 - a datetime column has no zone
_BATCH: Final = 1000


def run(*, rows: int = 50_000, rounds: int = 3) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share; `ratio` is that of canal-json."""
    changes = changes_of(rows)
    figures: dict[str, Any] = {}
    with schema_registry() as registry:
        for name, (encoding, options) in ENCODINGS.items():
            given = options | {"schema-registry": registry.url} if "avro" in encoding else options
            ours, theirs, ratios = [], [], []
            for _ in range(rounds):
                spent, values = _encode(encoding, given, changes)
                yardstick = _yardstick(encoding, values, registry)
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
        "yardstick": "json.dumps, fastavro or protobuf of the same dictionaries; csv.writer of the fields",
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
            (n, n * 7_919, Decimal(n) / 100, n / 7, f"customer {n}", _MOMENT, n % 100, f"note {n} " * 4),
        )
        for n in range(rows)
    ]


def _encode(encoding: str, options: dict[str, Any], changes: list[RowChange]) -> tuple[float, list[bytes]]:
    encoder = make_encoder(encoding, options, lambda: 1_700_000_000_000)
    encoder.rows(changes[:1])  # makes the table's code
    values: list[bytes] = []
    begun = time.perf_counter()
    for start in range(0, len(changes), _BATCH):
        values += [message.value or b"" for message in encoder.rows(changes[start : start + _BATCH])]
    return time.perf_counter() - begun, values


def _yardstick(encoding: str, values: list[bytes], registry: SchemaRegistryServer) -> float:
    if "avro" in encoding:
        return _fastavro(values, registry)
    if encoding == "canal-protobuf":
        return _protobuf(values)
    if encoding == "csv":
        fields = list(csv.reader(io.StringIO(b"".join(values).decode(), newline="")))
        return _timed(lambda: csv.writer(io.StringIO(newline="")).writerows(fields))
    head = 8 if encoding == "open-protocol" else 0
    messages = [json.loads(value[head:]) for value in values]
    return _timed(lambda: [json.dumps(message, ensure_ascii=False).encode() for message in messages])


def _fastavro(values: list[bytes], registry: SchemaRegistryServer) -> float:
    from fastavro import parse_schema, schemaless_reader, schemaless_writer

    head = values[0][:5]
    schema = parse_schema(json.loads(registry.schemas[int.from_bytes(head[1:])]))
    messages = [schemaless_reader(io.BytesIO(value[5:]), schema, None) for value in values]

    def write() -> None:
        for message in messages:
            stream = io.BytesIO()
            stream.write(head)
            schemaless_writer(stream, schema, message)
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
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
