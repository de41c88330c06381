"""Rows that are encoded together give the same messages as one by one."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from tidemill.events import RowChange
from tidemill.sink.encoding.encodings import make_encoder
from tidemill.testing.schema_registry import SchemaRegistryServer

from .recorded import NOW, definition_of_table, recorded, row_change

pytestmark = pytest.mark.usefixtures("decoder")

OPTIONS: dict[str, dict[str, Any]] = {
    "avro": {"enable-tidb-extension": True, "avro-include-before-value": True},
    "canal-json": {"enable-tidb-extension": True},
    "canal-protobuf": {"max-batch-size": 1},
    "csv": {"include-commit-ts": True, "output-old-value": True},
    "debezium": {"debezium-include-start-ts": True},
    "debezium-avro": {"avro-bigint-unsigned-handling-mode": "string"},
    "maxwell": {"output-commit-info": False, "output-primary-keys": True},
    "open-protocol": {"max-batch-size": 1},
    "simple": {},
    "simple in Avro": {"encoding-format": "avro"},
}


def changes() -> list[RowChange]:
    """Return changes of several tables and operations, with NULLs, that share transactions."""
    events = [event for one in recorded("simple") for event in one.events]
    rows = {
        str(event): row_change(event) for event in events if event["op"] in ("insert", "update", "delete")
    }
    found = []
    for number in range(3):
        ts = (448_231_984 + number) << 18
        found += [replace(row, commit_ts=ts, start_ts=ts - 1) for row in rows.values() if row.table.key]
    random.Random(5).shuffle(found)
    return sorted(found, key=lambda row: row.commit_ts)


@pytest.mark.parametrize("name", OPTIONS)
def test_rows_together_are_the_same_as_one_by_one(name: str, registry: SchemaRegistryServer) -> None:
    options = dict(OPTIONS[name])
    if name in ("avro", "debezium", "debezium-avro", "csv"):
        options["refuse-inexact"] = False
    if name in ("avro", "debezium-avro"):
        options["schema-registry"] = registry.url
    encoder = make_encoder(name.partition(" ")[0], options, lambda: NOW, definition_of_table)
    rows = changes()
    if name == "maxwell":
        rows = [row for row in rows if all(column.kind != "vector" for column in row.table.columns)]
    assert len({row.table for row in rows}) > 1
    together = [message for message in encoder.rows(rows) if message.rows]
    assert together == [message for row in rows for message in encoder.rows([row])]
