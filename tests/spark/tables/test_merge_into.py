"""Merges into Delta tables: schema changes, batches that are interrupted, repeated or come late."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from tidemill.errors import CheckpointError, ConfigError, SourceError
from tidemill.events import AddColumn, ChangeColumn, Column, DropColumn, Item, Table, TruncateTable
from tidemill.spark.tables import TableChanges, TypedTables, merge_into, side_by_side
from tidemill.spark.tables.delta_copy import DeltaCopy, Note
from tidemill.testing.changes import delete, insert, transaction, update

from .envelopes import envelope
from .test_alteration import ITEM, LOAD, MORE, NOTE, TEXT, WIDER, ddl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Copy:
    """A Delta table below a path, which is there or begins with the rows of LOAD as batch 0."""

    def __init__(self, spark: SparkSession, path: Path, more: str = "") -> None:
        self.spark = spark
        self.name = f"delta.`{path}`"
        if not path.exists():
            spark.sql(f"CREATE TABLE {self.name} (id INT, note STRING) USING delta {more}")
            self.merge(0, LOAD)

    def changes(self, *items: Item) -> TableChanges:
        return TypedTables(envelope(self.spark, items)).changes["shop.item"]

    def merge(self, batch: int, *items: Item) -> None:
        merge_into(self.changes(*items), self.name, batch=batch)

    def rows(self) -> list[dict[str, Any]]:
        return [row.asDict() for row in self.spark.table(self.name).orderBy("id").collect()]

    def commits(self) -> int:
        return int(self.spark.sql(f"DESCRIBE HISTORY {self.name}").count())


@pytest.fixture(scope="module")
def template(spark: SparkSession, delta_jars: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table at its beginning, which takes seconds to make; its paths are relative."""
    path = tmp_path_factory.mktemp("template") / "item"
    Copy(spark, path)
    return path


@pytest.fixture
def copy(spark: SparkSession, template: Path, tmp_path: Path) -> Copy:
    return Copy(spark, Path(shutil.copytree(template, tmp_path / "item")))


ROW = transaction(3, insert(ITEM, 3, "x"))
ADD = ddl(4, "ALTER TABLE item ADD COLUMN more INT NOT NULL DEFAULT 7", AddColumn(MORE))
WIDE_ROW = transaction(5, insert(WIDER, 4, "y", 9))


def test_schema_changes_have_the_effect_of_the_source(copy: Copy) -> None:
    before = copy.rows()
    copy.merge(1, ROW, ADD, WIDE_ROW)
    assert copy.rows() == [
        *[{**row, "more": 7} for row in before],
        {"id": 3, "note": "x", "more": 7},
        {"id": 4, "note": "y", "more": 9},
    ]
    commits = copy.commits()
    copy.merge(1, ROW, ADD, WIDE_ROW)  # as when Spark repeats a batch
    assert copy.commits() == commits
    drop = ddl(6, "ALTER TABLE item DROP COLUMN more", DropColumn("more"))
    rename = ddl(
        7, "ALTER TABLE item RENAME COLUMN note TO text", ChangeColumn("note", TEXT.columns[1], NOTE)
    )
    copy.merge(2, drop, rename, transaction(8, insert(TEXT, 5, "z")))
    assert copy.rows()[-1] == {"id": 5, "text": "z"}
    truncate = ddl(9, "TRUNCATE TABLE item", TruncateTable())
    copy.merge(3, transaction(8, delete(TEXT, 5, "z")), truncate, transaction(10, insert(TEXT, 6, "new")))
    assert copy.rows() == [{"id": 6, "text": "new"}]


def test_a_statement_without_effect_on_rows_is_noted(copy: Copy) -> None:
    wide = replace(NOTE, length=400)
    copy.merge(1, ddl(4, "ALTER TABLE item MODIFY note VARCHAR(400)", ChangeColumn("note", wide, NOTE)))
    last = DeltaCopy(copy.spark, copy.name).last()
    assert last is not None
    assert last.table is not None
    assert (last.batch, last.is_last, last.table.columns[1].length) == (1, True, 400)


def test_an_old_batch_that_comes_late_changes_nothing(copy: Copy) -> None:
    copy.merge(1, ROW)
    copy.merge(2, transaction(6, update(ITEM, (3, "x"), (3, "later"))))
    before, commits = copy.rows(), copy.commits()
    for batch, item in ((1, ROW), (2, ROW), (0, LOAD)):
        with pytest.raises(
            CheckpointError, match=rf"has batch 2 already, and this is batch {batch} with other changes"
        ):
            copy.merge(batch, item)
    assert (copy.rows(), copy.commits()) == (before, commits)


