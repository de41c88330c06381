"""Merges into a catalog's table: what is noted there, and which statements are executed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import StructType

from tidemill.errors import CheckpointError, SourceError
from tidemill.events import AddColumn, ChangeColumn, Column, DropColumn, Item, TruncateTable
from tidemill.spark.read.schema import row_type
from tidemill.spark.tables import TypedTables, catalog, merge_into
from tidemill.testing.changes import insert, transaction

from .envelopes import envelope
from .test_alteration import ID, ITEM, LOAD, MORE, NOTE, TEXT, WIDER, ddl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


REAL = catalog.CopyTable


class Lake:
    """A table of a catalog that Spark doesn't have here: it keeps its columns, property and statements."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.columns = row_type(ITEM)
        self.noted: catalog.Merged | None = None
        self.executed: list[str] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def target(self, spark: SparkSession, name: str) -> Any:
        lake = self

        class Target(REAL):
            def schema(self) -> StructType:
                return lake.columns

            def merged(self) -> catalog.Merged | None:
                return lake.noted

            def note(self, merged: catalog.Merged) -> None:
                lake.noted = catalog.read_property(catalog.property_text(merged))

            def execute(self, statement: str) -> None:
                lake.execute(statement)

        return Target(spark, name)

    def execute(self, statement: str) -> None:
        self.spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)  # type: ignore[union-attr]
        self.executed.append("MERGE" if statement.startswith("MERGE") else statement)
        words = statement.split()
        names = [name.strip("(`)") for name in words]
        if "ADD" in words:
            self.columns = StructType([*self.columns, *row_type(WIDER).fields[-1:]])
        if "DROP" in words:
            self.columns = StructType([one for one in self.columns if one.name != names[-1]])
        self.meanwhile()

    def merge(self, batch: int, *items: Item) -> list[str]:
        self.executed.clear()
        merge_into(TypedTables(envelope(self.spark, items)).changes["shop.item"], "lake.item", batch=batch)
        return self.executed


@pytest.fixture
def lake(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Lake:
    made = Lake(spark)
    monkeypatch.setattr(catalog, "CopyTable", made.target)
    assert made.merge(0, LOAD) == ["MERGE"]
    return made


ROW = transaction(3, insert(ITEM, 3, "x"))
ADD = ddl(4, "ALTER TABLE item ADD COLUMN more INT NOT NULL DEFAULT 7", AddColumn(MORE))
WIDE_ROW = transaction(5, insert(WIDER, 4, "y", 9))
FILL = "UPDATE lake.item SET `more` = CAST('7' AS int) WHERE `more` IS NULL"


def test_an_added_column_is_filled_before_later_rows_are_merged(lake: Lake) -> None:
    add = "ALTER TABLE lake.item ADD COLUMNS (`more` int)"
    assert lake.merge(1, ROW, ADD, WIDE_ROW) == ["MERGE", add, FILL, "MERGE"]
    assert lake.merge(1, ROW, ADD, WIDE_ROW) == ["MERGE", FILL, "MERGE"]  # as when Spark repeats a batch
    assert lake.merge(2, transaction(6, insert(WIDER, 5, "z", 1))) == ["MERGE"]


def test_an_interrupted_batch_is_merged_again_from_its_beginning(lake: Lake) -> None:
    items = ROW, ddl(4, "ALTER TABLE item DROP COLUMN note", DropColumn("note")), ADD

    def interrupted() -> None:
        if lake.executed[-1] == FILL:
            raise InterruptedError

    lake.meanwhile = interrupted
    with pytest.raises(InterruptedError):
        lake.merge(1, *items)
    lake.meanwhile = lambda: None
    assert lake.merge(1, *items) == ["MERGE", FILL]
    assert lake.columns.names == ["id", "more"]


def test_a_truncate_deletes_the_rows_before_it(lake: Lake) -> None:
    truncate = ddl(4, "TRUNCATE TABLE item", TruncateTable())
    assert lake.merge(1, ROW, truncate, transaction(5, insert(ITEM, 9, "z"))) == [
        "MERGE",
        "DELETE FROM lake.item",
        "MERGE",
    ]


def test_an_older_batch_is_refused(lake: Lake) -> None:
    lake.merge(1, ROW)
    lake.merge(2, transaction(6, insert(ITEM, 3, "later")))
    for batch, items in ((1, ROW), (2, ROW), (0, LOAD)):
        with pytest.raises(
            CheckpointError, match=rf"has batch 2 already, and this is batch {batch} with other"
        ):
            lake.merge(batch, items)
        assert lake.executed == []


def test_a_driver_that_another_one_overtakes_fails(lake: Lake) -> None:
    def overtaken() -> None:
        lake.meanwhile = lambda: None
        lake.merge(2, transaction(6, insert(ITEM, 3, "later")))

    lake.meanwhile = overtaken
    with pytest.raises(CheckpointError, match="another driver merged into it at the same time as batch 1"):
        lake.merge(1, ROW)


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (ddl(4, "RENAME", ChangeColumn("note", TEXT.columns[1], NOTE)), "merge_into renames no column"),
        (
            ddl(4, "DROP", DropColumn("note"), AddColumn(NOTE)),
            "column note was dropped and added in one batch",
        ),
        (
            ddl(4, "ADD", AddColumn(Column("v", "varchar", length=36, default="uuid()"))),
            "only the source|can't be computed here",
        ),
    ],
)
def test_a_statement_that_can_not_be_merged_is_an_error_before_anything_is_written(
    lake: Lake, statement: Item, sentence: str
) -> None:
    with pytest.raises(SourceError, match=sentence):
        lake.merge(1, ROW, statement)
    assert lake.executed == []
    assert lake.noted is not None
    assert lake.noted.batch == 0


def test_a_table_with_other_columns_is_refused(lake: Lake) -> None:
    lake.columns = StructType([*row_type(ITEM), *row_type(WIDER).fields[-1:]])
    with pytest.raises(SourceError, match="has no values for more: give it the columns of the source"):
        lake.merge(1, ROW)
    lake.columns = StructType(row_type(ITEM).fields[:1])
    with pytest.raises(SourceError, match="lacks note: give it the columns of the source"):
        lake.merge(1, ROW)
    assert ID in ITEM.columns


def test_the_property_has_no_text_that_spark_redacts() -> None:
    table = ITEM.__class__("shop", "url", (Column("password", "int"),))
    merged = catalog.Merged(3, (1, 2, 3), "driver", table, table)
    text = catalog.property_text(merged)
    assert set(text) <= set("0123456789abcdef")
    assert catalog.read_property(text) == merged
