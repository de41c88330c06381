"""Messages of schema changes with the tables before and after them, against those that TiCDC wrote."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import fastavro
import pytest
from msgspec.structs import replace

from tidemill.events import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeDetails,
    Column,
    ColumnDetails,
    CreateTable,
    Ddl,
    Details,
    DropColumn,
    DropTable,
    Index,
    RenameTables,
    RowChange,
    Table,
    TruncateTable,
)
from tidemill.sink.encoding.encodings import make_encoder

from .recorded import NOW, recorded
from .test_recorded import SIMPLE_SCHEMA

pytestmark = pytest.mark.usefixtures("decoder")

UTF8 = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}
ID = Column("id", "int", nullable=False)
NAME = Column("name", "varchar", length=20, nullable=False, default="'n'", **UTF8)
D = Column("d", "decimal", length=10, scale=2)
E = Column("e", "enum", members=("a", "b"), **UTF8)
B = Column("b", "bit", length=4, default="b'101'")
TS = Column("ts", "timestamp", default="CURRENT_TIMESTAMP", on_update="CURRENT_TIMESTAMP")
BL = Column("bl", "blob", length=2)
C2 = Column("c2", "bigint", unsigned=True)
C2_LATER = replace(C2, nullable=False, default="3")
X, Y, Z = (
    Column("x", "int"),
    Column("y", "varchar", length=5, **UTF8),
    Column("z", "varchar", length=9, **UTF8),
)
X_LATER = replace(X, default="4")
MADE = Details(columns=(ColumnDetails("id", auto_increment=True),))
INDEXED = replace(MADE, indexes=(Index("i2", ()),))
T1 = Table("ddl_a", "t1", (ID, NAME, D, E, B, TS, BL), (0,), **UTF8)
WITHOUT_D = replace(T1, columns=(ID, NAME, C2_LATER, E, B, TS, BL))
T2 = replace(T1, name="t2", columns=(*WITHOUT_D.columns, X_LATER, Z))
P1 = Table("ddl_a", "p1", (ID, Column("v", "int")), (0,), **UTF8)

STATEMENTS: list[tuple[str, str, tuple[Action, ...]]] = [
    ("create table t1", "t1", (CreateTable(T1), ChangeDetails(Details(), MADE, T1))),
    ("alter table t1 add column c2", "t1", (AddColumn(C2, "name"),)),
    ("alter table t1 modify column c2", "t1", (ChangeColumn("c2", C2_LATER, C2),)),
    ("alter table t1 drop column d", "t1", (DropColumn("d"),)),
    ("alter table t1 add index i2", "t1", (ChangeDetails(MADE, INDEXED, WITHOUT_D),)),
    ("alter table t1 drop index i2", "t1", (ChangeDetails(INDEXED, MADE, WITHOUT_D),)),
    ("alter table t1 add column (x", "t1", (AddColumn(X), AddColumn(Y))),
    ("alter table t1 alter column x", "t1", (ChangeColumn("x", X_LATER, X),)),
    ("rename table t1", "t1", (RenameTables(((("ddl_a", "t1"), ("ddl_a", "t2")),)),)),
    ("truncate table t2", "t2", (TruncateTable(),)),
    ("alter table t2 change column y z", "t2", (ChangeColumn("y", Z, Y), ChangeDetails(MADE, MADE, T2))),
    ("alter table t2 comment 'new'", "t2", (ChangeDetails(MADE, replace(MADE, comment="new"), T2),)),
    ("create table p1", "p1", (CreateTable(P1),)),
    ("drop table p1", "p1", (DropTable(),)),
]
"""Statements by how they begin, with their effects as a source delivers them."""


def statements() -> Iterator[Ddl]:
    """Yield the recorded statements, in order."""
    events = [one.events[0] for one in recorded("simple") if one.events[0]["op"] == "ddl"]
    for start, table, actions in STATEMENTS:
        event = next(event for event in events if event["query"].startswith(start))
        yield Ddl(event["commit_ts"], event["start_ts"], "src", "ddl_a", table, event["query"], actions)


def messages(file: str, **options: Any) -> dict[str, Any]:
    """Return the recorded messages with these options, by the statement."""
    return {
        one.events[0]["query"]: one
        for one in recorded(file)
        if one.options == options and one.events[0]["op"] == "ddl"
    }


def payload(value: bytes) -> Any:
    found = json.loads(value)["payload"]
    return found | {"ts_ms": 0}


def test_the_tables_of_debezium_are_those_that_ticdc_wrote() -> None:
    theirs = messages("debezium", **{"debezium-disable-schema": True})
    encoder = make_encoder("debezium", {"debezium-disable-schema": True}, lambda: NOW)
    for ddl in statements():
        [message] = encoder.ddl(ddl)
        assert payload(message.value or b"") == payload(theirs[ddl.query].value), ddl.query


def columns_only(schema: Any) -> Any:
    """Return a table's schema without its numbers and its indexes, of which only the primary key is known."""
    unknown = ("tableID", "version", "indexes")
    return schema and {name: value for name, value in schema.items() if name not in unknown}


