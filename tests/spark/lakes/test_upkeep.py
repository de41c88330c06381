"""A lake is analyzed and kept while its feed writes: each change stays there once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from msgspec.structs import replace

from tidemill.errors import ConfigError, SinkError
from tidemill.events import Batch, Checkpoint, Column, Item, Table
from tidemill.sink import Sink, open_sink
from tidemill.sink.files.lakes.delta_table import Delta
from tidemill.sink.files.lakes.layout import LakeLayout
from tidemill.spark.lakes import (
    Lake,
    LakePlan,
    LakeReport,
    analyze_lake,
    carry_out,
    decode_lake_plan,
    encode_lake_plan,
)
from tidemill.spark.lakes.page import lake_page
from tidemill.spark.lakes.plan import plan_of
from tidemill.testing.changes import MemoryStore, insert, transaction, update

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ITEM = Table("shop", "item", (Column("id", "int"), Column("note", "varchar", length=40)), (0,))
WRITER = "tidemill/f/copy"
AGES = 1_000_000.0
"""Seconds since 1970: long ago."""


class Fed:
    """A lake whose feed runs in this process."""

    def __init__(self, directory: Path) -> None:
        self.url = f"delta://{directory}"
        self.directory = directory
        self.sink = self.opened()
        self.ts = 0
        self.commits = 0

    def opened(self) -> Sink:
        options = {"flush_seconds": 0, "journal_seconds": 0}
        sink = open_sink("copy", self.url, feed="f", store=MemoryStore(), options=options)
        sink.open()
        return sink

    def commit(self, *rows: Any) -> None:
        self.ts += 10
        item: Item = transaction(self.ts, *rows)
        self.sink.write(Batch([item], Checkpoint(self.ts, "", None, "somewhere")))
        self.sink.flush()
        self.commits += 1

    def run(self, commits: int) -> None:
        for _ in range(commits):
            number = self.commits + 1
            self.commit(insert(ITEM, number, f"note {number}"), update(ITEM, (0, "x"), (0, "x")))

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.directory / "shop.item")

    def check(self) -> None:
        """Each change is there once, in all ways to read it; the log has the feed's last commit."""
        changes = self.table.to_pyarrow_table().to_pylist()
        keys = [(one["commit_ts"], one["sequence"]) for one in changes]
        assert len({*keys}) == len(keys)
        inserted = sorted(one["after"]["id"] for one in changes if one["op"] == "insert")
        assert inserted == list(range(1, self.commits + 1))
        import pyarrow.dataset as ds

        wanted = (ds.field("op") == "insert") & (ds.field("snapshot") == ds.scalar(False))
        assert self.table.to_pyarrow_dataset().to_table(filter=wanted).num_rows == len(inserted)
        assert self.table.transaction_version(WRITER) == self.commits


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Fed]:
    made = Fed(tmp_path / "lake")
    yield made
    made.sink.close()


def kept(
    spark: SparkSession, fed: Fed, hours: int = 168
) -> tuple[LakeReport, LakePlan, LakeReport, list[str]]:
    """Return the report, its plan, the report after it, and what wasn't done."""
    lake = Lake(fed.url)
    before = analyze_lake(spark, lake, hours)
    plan = decode_lake_plan(encode_lake_plan(plan_of(before)), "plan")
    left = [one.left for one in carry_out(spark, lake, plan) if one.left]
    return before, plan, analyze_lake(spark, lake, hours), left


def actions(plan: LakePlan, folder: str = "shop.item") -> list[str]:
    return [step.action for step in plan.steps if step.folder == folder]


def test_small_files_are_joined_beside_the_feed(spark: SparkSession, delta_jars: list[str], fed: Fed) -> None:
    fed.run(24)
    before, plan, after, left = kept(spark, fed)
    assert left == []
    assert actions(plan) == ["sort", "checkpoint"]
    was, is_now = (
        next(one for one in report.tables if one.name == "shop.item") for report in (before, after)
    )
    assert (was.kind, was.files, was.files_after, was.rows) == ("history", 24, 1, 48)
    assert (was.keys, was.changes, was.hot_keys[0].changes) == (25, 48, 24)
    assert (is_now.files, is_now.rows, is_now.unused_files) == (1, 48, 24)
    assert is_now.replayed < was.replayed
    fed.check()
    fed.run(3)
    fed.check()
    page = lake_page(before, plan, 0.0)
    assert "shop.item: 24 files of" in page
    assert "50 % of the changes are of one row" in page
    assert actions(plan_of(after)) == []


