"""Schema changes of a micro-batch, merged into copies in their order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from tidemill.errors import ConfigError, SourceError
from tidemill.events import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeKey,
    Column,
    CreateTable,
    Ddl,
    DropColumn,
    DropTable,
    Item,
    RenameTables,
    Table,
    TruncateTable,
)
from tidemill.spark.read.schema import with_operations
from tidemill.spark.tables import TypedTables, merge_parquet, merged_parquet
from tidemill.testing.changes import delete, insert, transaction, update

from .envelopes import envelope

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID = Column("id", "int", nullable=False)
NOTE = Column("note", "varchar", length=10, charset="utf8mb4")
MORE = Column("more", "int", nullable=False, default="7")
ITEM = Table("shop", "item", (ID, NOTE), (0,))
WIDER = replace(ITEM, columns=(ID, NOTE, MORE))
TEXT = replace(ITEM, columns=(ID, replace(NOTE, name="text")))
LOAD = transaction(2, *[insert(ITEM, number, f"note {number}") for number in range(3)])
SOURCE = "mariadb server 7"


def ddl(ts: int, query: str, *actions: Action, reload: str = "", refusal: str = "") -> Ddl:
    return Ddl(ts, ts, SOURCE, "shop", "item", query, actions, f"log:{ts}", reload=reload, refusal=refusal)


def unread(ts: int, query: str) -> Ddl:
    """A statement whose effect depends on a definition that the stream doesn't know."""
    return ddl(ts, query, reload="table shop.item is loaded again: the table's definition isn't known")


class Copy:
    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark = spark
        self.path = str(path / "item")
        self.batch = -1

    def merge(self, *items: Item, key: list[str] | None = None) -> None:
        self.batch += 1
        changes = TypedTables(envelope(self.spark, items)).changes
        assert [*changes] == ["shop.item"]
        merge_parquet(changes["shop.item"], self.path, key=key, batch=self.batch)

    def rows(self) -> list[dict[str, Any]]:
        rows = [row.asDict() for row in merged_parquet(self.spark, self.path).collect()]
        return sorted(rows, key=lambda row: row["id"])


@pytest.fixture
def copy(spark: SparkSession, tmp_path: Path) -> Copy:
    made = Copy(spark, tmp_path)
    made.merge(LOAD)
    return made


def test_existing_rows_have_the_default_of_an_added_column(copy: Copy) -> None:
    copy.merge(
        transaction(3, update(ITEM, (0, "note 0"), (0, "before"))),
        ddl(4, "ALTER TABLE item ADD COLUMN more INT NOT NULL DEFAULT 7", AddColumn(MORE)),
        transaction(5, insert(WIDER, 3, "after", 9)),
    )
    assert copy.rows() == [
        {"id": 0, "note": "before", "more": 7},
        {"id": 1, "note": "note 1", "more": 7},
        {"id": 2, "note": "note 2", "more": 7},
        {"id": 3, "note": "after", "more": 9},
    ]


def test_a_schema_change_without_rows_is_merged_with_its_batch(copy: Copy) -> None:
    copy.merge(ddl(3, "ALTER TABLE item ADD COLUMN more INT NOT NULL DEFAULT 7", AddColumn(MORE)))
    assert [row["more"] for row in copy.rows()] == [7, 7, 7]
    copy.merge(ddl(4, "ALTER TABLE item DROP COLUMN more", DropColumn("more")))
    copy.merge(
        ddl(5, "ALTER TABLE item ADD COLUMN more INT DEFAULT 5", AddColumn(replace(MORE, default="5")))
    )
    copy.merge(transaction(6, insert(WIDER, 3, "x", 9)))
    assert [row["more"] for row in copy.rows()] == [5, 5, 5, 9]


DEFAULTS = [
    (Column("decimal", "decimal", length=6, scale=2, default="1.5"), "1.50"),
    (Column("text", "varchar", length=9, charset="utf8mb4", default="'it''s \\\\ ü'"), "it's \\ ü"),
    (Column("datetime", "datetime", scale=3, default="'2026-03-29 02:30:00.125'"), "2026-03-29 02:30:00.125"),
    (Column("timestamp", "timestamp", default="'2026-03-29 02:30:00'"), "2026-03-29 02:30:00"),
    (Column("date", "date", default="'2026-03-29'"), "2026-03-29"),
    (Column("double", "double", default="0.1"), "0.1"),
    (Column("big", "bigint", unsigned=True, default="18446744073709551615"), "18446744073709551615"),
    (Column("bytes", "varbinary", length=3, default="'abc'"), "abc"),
    (Column("time", "time", scale=1, default="'-01:00:00.5'"), "INTERVAL '-0 01:00:00.5' DAY TO SECOND"),
    (Column("none", "int"), None),
]