@pytest.mark.parametrize("form", ["json", "avro"])
def test_the_tables_of_simple_are_those_that_ticdc_wrote(form: str) -> None:
    def read(value: bytes) -> Any:
        if form == "json":
            found = json.loads(value)
        else:
            found = fastavro.schemaless_reader(io.BytesIO(value[1:]), SIMPLE_SCHEMA)["payload"]
        tables = {name: columns_only(found.get(name)) for name in ("tableSchema", "preTableSchema")}
        return found | {"buildTs": 0} | tables

    theirs = messages("simple", **{"encoding-format": form})
    encoder = make_encoder("simple", {"encoding-format": form}, lambda: NOW)
    for ddl in statements():
        [message] = encoder.ddl(ddl)
        assert read(message.value or b"") == read(theirs[ddl.query].value), ddl.query


OLD = Table("s", "t", (ID, Column("note", "varchar", length=10)), key=(0,))
NEW = replace(OLD, columns=(*OLD.columns, Column("paid", "int", default="7")))


def row(table: Table) -> RowChange:
    return RowChange(1, 1, table, "insert", None, (1, *[None] * (len(table.columns) - 1)))


def alter(*actions: Action) -> Ddl:
    return Ddl(2, 2, "src", "s", "t", "ALTER TABLE t …", actions)


def test_rows_and_definitions_of_simple_have_the_numbers_of_their_table() -> None:
    def rows(encoder: Any, table: Table) -> tuple[Any, Any]:
        definition, one = [json.loads(message.value) for message in encoder.rows([row(table)])]
        schema = definition["tableSchema"]
        assert (schema["tableID"], schema["version"]) == (one["tableID"], one["schemaVersion"])
        return one["tableID"], one["schemaVersion"]

    options = {"send-bootstrap-in-msg-count": 1000}
    encoder, other = (make_encoder("simple", options, lambda: 0) for _ in range(2))
    before = rows(encoder, OLD)
    [statement] = [json.loads(message.value) for message in encoder.ddl(alter(AddColumn(NEW.columns[2])))]
    assert statement["preTableSchema"]["version"] == before[1]
    after = rows(encoder, NEW)
    assert statement["tableSchema"]["version"] == after[1]
    assert before[0] == after[0] == statement["tableSchema"]["tableID"]
    assert before[1] != after[1]
    assert 0 not in (*before, *after)
    assert rows(other, NEW) == after  # as after a restart
    assert rows(other, replace(OLD, name="u"))[0] != before[0]


def test_a_statement_on_a_table_that_is_not_known_has_no_definition_but_its_rows_have() -> None:
    encoder: Any = make_encoder("simple", {}, lambda: 0)
    [statement] = [json.loads(message.value) for message in encoder.ddl(alter(AddColumn(NEW.columns[2])))]
    assert not {"tableSchema", "preTableSchema"} & statement.keys()
    assert [json.loads(message.value)["type"] for message in encoder.rows([row(NEW)])] == [
        "BOOTSTRAP",
        "INSERT",
    ]


def test_a_statement_that_is_encoded_again_has_the_same_message() -> None:
    encoder: Any = make_encoder("simple", {}, lambda: 0)
    encoder.rows([row(OLD)])
    ddl = alter(AddColumn(NEW.columns[2]))
    assert encoder.ddl(ddl) == encoder.ddl(ddl)


def debezium_columns(*columns: Column, told: bool = True) -> list[dict[str, Any]]:
    """Return columns after a statement that does, or doesn't, define them."""
    encoder: Any = make_encoder("debezium", {"debezium-disable-schema": True}, lambda: 0)
    table = Table("s", "t", columns)
    if told:
        ddl = Ddl(1, 1, "src", "s", "t", "CREATE TABLE t …", (CreateTable(table),))
    else:
        encoder.rows([RowChange(1, 1, table, "delete", (None,) * len(columns), None)])
        ddl = alter(AddColumn(Column("more", "int")))
    [message] = encoder.ddl(ddl)
    [change] = json.loads(message.value)["payload"]["tableChanges"]
    found: list[dict[str, Any]] = change["table"]["columns"]
    return found[: len(columns)]


