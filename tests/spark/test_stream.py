"""spark.readStream.format("tidemill")"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemill.emulator.sql.sql import Tidb
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import eventually

from . import history
from .job import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_stream_of_tikv_goes_on_from_its_checkpoint(
    spark: SparkSession, tidb: Tidb, tmp_path: Path
) -> None:
    before = history.on_tidb(tidb)
    middle = tidb.tso()
    job = Job(spark, tmp_path, f"tikv://{tidb.pd_address}", tables="shop.*", startingTs=before)
    job.run()
    assert len(job.found) == 12 * 2 + 1 + 4 * 3
    with tidb.transaction() as txn:
        txn.update("shop.orders", 0, {"note": "later"})
        txn.delete("shop.orders", 1)
    job.run()
    assert [row.op for row in job.found[37:]] == ["delete", "update"]
    assert job.found[37].commit_ts > middle
    assert job.ends()[-1].ts > job.found[-1].commit_ts


def test_a_stream_of_mariadb_has_whole_transactions_in_bounded_batches(
    spark: SparkSession, sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    history.tables_on_mariadb(sql)
    job = Job(spark, tmp_path, mariadb.url(), tables=f"{sql.database}.*", maxRowsPerBatch=20)
    job.run()
    history.on_mariadb(sql)
    job.run()
    assert len(job.found) == 12 * 2 + 1 + 4 * 3 + 5000 + 5004
    sizes = [len(batch) for batch in job.batches.values() if batch]
    assert sizes[-2:] == [5000, 5004]
    assert max(sizes[:-2]) <= 21  # a schema change counts for nothing
    commits = [{_commit_ts(line) for line in batch} for batch in job.batches.values()]
    assert all(one.isdisjoint(other) for one, other in combinations(commits, 2))
    ends = job.ends()
    # A query that finds nothing at its start has an empty batch, at each start.
    first = min(number for number, batch in job.batches.items() if batch)
    ours = history.local(mariadb.url(), [f"{sql.database}.*"], ends[first - 1], ends[-1], tmp_path / "local")
    assert job.found == history.lines(ours)


def _commit_ts(line: Any) -> int:
    return int(line[0] if isinstance(line, tuple) else line.commit_ts)


def test_a_stream_begins_where_it_was_first_started(
    spark: SparkSession, sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    sql("CREATE TABLE item (id INT PRIMARY KEY)", "INSERT INTO item VALUES (1)")
    job = Job(spark, tmp_path, mariadb.url(), tables=f"{sql.database}.*")
    job.run()
    assert job.found == []
    assert len(job.ends()) == 1
    sql("INSERT INTO item VALUES (2)")
    job.run()
    assert [row.after for row in job.found] == [(2,)]


def test_a_quiet_source_makes_no_batches_and_news_come_at_once(
    spark: SparkSession, sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    sql("CREATE TABLE item (id INT PRIMARY KEY)", "CREATE TABLE other (id INT PRIMARY KEY)")
    job = Job(spark, tmp_path, mariadb.url(), tables=f"{sql.database}.item")
    query = job.start()
    try:
        eventually(lambda: job.ends())
        for number in range(5):
            sql(f"INSERT INTO other VALUES ({number})")
        questions = (
            "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'COM_SELECT'"
        )
        first = int(sql(questions)[0][0])
        eventually(lambda: int(sql(questions)[0][0]) > first + 20)
        assert len(job.ends()) == 1
        sql("INSERT INTO item VALUES (1)")
        eventually(lambda: job.found)
        assert [row.after for row in job.found] == [(1,)]
        progress = eventually(lambda: query.lastProgress)
        source = json.loads(progress.json)["sources"][0]
        assert source["latestOffset"].keys() >= {"ts", "position", "lagSeconds", "backlogBytes"}
    finally:
        query.stop()