def test_a_default_is_the_value_of_its_column(copy: Copy) -> None:
    columns = [column for column, _ in DEFAULTS]
    copy.merge(ddl(3, "ALTER TABLE item ADD …", *map(AddColumn, columns)))
    frame = merged_parquet(copy.spark, copy.path)
    texts = [f"CAST({column.name} AS STRING) AS {column.name}" for column in columns]
    found = [row.asDict() for row in frame.selectExpr(*texts).collect()]
    assert found == [{column.name: text for column, text in DEFAULTS}] * 3
    table = replace(ITEM, columns=(ID, NOTE, *columns))
    copy.merge(transaction(4, insert(table, 3, "later", *[None] * len(columns))))
    assert frame.schema == merged_parquet(copy.spark, copy.path).schema


def test_a_renamed_column_keeps_its_values(copy: Copy) -> None:
    renamed = ChangeColumn("note", TEXT.columns[1], NOTE)
    copy.merge(
        transaction(3, update(ITEM, (0, "note 0"), (0, "before"))),
        ddl(4, "ALTER TABLE item RENAME COLUMN note TO text", renamed),
        transaction(5, insert(TEXT, 3, "after")),
    )
    assert copy.rows() == [
        {"id": 0, "text": "before"},
        {"id": 1, "text": "note 1"},
        {"id": 2, "text": "note 2"},
        {"id": 3, "text": "after"},
    ]


def test_a_truncated_table_has_only_later_rows(copy: Copy) -> None:
    copy.merge(
        transaction(3, insert(ITEM, 3, "before")),
        ddl(4, "TRUNCATE TABLE item", TruncateTable()),
        transaction(5, insert(ITEM, 4, "after")),
    )
    assert copy.rows() == [{"id": 4, "note": "after"}]
    copy.merge(ddl(6, "TRUNCATE TABLE item", TruncateTable()))
    assert copy.rows() == []


def test_a_statement_that_needs_the_definition_is_read_with_that_of_the_rows(copy: Copy) -> None:
    longer = replace(NOTE, length=40)
    statements = [
        ("ALTER TABLE item MODIFY note VARCHAR(40)", longer),
        ("ALTER TABLE item ALTER COLUMN note SET DEFAULT 'x'", longer),
        ("ALTER TABLE shop.item DROP INDEX gone", longer),
    ]
    wanted = [row["note"] for row in copy.rows()]
    for number, (query, column) in enumerate(statements, 3):
        wanted.append(str(number) * 10)
        row = insert(replace(ITEM, columns=(ID, column)), number, wanted[-1])
        copy.merge(unread(2 * number, query), transaction(2 * number + 1, row))
        assert [row["note"] for row in copy.rows()] == wanted


def test_a_wider_number_keeps_the_values(copy: Copy) -> None:
    wide = replace(ITEM, columns=(replace(ID, kind="bigint"), NOTE))
    copy.merge(
        unread(3, "ALTER TABLE item MODIFY id BIGINT NOT NULL"), transaction(4, insert(wide, 1 << 40, "x"))
    )
    assert [row["id"] for row in copy.rows()] == [0, 1, 2, 1 << 40]


def test_another_primary_key_identifies_later_rows(copy: Copy) -> None:
    other = replace(ITEM, key=(1,))
    change = ddl(4, "ALTER TABLE item DROP PRIMARY KEY, ADD PRIMARY KEY (note)", ChangeKey(("note",)))
    rows = transaction(5, update(other, (1, "note 1"), (2, "note 1")), delete(other, 2, "note 2"))
    copy.merge(transaction(3, delete(ITEM, 0, "note 0")), change, rows)
    assert copy.rows() == [{"id": 2, "note": "note 1"}]
    with pytest.raises(ConfigError, match="key: the table's primary key became id, so note may not identify"):
        copy.merge(ddl(6, "ALTER …", ChangeKey(("id",))), key=["note"])


REFUSED = {
    "shorter": (
        unread(3, "ALTER TABLE item MODIFY note VARCHAR(4)"),
        r"may not stay the same from varchar\(10\)",
    ),
    "number": (
        unread(3, "ALTER TABLE item MODIFY note INT"),
        r"may not stay the same from varchar\(10\) to int",
    ),
    "computed": (
        ddl(3, "ALTER TABLE item MODIFY note …", ChangeColumn("note", replace(NOTE, generated=True), NOTE)),
        "column note: only the source computes its values",
    ),
    "partition": (unread(3, "ALTER TABLE item DROP PARTITION p"), "what it does to the rows isn't known"),
    "expression": (
        ddl(3, "ALTER TABLE item ADD COLUMN v …", AddColumn(Column("v", "varchar", default="uuid()"))),
        r"column v: what DEFAULT uuid\(\) put into the existing rows can't be computed here",
    ),
    "replaced": (
        ddl(3, "CREATE OR REPLACE TABLE item (id INT)", CreateTable(ITEM, replaces=True)),
        "the copy keeps the table's name and rows",
    ),
    "replaced, unread": (unread(3, "CREATE OR REPLACE TABLE item LIKE other"), "what it does to the rows"),
    "dropped": (ddl(3, "DROP TABLE item", DropTable()), "the copy keeps the table's name and rows"),
    "renamed": (
        ddl(3, "RENAME TABLE item TO old", RenameTables(((("shop", "item"), ("shop", "item")),))),
        "the copy keeps the table's name and rows",
    ),
    "refused": (ddl(3, "DROP DATABASE shop", refusal="no"), "what it does to the rows isn't known"),
}