@pytest.mark.parametrize("is_late", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_a_driver_that_is_paused_in_a_batch_changes_nothing_when_it_goes_on(
    copy: Copy, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """Between its look at the copy and its commit, another driver merges this batch and a later one."""
    real: Callable[..., Any] = DeltaCopy.merge

    def paused(self: DeltaCopy, changes: Any, statement: Any, note: Note) -> None:
        monkeypatch.setattr(DeltaCopy, "merge", real)
        copy.merge(1, ROW, ADD, WIDE_ROW)
        if is_late:
            copy.merge(2, transaction(6, update(WIDER, (3, "x", 7), (3, "later", 7))))
        real(self, changes, statement, note)

    monkeypatch.setattr(DeltaCopy, "merge", paused)
    if is_late:
        with pytest.raises(CheckpointError, match="has batch 2 already, and this is batch 1"):
            copy.merge(1, ROW)
    else:
        copy.merge(1, ROW, ADD, WIDE_ROW)  # the same batch: it is there
    found = {row["id"]: row["note"] for row in copy.rows()}
    assert (found[3], found[4]) == ("later" if is_late else "x", "y")


def test_an_interrupted_batch_goes_on_where_it_was(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    items = ROW, ddl(4, "ALTER TABLE item DROP COLUMN note", DropColumn("note")), ADD

    def interrupted(*_: object) -> None:
        raise InterruptedError

    with monkeypatch.context() as patched:
        real = DeltaCopy.rewrite
        calls: list[int] = []

        def second(self: DeltaCopy, changed: Any, note: Note) -> None:
            calls.append(note.step)
            (interrupted if len(calls) == 2 else real)(self, changed, note)

        patched.setattr(DeltaCopy, "rewrite", second)
        with pytest.raises(InterruptedError):
            copy.merge(1, *items)
    assert list(copy.rows()[0]) == ["id"]
    copy.merge(1, *items)
    assert copy.rows()[-1] == {"id": 3, "more": 7}


def test_rows_survive_an_optimize_at_the_same_moment(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    copy.merge(1, ROW)
    real: Callable[..., Any] = DeltaCopy._numbered

    def optimized(self: DeltaCopy, note: Note) -> Any:
        monkeypatch.setattr(DeltaCopy, "_numbered", real)
        copy.spark.sql(f"OPTIMIZE {copy.name}").collect()
        return real(self, note)

    monkeypatch.setattr(DeltaCopy, "_numbered", optimized)
    copy.merge(2, transaction(6, update(ITEM, (3, "x"), (3, "later"))))
    assert copy.rows()[-1] == {"id": 3, "note": "later"}


def test_a_column_that_becomes_not_null_is_checked(copy: Copy) -> None:
    strict = replace(NOTE, nullable=False)
    change = ddl(4, "ALTER TABLE item MODIFY note VARCHAR(9) NOT NULL", ChangeColumn("note", strict, NOTE))
    copy.merge(1, change)
    copy.merge(2, transaction(5, insert(ITEM, 8, None)))
    with pytest.raises(SourceError, match="the value that replaced NULL isn't known"):
        copy.merge(3, ddl(6, change.query, ChangeColumn("note", strict, NOTE)))


@pytest.mark.parametrize(
    "statement",
    [
        ddl(4, "ADD", AddColumn(Column("v", "varchar", length=36, default="uuid()"))),
        ddl(4, "MODIFY", ChangeColumn("note", replace(NOTE, length=1), NOTE)),
    ],
)
def test_a_statement_that_can_not_be_merged_is_an_error_before_anything_is_written(
    copy: Copy, statement: Item
) -> None:
    before, commits = copy.rows(), copy.commits()
    with pytest.raises(SourceError, match="in a way that its copy can't follow"):
        copy.merge(1, ROW, statement)
    assert (copy.rows(), copy.commits()) == (before, commits)


def test_partitions_stay(spark: SparkSession, delta_jars: list[str], tmp_path: Path) -> None:
    copy = Copy(spark, tmp_path / "item", "PARTITIONED BY (note)")
    copy.merge(1, ROW, ADD, WIDE_ROW)
    detail = spark.sql(f"DESCRIBE DETAIL {copy.name}").collect()[0]
    assert detail.partitionColumns == ["note"]


def test_what_is_no_delta_table_is_said(spark: SparkSession, delta_jars: list[str], tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE plain (id INT) USING parquet LOCATION '{tmp_path}/plain'")
    try:
        with pytest.raises(ConfigError, match="plain is a table of parquet: merge_into takes Delta tables"):
            merge_into(TypedTables(envelope(spark, [ROW])).changes["shop.item"], "plain", batch=0)
    finally:
        spark.sql("DROP TABLE plain")


def test_tables_are_merged_side_by_side(spark: SparkSession, delta_jars: list[str], tmp_path: Path) -> None:
    tables = [Table("shop", name, ITEM.columns, (0,)) for name in ("a", "b", "c")]
    for table in tables[:2]:
        spark.sql(f"CREATE TABLE delta.`{tmp_path}/{table.full_name}` (id INT, note STRING) USING delta")
    items = [transaction(3, *[insert(table, 1, table.name) for table in tables])]
    changes = TypedTables(envelope(spark, items)).changes
    with pytest.raises(Exception, match=r"shop\.c"):
        side_by_side(
            changes, lambda found: merge_into(found, f"delta.`{tmp_path}/{found.name}`", batch=0), parallel=2
        )
    for table in tables[:2]:
        rows = spark.table(f"delta.`{tmp_path}/{table.full_name}`").collect()
        assert [tuple(row) for row in rows] == [(1, table.name)]