@pytest.mark.parametrize(
    ("column", "jdbc", "name", "expression", "length", "scale"),
    [
        (Column("c", "tinyint", width=1), 5, "TINYINT", "TINYINT", 1, None),
        (Column("c", "tinyint"), 5, "TINYINT", "TINYINT", None, None),
        (Column("c", "int", unsigned=True), 4, "INT UNSIGNED", "INT UNSIGNED", None, None),
        (
            Column("c", "tinyint", unsigned=True, zerofill=True),
            5, "TINYINT UNSIGNED ZEROFILL", "TINYINT UNSIGNED ZEROFILL", 3, None,
        ),
        (Column("c", "int", width=5), 4, "INT", "INT", 5, None),
        (Column("c", "bigint", unsigned=True), -5, "BIGINT UNSIGNED", "BIGINT UNSIGNED", None, None),
        (Column("c", "decimal", unsigned=True, length=9, scale=2), 3, "DECIMAL", "DECIMAL", 9, 2),
        (Column("c", "float"), 6, "FLOAT", "FLOAT", None, None),
        (Column("c", "float", length=7, scale=3), 6, "FLOAT", "FLOAT", 7, 3),
        (Column("c", "double", length=12, scale=4), 8, "DOUBLE", "DOUBLE(12,4)", 12, 4),
        (Column("c", "vector", length=2), 12, "VECTOR", "VECTOR(2)", 2, None),
        (Column("c", "vector"), 12, "VECTOR", "VECTOR", None, None),
        (Column("c", "timestamp", scale=3), 2014, "TIMESTAMP", "TIMESTAMP", 3, None),
        (Column("c", "timestamp"), 2014, "TIMESTAMP", "TIMESTAMP", None, None),
        (Column("c", "datetime", scale=6), 93, "DATETIME", "DATETIME", 6, None),
        (Column("c", "json"), 1111, "JSON", "JSON", None, None),
        (Column("c", "text", length=3), 12, "MEDIUMTEXT", "MEDIUMTEXT", None, None),
        (Column("c", "blob", length=2), 2004, "BLOB", "BLOB", None, None),
        (Column("c", "binary", length=4), -2, "BINARY", "BINARY", 4, None),
        (Column("c", "varbinary", length=4), -3, "VARBINARY", "VARBINARY", 4, None),
        (Column("c", "char", length=4), -15, "CHAR", "CHAR", 4, None),
        (Column("c", "bit", length=1), -7, "BIT", "BIT", None, None),
        (Column("c", "set", members=("a", "b", "c")), 1, "SET", "SET", 5, None),
        (Column("c", "year"), 4, "YEAR", "YEAR", None, None),
    ],
)  # fmt: skip
def test_debezium_names_types_as_ticdc_does(
    column: Column, jdbc: int, name: str, expression: str, length: int | None, scale: int | None
) -> None:
    [found] = debezium_columns(column)
    types = (found["jdbcType"], found["typeName"], found["typeExpression"], found["length"], found["scale"])
    assert types == (jdbc, name, expression, length, scale)


def test_debezium_writes_usual_lengths_of_times_that_a_statement_does_not_define() -> None:
    columns = Column("a", "timestamp"), Column("b", "year"), Column("c", "time", scale=2)
    assert [one["length"] for one in debezium_columns(*columns, told=False)] == [0, 4, 2]


def test_debezium_writes_defaults_as_ticdc_does() -> None:
    columns = (
        Column("a", "timestamp", default="CURRENT_TIMESTAMP(3)", scale=3),
        Column("b", "timestamp", default="'2024-01-02 03:04:05'"),
        Column("c", "bit", length=8, default="b'101'"),
        Column("d", "bit", length=12, default="b'101'"),
        Column("e", "decimal", length=5, scale=2, default="1.50"),
        Column("f", "varbinary", length=5, default="x'6162'"),
        Column("g", "time", default="'01:02:03'"),
        Column("h", "int", default="(1 + 1)"),
        Column("i", "varchar", length=9, default="'it''s'"),
    )
    assert [one["defaultValueExpression"] for one in debezium_columns(*columns)] == [
        "1970-01-01 00:00:00", "2024-01-02 03:04:05", "101", "000000000101", "1.50", "ab", "01:02:03", None,
        "it's",
    ]  # fmt: skip


def test_a_timestamp_of_the_repeated_hour_is_exact() -> None:
    table = Table("s", "t", (ID, Column("at", "timestamp")), (0,))
    options = {"time-zone": "Europe/Berlin", "debezium-disable-schema": True}
    encoder = make_encoder("debezium", options, lambda: 0)
    hours = [datetime(2024, 10, 27, hour, 30, tzinfo=UTC) for hour in (0, 1)]  # both are 02:30 there
    found = encoder.rows([RowChange(1, 1, table, "insert", None, (1, hour)) for hour in hours])
    assert [json.loads(message.value or b"")["payload"]["after"]["at"] for message in found] == [
        "2024-10-27T00:30:00Z",
        "2024-10-27T01:30:00Z",
    ]