def test_a_statement_with_an_unknown_effect_is_an_error_before_anything_is_written(copy: Copy) -> None:
    before = copy.rows()
    way_on = r"nothing of this batch was merged into the copy: leave the table out in your function, load it"
    for kind, (statement, sentence) in REFUSED.items():
        with pytest.raises(SourceError) as found:
            copy.merge(transaction(2, insert(ITEM, 9, "x")), statement)
        assert re.search(rf"shop\.item was changed .*{sentence}.*; {way_on}", str(found.value)), kind
        assert copy.rows() == before, kind


@pytest.mark.parametrize(
    "statement",
    [
        ddl(3, "RENAME TABLE new TO item", RenameTables(((("shop", "new"), ("shop", "item")),))),
        unread(3, "ALTER TABLE item EXCHANGE PARTITION p WITH TABLE other"),
        unread(3, "FLASHBACK TABLE item"),
        ddl(3, "RECOVER TABLE item", refusal="no"),
    ],
)
def test_rows_that_come_from_elsewhere_are_an_error_without_a_copy(
    spark: SparkSession, tmp_path: Path, statement: Ddl
) -> None:
    changes = TypedTables(envelope(spark, [statement, transaction(4, insert(ITEM, 1, "x"))])).changes
    with pytest.raises(SourceError, match="there is no copy, and it may have put rows into the table"):
        merge_parquet(changes["shop.item"], f"{tmp_path}/item", batch=0)


def test_a_new_table_begins_with_its_first_rows(spark: SparkSession, tmp_path: Path) -> None:
    made = Copy(spark, tmp_path)
    made.merge(ddl(3, "CREATE TABLE item (id INT)", CreateTable(ITEM)))
    made.merge(unread(4, "ALTER TABLE item MODIFY note VARCHAR(10)"), transaction(5, insert(ITEM, 1, "x")))
    assert made.rows() == [{"id": 1, "note": "x"}]


def test_a_change_of_a_whole_schema_is_an_error(spark: SparkSession) -> None:
    dropped = replace(ddl(3, "DROP DATABASE shop", refusal="no"), table="")
    with pytest.raises(
        SourceError, match=r"schema shop was changed as a whole.*: DROP DATABASE shop; load them"
    ):
        _ = TypedTables(envelope(spark, [LOAD, dropped])).changes


def test_null_that_becomes_not_null_is_an_error_if_a_row_has_it(copy: Copy) -> None:
    required = replace(NOTE, nullable=False)
    statement = unread(4, "ALTER TABLE item MODIFY note VARCHAR(10) NOT NULL")
    copy.merge(statement)
    copy.merge(unread(5, "ALTER TABLE item MODIFY note VARCHAR(10)"), transaction(6, insert(ITEM, 5, None)))
    with pytest.raises(SourceError, match="column note: the value that replaced NULL isn't known"):
        copy.merge(replace(statement, commit_ts=7, start_ts=7))
    assert [row["note"] for row in copy.rows()][-1] is None
    assert required != NOTE


def test_columns_that_differ_without_a_statement_are_an_error(copy: Copy) -> None:
    before = copy.rows()
    with pytest.raises(
        SourceError, match="the copy has no column text, the rows have no column note, and no"
    ):
        copy.merge(transaction(3, insert(TEXT, 3, "renamed")))
    with pytest.raises(SourceError, match=r"column more was added, and no schema change among these changes"):
        copy.merge(transaction(3, insert(ITEM, 3, "x")), transaction(4, insert(WIDER, 4, "x", 9)))
    latin = replace(ITEM, columns=(ID, replace(NOTE, charset="latin1")))
    with pytest.raises(SourceError, match="column note has the character set latin1, and had utf8mb4"):
        copy.merge(transaction(3, insert(latin, 3, "x")))
    assert copy.rows() == before


def test_changes_without_schema_changes_can_not_be_merged(spark: SparkSession, tmp_path: Path) -> None:
    raw = envelope(spark, [LOAD])
    raw = spark.createDataFrame(raw.collect(), with_operations(raw.schema, ("insert", "update", "delete")))
    tables = TypedTables(raw)
    with pytest.raises(ConfigError, match="operations: without ddl a copy would miss a TRUNCATE or a RENAME"):
        _ = tables.changes
    with pytest.raises(ConfigError, match=r"read without schema changes.* leave the option operations out"):
        merge_parquet(tables["shop.item"], str(tmp_path / "item"), batch=0)


def test_frames_are_refused_where_rows_do_not_tell_what_changed(spark: SparkSession) -> None:
    tables = TypedTables(envelope(spark, [LOAD, ddl(3, "TRUNCATE TABLE item", TruncateTable())]))
    with pytest.raises(SourceError, match=r"shop\.item was changed .* don't tell: TRUNCATE TABLE item"):
        _ = tables["shop.item"]
