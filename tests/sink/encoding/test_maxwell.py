"""maxwell, against the examples of Maxwell's documentation."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from tidemill.events import (
    Column,
    CreateTable,
    Ddl,
    RowChange,
    Table,
    TruncateTable,
    compose_ts,
)
from tidemill.sink.encoding.encoder import NotEncodable
from tidemill.sink.encoding.encodings import make_encoder

pytestmark = pytest.mark.usefixtures("decoder")

E = Table(
    "test",
    "e",
    (
        Column("id", "int", nullable=False),
        Column("m", "double"),
        Column("c", "timestamp", scale=6, nullable=False),
        Column("comment", "varchar", length=255, charset="latin1"),
    ),
    key=(0, 2),
    charset="utf8mb4",
)
FIRST = (1, 4.2341, datetime(2016, 10, 21, 5, 33, 37, 523000, UTC), "I am a creature of light.")
SECOND = (1, 5.444, datetime(2016, 10, 21, 5, 33, 54, 631000, UTC), "I am a creature of light.")
TS = compose_ts(1477053217000)


def encode(*changes: RowChange, last: bool = True, **options: Any) -> list[tuple[Any, Any]]:
    messages = make_encoder("maxwell", options, lambda: 0).rows(changes, last)
    return [(json.loads(one.key or b"null"), json.loads(one.value or b"null")) for one in messages]


def test_an_insert_is_what_maxwell_documents() -> None:
    options = {"output-primary-keys": True, "output-primary-key-columns": True}
    [(key, value)] = encode(RowChange(TS, TS, E, "insert", None, FIRST), **options)
    assert key == {"database": "test", "table": "e", "pk.id": 1, "pk.c": "2016-10-21 05:33:37.523000"}
    assert value == {
        "database": "test",
        "table": "e",
        "type": "insert",
        "ts": 1477053217,
        "xid": TS,
        "commit": True,
        "primary_key": [1, "2016-10-21 05:33:37.523000"],
        "primary_key_columns": ["id", "c"],
        "data": {
            "id": 1,
            "m": 4.2341,
            "c": "2016-10-21 05:33:37.523000",
            "comment": "I am a creature of light.",
        },
    }


def test_an_update_has_the_old_values_that_changed() -> None:
    [(_, value)] = encode(RowChange(TS, TS, E, "update", FIRST, SECOND))
    assert value["old"] == {"m": 4.2341, "c": "2016-10-21 05:33:37.523000"}
    assert value["data"]["m"] == 5.444


def test_rows_of_a_transaction_are_counted_and_the_last_commits() -> None:
    encoder = make_encoder("maxwell", {}, lambda: 0)
    insert = RowChange(TS, TS, E, "insert", None, FIRST)
    messages = [*encoder.rows([insert, insert], last=False), *encoder.rows([insert])]
    values = [json.loads(message.value or b"") for message in messages]
    assert [(value.get("xoffset"), value.get("commit")) for value in values] == [
        (0, None), (1, None), (None, True),
    ]  # fmt: skip


def test_sets_are_arrays_decimals_and_json_keep_their_digits() -> None:
    table = Table(
        "test",
        "t",
        (
            Column("s", "set", members=("a", "b")),
            Column("d", "decimal", length=20, scale=2),
            Column("j", "json"),
            Column("b", "binary", length=2),
        ),
    )
    row = ("a,b", Decimal("12345678901234567.80"), '{"k": 1.50}', b"\xff\0")
    message = make_encoder("maxwell", {}, lambda: 0).rows([RowChange(TS, TS, table, "insert", None, row)])[0]
    assert message.value is not None
    assert message.value.endswith(
        b'"data":{"s":["a","b"],"d":12345678901234567.80,"j":{"k":1.50},"b":"/wA="}}'
    )
    assert b'"_uuid":' in (message.key or b"")


def test_a_created_table_is_what_maxwell_documents() -> None:
    ddl = Ddl(TS, TS, "source", "test", "e", "create table test.e ( ... )", (CreateTable(E),))
    [message] = make_encoder("maxwell", {"output_ddl": True}, lambda: 0).ddl(ddl)
    assert json.loads(message.value or b"") == {
        "type": "table-create",
        "database": "test",
        "table": "e",
        "def": {
            "database": "test",
            "charset": "utf8mb4",
            "table": "e",
            "columns": [
                {"type": "int", "name": "id", "signed": True},
                {"type": "double", "name": "m"},
                {"type": "timestamp", "name": "c", "column-length": 6},
                {"type": "varchar", "name": "comment", "charset": "latin1"},
            ],
            "primary-key": ["id", "c"],
        },
        "ts": 1477053217000,
        "sql": "create table test.e ( ... )",
    }


def test_a_truncated_table_is_refused() -> None:
    ddl = Ddl(TS, TS, "source", "test", "e", "TRUNCATE e", (TruncateTable(),))
    with pytest.raises(NotEncodable, match=r"maxwell can't represent table test\.e: .*TRUNCATE"):
        make_encoder("maxwell", {}, lambda: 0).ddl(ddl)
