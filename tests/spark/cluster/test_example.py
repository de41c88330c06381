"""The example with a cluster, as its reader would run it."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidemill.testing.progress import completed

from .copied import Copied
from .standalone import PATIENCE_SECONDS, Cluster, Daemon

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXAMPLE = Path(__file__).parents[3] / "examples" / "spark_cluster.py"


@pytest.mark.long
def test_two_workers_write_each_change_once(
    cluster: Cluster, copied: Copied, spark: SparkSession, tmp_path: Path
) -> None:
    command = [sys.executable, EXAMPLE, cluster.url, copied.sql.server.url(), copied.patterns, tmp_path]

    def run() -> DataFrame:
        done = completed(command, PATIENCE_SECONDS, env=cluster.environment())
        assert done.returncode == 0, done.stderr
        return spark.read.parquet(str(tmp_path / "changes")).where("op != 'ddl'")

    assert changes(run()) == counted(copied)
    assert all(tasks(host) for host in cluster.hosts)
    copied.transaction(
        "INSERT INTO {} VALUES (1, 'first'), (2, 'second')",
        "UPDATE {} SET name = 'third' WHERE id = 1",
        "DELETE FROM {} WHERE id = 2",
    )
    frame = run()
    assert changes(frame) == counted(copied)
    places = frame.selectExpr("table", "_metadata.file_name").collect()
    partitions = {(row.table, row.file_name.split("-")[1]) for row in places}
    assert {table for table, _ in partitions} == {*copied.tables}
    assert len(partitions) == len({partition for _, partition in partitions}) == 2


def changes(frame: DataFrame) -> Counter[tuple[str, str, int]]:
    """Return the table, the operation and the row's id of each change."""
    rows = frame.selectExpr("table", "op", "coalesce(after, before) AS image").collect()
    return Counter((row.table, row.op, json.loads(row.image)["id"]) for row in rows)


def counted(copied: Copied) -> Counter[tuple[str, str, int]]:
    """Return the same of the source, by its triggers."""
    return Counter(copied.sql(f"SELECT place, op, id FROM {copied.sql.database}.counts"))


def tasks(host: Daemon) -> list[str]:
    """The tasks that the host's executors have begun."""
    logs = host.log_path.parent.glob("work/app-*/*/stderr")
    return [task for log in logs for task in re.findall(r"Running task \S+ in stage \S+", log.read_text())]