def test_old_files_are_removed_and_those_of_a_commit_are_not(
    spark: SparkSession, delta_jars: list[str], fed: Fed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The feed dies after its commit is saved, and before its files are in the table's log."""
    fed.run(6)
    kept(spark, fed)

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LakeLayout, "announce", dies)
        with pytest.raises(KeyboardInterrupt):
            fed.run(1)
    fed.commits += 1
    stray = fed.directory / "shop.item/date=1970-01-01/stray.parquet"
    stray.write_bytes(b"of a writer that died")
    for path in (fed.directory / "shop.item").rglob("*.parquet"):
        os.utime(path, (AGES, AGES))
    before, plan, _, _ = kept(spark, fed)
    (item,) = [one for one in before.tables if one.name == "shop.item"]
    assert (item.unannounced, item.unused_files, item.removable_files) == (1, 7, 1)
    assert "vacuum" not in actions(plan)
    assert "until it has, nothing is removed" in lake_page(before, plan, 0.0)
    forced = replace(plan, steps=[_vacuum("shop.item")])
    (outcome,) = carry_out(spark, Lake(fed.url), forced)
    assert "a feed has yet to add 1 files of a commit" in outcome.left
    assert outcome.files_before == outcome.files_after
    fed.sink = fed.opened()
    fed.check()
    before, plan, after, left = kept(spark, fed)
    assert left == []
    assert actions(plan) == ["vacuum"]
    assert not stray.exists()
    (item,) = [one for one in after.tables if one.name == "shop.item"]
    assert (item.unused_files, item.removable_files) == (6, 0)
    fed.check()
    fed.run(2)
    fed.check()


def _vacuum(folder: str) -> Any:
    from tidemill.spark.lakes import LakeStep

    return LakeStep(folder, "vacuum", [], 1, 0, 0, 0, 1.0)


def test_a_table_is_joined_while_the_feed_is_in_a_commit(
    spark: SparkSession, delta_jars: list[str], fed: Fed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The feed has read the table's log, and adds its file to the version before."""
    fed.run(6)
    lake = Lake(fed.url)
    plan = plan_of(analyze_lake(spark, lake))
    real: Callable[..., Any] = Delta._widened
    left: list[str] = []

    def widened(self: Delta, *arguments: Any) -> Any:
        table = real(self, *arguments)
        if not left:
            left.extend(one.left for one in carry_out(spark, lake, plan))
        return table

    monkeypatch.setattr(Delta, "_widened", widened)
    fed.run(1)
    assert left
    assert not any(left)
    fed.run(1)
    fed.check()


def test_deleted_rows_are_found_and_purged(
    spark: SparkSession, delta_jars: list[str], tmp_path: Path
) -> None:
    table = f"delta.`{tmp_path}/rows`"
    spark.sql(
        f"CREATE TABLE {table} (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    spark.range(100).selectExpr("CAST(id AS INT) id").coalesce(1).write.format("delta").mode("append").save(
        f"{tmp_path}/rows"
    )
    spark.sql(f"DELETE FROM {table} WHERE id % 4 = 0")
    lake = Lake(f"delta://{tmp_path}")
    report = analyze_lake(spark, lake)
    (found,) = report.tables
    assert (found.kind, found.rows, found.deleted_rows, found.partitions[0].date) == ("rows", 75, 25, "")
    plan = plan_of(report)
    assert actions(plan, "rows") == ["purge"]
    assert [one.left for one in carry_out(spark, lake, plan)] == [""]
    (found,) = analyze_lake(spark, lake).tables
    assert (found.rows, found.deleted_rows) == (75, 0)


def test_a_step_whose_table_is_gone_is_left_out(spark: SparkSession, delta_jars: list[str], fed: Fed) -> None:
    fed.run(1)
    plan = replace(plan_of(analyze_lake(spark, Lake(fed.url))), steps=[_vacuum("shop.gone")])
    (outcome,) = carry_out(spark, Lake(fed.url), plan)
    assert outcome.left == "there is no such table any more"
    assert "nothing was done: there is no such table" in outcome.line


def test_what_is_no_lake_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"s3://bucket/x: no lake that can be analyzed; accepted: delta:///"
    ):
        Lake("s3://bucket/x")
    with pytest.raises(SinkError, match="has no Delta table"):
        Lake(f"delta://{tmp_path}")
    with pytest.raises(ConfigError, match=r"plan\.json is no plan of a lake: .*missing required field"):
        decode_lake_plan("{}", "plan.json")
