"""A plan carried out, by Delta's own commands, while feeds go on writing.

A feed only adds files, and the commands only replace files that a table has, so their commits don't conflict.
What a feed notes in a table's log (the number of its last commit) stays there: checkpoints have it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, assert_never

import pyarrow as pa
from deltalake import DeltaTable
from msgspec import Struct
from pyspark.errors import PySparkException

from ...actors import SystemClock
from ..tables.last_changes import quoted
from .lake import Lake
from .plan import LakePlan, LakeStep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELTA: Final = "spark.databricks.delta"
_CHECKED_HOURS: Final = 168
"""Time to keep below which Delta refuses a VACUUM, unless its check is off."""
_SAID_CHARS: Final = 300


class LakeOutcome(Struct, frozen=True):
    """The result of a step."""

    step: LakeStep
    files_before: int
    """Files of the table's version before the step; of a vacuum, files in its folder."""
    files_after: int
    bytes_before: int
    """Their bytes."""
    bytes_after: int
    seconds: float
    left: str = ""
    """The reason if nothing was done."""

    @property
    def line(self) -> str:
        """One line for people."""
        what = f"{self.step.action} {self.step.folder}, {self.seconds:.1f} s"
        if self.left:
            return f"{what}: nothing was done: {self.left}"
        return (
            f"{what}: {self.files_before:,} files with {self.bytes_before:,} bytes became "
            f"{self.files_after:,} with {self.bytes_after:,}"
        )


def carry_out(spark: SparkSession, lake: Lake, plan: LakePlan) -> Iterator[LakeOutcome]:
    """Carry out the steps one after the other, and yield the result of each.

    A step that fails, because the table was altered meanwhile for instance, changes nothing; its outcome says
    why, and the next steps follow.
    """
    clock = SystemClock()
    for step in plan.steps:
        before, began = _measured(lake, step), clock.now()
        left = _refusal(lake, step) or _done(spark, lake, plan, step)
        after = _measured(lake, step)
        yield LakeOutcome(step, before[0], after[0], before[1], after[1], clock.now() - began, left)


def _measured(lake: Lake, step: LakeStep) -> tuple[int, int]:
    """Return number and bytes of the table's files."""
    path = lake.path(step.folder)
    if not path.is_dir():
        return 0, 0
    if step.action == "vacuum":
        sizes = [file.stat().st_size for file in path.rglob("*.parquet") if "_delta_log" not in file.parts]
    else:
        sizes = [
            int(size)
            for size in pa.table(DeltaTable(path).get_add_actions(flatten=True))["size_bytes"].to_pylist()
        ]
    return len(sizes), sum(sizes)


def _refusal(lake: Lake, step: LakeStep) -> str:
    """Return why a step isn't carried out; empty if it is."""
    if step.folder not in lake.folders():
        return "there is no such table any more"
    if step.action == "vacuum" and (names := lake.unannounced().get(step.folder)):
        return (
            f"a feed has yet to add {len(names)} files of a commit, which VACUUM would take for orphans: let "
            "the feed run on, then repeat this step"
        )
    return ""


def _done(spark: SparkSession, lake: Lake, plan: LakePlan, step: LakeStep) -> str:
    """Carry out a step; return why it failed, empty if it didn't."""
    table = f"delta.{quoted(str(lake.path(step.folder)))}"
    try:
        with _settings(spark, _of(plan)):
            match step.action:
                case "join":
                    spark.sql(f"OPTIMIZE {table}{_where(step.dates)}").collect()
                case "sort":
                    spark.sql(f"OPTIMIZE {table}{_where(step.dates)} ZORDER BY (commit_ts)").collect()
                case "purge":
                    spark.sql(f"REORG TABLE {table}{_where(step.dates)} APPLY (PURGE)").collect()
                case "vacuum":
                    spark.sql(f"VACUUM {table} RETAIN {plan.keep_hours} HOURS").collect()
                case "checkpoint":
                    found = DeltaTable(lake.path(step.folder))
                    found.create_checkpoint()
                    found.cleanup_metadata()
                case _:
                    assert_never(step.action)
    except PySparkException as error:
        return " ".join(str(error).split())[:_SAID_CHARS]
    return ""


def _where(dates: Sequence[str]) -> str:
    listed = ", ".join(f"'{date}'" for date in dates)
    return f" WHERE date IN ({listed})" if dates else ""


def _of(plan: LakePlan) -> Mapping[str, str]:
    """Return settings of the session for a plan."""
    return {
        f"{_DELTA}.optimize.maxFileSize": str(plan.target_bytes),
        f"{_DELTA}.optimize.minFileSize": str(plan.target_bytes // 2),
        f"{_DELTA}.optimize.repartition.enabled": "true",
        # A feed's tables have no statistics (sink/files/lakes/delta_table.py); groups of rows do.
        f"{_DELTA}.optimize.zorder.checkStatsCollection.enabled": "false",
        f"{_DELTA}.retentionDurationCheck.enabled": str(plan.keep_hours >= _CHECKED_HOURS).lower(),
    }


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of the session for a while."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
