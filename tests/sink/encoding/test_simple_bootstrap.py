"""Definitions in messages of the simple protocol, in JSON and in Avro."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemill.events import Column, CreateTable, Ddl, RowChange, Table
from tidemill.sink.encoding.definition import Definition, TableIndex
from tidemill.sink.encoding.encodings import make_encoder

from .recorded import NOW, recorded
from .test_recorded import simple_avro_form, simple_form

UTF8 = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}
T1 = Definition(
    Table(
        "ddl_a",
        "t1",
        (
            Column("id", "int", nullable=False),
            Column("name", "varchar", length=20, nullable=False, default="'n'", **UTF8),
            Column("d", "decimal", length=10, scale=2),
            Column("e", "enum", members=("a", "b"), **UTF8),
            Column("b", "bit", length=4, default="b'101'"),
            Column("ts", "timestamp", default="CURRENT_TIMESTAMP"),
            Column("bl", "blob", length=2),
        ),
        key=(0,),
    ),
    handle_key=(0,),
    indexes=(
        TableIndex("uk", (1,), unique=True),
        TableIndex("ix", (3,)),
        TableIndex("primary", (0,), unique=True, primary=True),
    ),
    table_id=132,
    version=470636998650757120,
)
T = Table("s", "t", (Column("id", "int", nullable=False),), key=(0,))
OTHER = Table("s", "other", (Column("id", "int", nullable=False),), key=(0,))


@pytest.mark.parametrize(("format_", "form"), [("json", simple_form), ("avro", simple_avro_form)])
def test_a_definition_is_what_ticdc_wrote(format_: str, form: Any) -> None:
    [one] = [
        one
        for one in recorded("simple")
        if one.options == {"encoding-format": format_}
        and one.events[0]["op"] == "bootstrap"
        and one.events[0]["table_version"] == T1.version
    ]
    encoder: Any = make_encoder("simple", {"encoding-format": format_}, lambda: NOW, lambda _: T1)
    [message] = encoder.bootstrap(T1.table)
    assert form(None, message.value) == form(None, one.value)


def kinds(encoder: Any, *tables: Table) -> list[str]:
    found = encoder.rows([RowChange(1, 1, table, "insert", None, (1,)) for table in tables])
    return [json.loads(message.value)["type"] for message in found]


def test_a_definition_comes_before_first_rows_and_again_after_the_options_rows() -> None:
    encoder = make_encoder("simple", {"send-bootstrap-in-msg-count": 2}, lambda: 0)
    assert kinds(encoder, T, T) == ["BOOTSTRAP", "INSERT", "INSERT"]
    assert kinds(encoder, OTHER) == ["BOOTSTRAP", "INSERT"]
    assert kinds(encoder, T) == ["BOOTSTRAP", "INSERT"]
    assert kinds(encoder, T) == ["INSERT"]


def test_a_definition_comes_again_after_the_options_seconds() -> None:
    now = [0]
    encoder = make_encoder("simple", {"send-bootstrap-interval-in-sec": 2}, lambda: now[0])
    found = []
    for now[0] in (0, 1999, 2000, 2001):
        found.append(len(kinds(encoder, T)))
    assert found == [2, 1, 2, 1]


def test_without_these_options_a_definition_comes_once_before_its_first_rows() -> None:
    encoder = make_encoder("simple", {}, lambda: 0)
    assert kinds(encoder, T, T) == ["BOOTSTRAP", "INSERT", "INSERT"]
    assert kinds(encoder, T) == ["INSERT"]


def test_without_these_options_a_statement_tells_the_definition() -> None:
    encoder = make_encoder("simple", {}, lambda: 0)
    encoder.ddl(Ddl(1, 1, "src", "s", "t", "CREATE TABLE t …", (CreateTable(T),)))
    assert kinds(encoder, T) == ["INSERT"]
