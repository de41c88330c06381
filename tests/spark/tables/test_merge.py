"""Changes merged into copies."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidemill.errors import CheckpointError, ConfigError, SourceError
from tidemill.events import Column, Item, RowChange, Table
from tidemill.spark.tables import TypedTables, last_changes, merge_parquet, merged_parquet, parquet
from tidemill.spark.tables.catalog import merge_statement
from tidemill.testing.changes import delete, insert, transaction, update

from .envelopes import envelope

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (Column("a", "int"), Column("b", "varchar", length=9), Column("note", "text"))
ITEM = Table("shop", "item", COLUMNS, (0, 1))
WIDER = Table("shop", "item", (Column("a", "bigint"), *COLUMNS[1:]), (0, 1))


def changes(spark: SparkSession, *items: Item) -> DataFrame:
    return TypedTables(envelope(spark, items))["shop.item"]


def test_each_key_has_its_last_change(spark: SparkSession) -> None:
    frame = changes(
        spark,
        transaction(
            3, insert(ITEM, 1, "x", "first"), insert(ITEM, 2, "x", "gone"), insert(ITEM, 3, "x", "moves")
        ),
        transaction(5, update(ITEM, (1, "x", "first"), (1, "x", None)), delete(ITEM, 2, "x", "gone")),
        transaction(5, update(ITEM, (3, "x", "moves"), (4, "x", "moved")), insert(ITEM, 3, "x", "again")),
        transaction(7, update(ITEM, (4, "x", "moved"), (5, "x", "moved"))),
        transaction(9, delete(ITEM, 6, "x", "old"), insert(ITEM, 6, "x", "new")),
    )
    found = {row.key.a: row.row and row.row.note for row in last_changes(frame, ["a", "b"]).collect()}
    assert found == {1: None, 2: None, 3: "again", 4: None, 5: "moved", 6: "new"}
    rows = {row.key.a: row.row is not None for row in last_changes(frame, ["a", "b"]).collect()}
    assert rows == {1: True, 2: False, 3: True, 4: False, 5: True, 6: True}


def rows_of(spark: SparkSession, path: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in merged_parquet(spark, str(path)).collect())


def test_a_parquet_copy_follows_inserts_updates_deletes_and_moved_keys(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "item"

    def merge(number: int, *rows: RowChange) -> None:
        frame = changes(spark, transaction(number + 3, *rows))
        merge_parquet(frame, str(path), key=["a", "b"], batch=number)

    merge(0, *[insert(ITEM, number, "x", f"note {number}") for number in range(4)])
    last = [
        update(ITEM, (0, "x", "note 0"), (0, "x", "later")),
        delete(ITEM, 1, "x", "note 1"),
        update(ITEM, (2, "x", "note 2"), (2, "y", "note 2")),
    ]
    merge(4, *last)
    wanted = [(0, "x", "later"), (2, "y", "note 2"), (3, "x", "note 3")]
    assert rows_of(spark, path) == wanted
    merge(4, *last)
    assert rows_of(spark, path) == wanted
    (path / "_version-4").unlink()  # killed before the end
    assert len(rows_of(spark, path)) == 4
    merge(4, *last)
    assert rows_of(spark, path) == wanted
    merge(5, insert(WIDER, 1 << 40, "x", None))
    assert rows_of(spark, path) == [*wanted, (1 << 40, "x", None)]
    names = sorted(one.name.partition(".")[0] for one in path.iterdir() if not one.name.startswith("."))
    assert names == ["_version-4", "_version-5", "version=4", "version=5"]
    merge(4, *last)
    assert rows_of(spark, path) == [*wanted, (1 << 40, "x", None)]
    with pytest.raises(CheckpointError, match="has batch 5 already, and this is batch 3 with other changes"):
        merge(3, *last)


def test_two_drivers_do_not_replace_each_others_versions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "item"

    def merge(number: int, name: str) -> None:
        frame = changes(
            spark, transaction(number + 3, insert(ITEM, number, name, None), insert(ITEM, 9, name, None))
        )
        merge_parquet(frame, str(path), key=["a", "b"], batch=number)

    def faster(number: int, name: str) -> None:
        """Let another driver merge a batch while one is about to complete its own."""
        complete = parquet._Folder.complete

        def second(folder: parquet._Folder, *args: Any) -> None:
            monkeypatch.setattr(parquet._Folder, "complete", complete)
            merge(number, name)
            complete(folder, *args)

        monkeypatch.setattr(parquet._Folder, "complete", second)

    merge(0, "first")
    faster(1, "one")
    merge(1, "one")  # the same batch: either has its result
    both = [(0, "first", None), (1, "one", None), (9, "first", None), (9, "one", None)]
    assert rows_of(spark, path) == both
    faster(2, "two")
    with pytest.raises(CheckpointError, match="has batch 2 already, and this is batch 3 with other changes"):
        merge(3, "three")
    faster(4, "four")
    with pytest.raises(CheckpointError, match="has batch 4 already, and this is batch 3 with other changes"):
        merge(3, "three")
    wanted = sorted([*both, (2, "two", None), (9, "two", None), (4, "four", None), (9, "four", None)])
    assert rows_of(spark, path) == wanted
    frame = changes(spark, transaction(90, insert(ITEM, 4, "other", None)))
    with pytest.raises(CheckpointError, match="has batch 4 already, and this is batch 4 with other changes"):
        merge_parquet(frame, str(path), key=["a", "b"], batch=4)
    assert rows_of(spark, path) == wanted


def merge_column(spark: SparkSession, path: Path, number: int, column: Column, value: Any) -> None:
    """Merge a row whose id is `number`, which is the batch, too."""
    table = Table("shop", "item", (Column("id", "int"), column), (0,))
    frame = changes(spark, transaction(number + 3, insert(table, number, value)))
    merge_parquet(frame, str(path), key=["id"], batch=number)


def test_a_key_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(
        "shop", "item", (Column("a.b", "int"), Column("c`d", "int"), Column("note", "text")), (0, 1)
    )
    path = str(tmp_path / "item")
    for number, rows in enumerate(
        ([insert(table, 1, 1, "a"), insert(table, 2, 2, "b")], [update(table, (1, 1, "a"), (1, 1, "later"))])
    ):
        frame = changes(spark, transaction(number + 3, *rows))
        merge_parquet(frame, path, key=["a.b", "c`d"], batch=number)
    assert rows_of(spark, tmp_path / "item") == [(1, 1, "later"), (2, 2, "b")]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (
            (Column("v", "int"), 1),
            (Column("v", "varchar", length=9), "007"),
        ),
        (
            (Column("v", "decimal", length=38, scale=2), Decimal("1.25")),
            (Column("v", "decimal", length=38, scale=10), Decimal("0.0000000001")),
        ),
        (
            (Column("v", "bigint"), (1 << 53) + 1),
            (Column("v", "double"), 0.5),
        ),
    ],
    ids=["text", "digits", "double"],
)
def test_a_copys_column_is_never_converted_with_a_loss(
    spark: SparkSession, tmp_path: Path, was: tuple[Column, Any], now: tuple[Column, Any]
) -> None:
    path = tmp_path / "item"
    merge_column(spark, path, 0, *was)
    with pytest.raises(
        SourceError, match=r"column v is .* in the copy and .*, which may have changed values"
    ):
        merge_column(spark, path, 1, *now)
    assert rows_of(spark, path) == [(0, was[1])]


def test_a_copys_column_becomes_wider(spark: SparkSession, tmp_path: Path) -> None:
    values = Decimal("12345.5"), Decimal("1.2345")
    for number, (digits, scale) in enumerate(((6, 1), (9, 4))):
        column = Column("v", "decimal", length=digits, scale=scale)
        merge_column(spark, tmp_path / "item", number, column, values[number])
    assert rows_of(spark, tmp_path / "item") == [*enumerate(values)]


def test_keys_that_do_not_exist_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = changes(spark, transaction(3, insert(ITEM, 1, "x", None)))
    with pytest.raises(ConfigError, match=r"key: it has no column id; give columns .* out of a, b, note"):
        merge_parquet(frame, str(tmp_path / "item"), key=["id"], batch=0)
    with pytest.raises(ConfigError, match="key: it is empty"):
        last_changes(frame, [])
    with pytest.raises(ConfigError, match="there is no copy by merge_parquet in it"):
        merged_parquet(spark, str(tmp_path / "item"))


def test_a_catalogs_table_is_merged_into_by_one_statement_that_spark_parses(spark: SparkSession) -> None:
    statement = merge_statement("lake.shop.item", "changes", ["a", "b`c"], ["a"])
    assert statement.splitlines() == [
        "MERGE INTO lake.shop.item t USING changes c ON t.`a` <=> c.key.`a`",
        "WHEN MATCHED AND c.row IS NULL THEN DELETE",
        "WHEN MATCHED THEN UPDATE SET t.`a` = c.row.`a`, t.`b``c` = c.row.`b``c`",
        "WHEN NOT MATCHED AND c.row IS NOT NULL THEN INSERT (`a`, `b``c`) VALUES (c.row.`a`, c.row.`b``c`)",
    ]
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)
    assert plan.nodeName() == "MergeIntoTable"
