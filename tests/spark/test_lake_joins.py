"""Spark's tasks compact a lake as this process does: the same rows, in as many files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidemill.sink.files.lakes.upkeep import (
    Executor,
    Join,
    LakeOutcome,
    LakePlan,
    LakeStep,
    NewFile,
    carry_out,
    join,
)
from tidemill.sink.registry import given_sink
from tidemill.spark.lakes.joins import SparkJoins
from tidemill.testing.changes import delete, update

from ..sink.storage.copies import DeltaCopies, IcebergCopies
from ..sink.storage.fed_lake import ITEM, NAME, Ahead, FedLake
from ..sink.storage.lakes import DeltaLake, IcebergLake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACES = {
    "delta history": DeltaLake,
    "delta copy": DeltaCopies,
    "iceberg history": IcebergLake,
    "iceberg copy": IcebergCopies,
}
OFTEN = {"flush_seconds": 0.0, "journal_seconds": 0.0}


def fed_lake(kind: str, path: Path) -> FedLake:
    """Return a lake with small files, some of whose rows are deleted."""
    fed = FedLake(PLACES[kind](path, **OFTEN))
    fed.insert(12, 3)
    fed.commit(*[delete(ITEM, key, fed.rows[key]) for key in (1, 2, 3, 8, 20)])
    return fed


def compacted(fed: FedLake, execute: Executor | None = None) -> LakeOutcome:
    lake = fed.lake()
    step = LakeStep(NAME, "join", [], 1, 0, 0, 0, 1.0)
    largest = max(file.size for file in lake.table(NAME).log.latest().files.values())
    plan = LakePlan(2, lake.url, 168, 4 * largest, [step])  # so that there are several tasks
    (outcome,) = carry_out(lake, plan, Ahead(), execute)
    lake.close()
    return outcome


def joins(spark: SparkSession, fed: FedLake) -> SparkJoins:
    url = fed.place.url()
    return SparkJoins(spark, url, given_sink("lake", url).options)


@pytest.mark.parametrize("kind", PLACES)
def test_both_engines_make_the_same_files(kind: str, tmp_path: Path, spark: SparkSession) -> None:
    """The feed changes and deletes rows before the new files are committed."""
    found = []
    for name in ("local", "spark"):
        fed = fed_lake(kind, tmp_path / name)
        execute = joins(spark, fed) if name == "spark" else partial(map, partial(join, fed.lake().store))
        outcome = compacted(fed, before_commit(fed, execute))
        assert outcome.left == ""
        fed.check()
        fed.change()
        fed.check()
        fed.sink.close()
        found.append((outcome.files_before, outcome.files_after, fed.rows))
    assert found[0] == found[1]


def before_commit(fed: FedLake, execute: Executor) -> Executor:
    def executed(tasks: Sequence[Join]) -> Iterator[NewFile]:
        made = list(execute(tasks))
        assert len(made) > 1
        fed.commit(update(ITEM, (5, fed.rows[5]), (5, "changed")), delete(ITEM, 9, fed.rows[9]))
        yield from made

    return executed


def test_a_task_that_runs_twice_leaves_only_files_for_vacuum(tmp_path: Path, spark: SparkSession) -> None:
    fed = fed_lake("iceberg copy", tmp_path / "lake")
    by_spark = joins(spark, fed)

    def execute(tasks: Sequence[Join]) -> Iterator[NewFile]:
        list(by_spark(tasks))
        yield from by_spark(tasks)

    assert compacted(fed, execute).left == ""
    fed.check()
    (table,) = [one for one in fed.analyzed(days=30)[0].tables if one.folder == NAME]
    assert table.removable_files > table.files
    _, plan = fed.analyzed(days=30)
    assert not [one.left for one in fed.kept(plan, days=30) if one.left]
    fed.check()
    fed.sink.close()


def test_an_error_of_a_task_is_one_sentence_and_changes_nothing(tmp_path: Path, spark: SparkSession) -> None:
    fed = fed_lake("delta copy", tmp_path / "lake")
    by_spark = joins(spark, fed)
    folder, kept = tmp_path / "lake" / NAME, tmp_path / "kept"

    def execute(tasks: Sequence[Join]) -> Iterator[NewFile]:
        shutil.move(folder, kept)
        try:
            yield from by_spark(tasks)
        finally:
            shutil.move(kept, folder)

    outcome = compacted(fed, execute)
    assert outcome.left.endswith(".parquet is missing: put back a copy of it")
    assert outcome.left.startswith("directory:")
    assert outcome.files_before == outcome.files_after
    fed.check()
    fed.sink.close()
