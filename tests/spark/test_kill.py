"""Tasks and drivers that die."""

from __future__ import annotations

import json
import os
import random
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tidemill.emulator.sql.sql import Tidb
from tidemill.spark.data_source import TidemillSource
from tidemill.spark.read.batch_reader import BatchReader
from tidemill.spark.read.options import read_options
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import eventually

from . import history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_stream.py"


def dying(marker: Path) -> type[TidemillSource]:
    """Return a source whose first task is killed after its first batch; being local, it is pickled whole."""

    class DyingReader(BatchReader):
        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            for batch in BatchReader.read(self, partition):
                yield batch
                if not marker.exists():
                    marker.touch()
                    os.kill(os.getpid(), signal.SIGKILL)

    class DyingSource(TidemillSource):
        @classmethod
        def name(cls) -> str:
            return "dying"

        def reader(self, schema: StructType) -> DataSourceReader:
            options = read_options(self.options)
            return DyingReader(options, self._output(options, schema))

    return DyingSource


def changes(spark: SparkSession, name: str, url: str, **options: Any) -> DataFrame:
    reader = spark.read.format(name).option("source", url)
    for option, value in options.items():
        reader = reader.option(option, str(value))
    return reader.load()


def test_a_task_killed_mid_batch_gives_the_same_rows_of_mariadb(
    spark: SparkSession, sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    sql("CREATE TABLE first (id INT PRIMARY KEY)")
    ((file, offset, *_),) = sql("SHOW MASTER STATUS")
    history.tables_on_mariadb(sql)
    history.on_mariadb(sql)
    where = {"tables": f"{sql.database}.*", "fromPosition": f"{file}:{offset}"}
    wanted = history.of_frame(changes(spark, "tidemill", mariadb.url(), **where))
    marker, scratch = tmp_path / "died", tmp_path / "scratch"
    spark.dataSource.register(dying(marker))
    frame = changes(spark, "dying", mariadb.url(), **where, scratchDir=scratch)
    assert history.of_frame(frame) == wanted
    assert len(wanted) == 3 + 12 * 2 + 1 + 4 * 3 + 5000 + 5004
    assert marker.exists()
    assert list(scratch.iterdir()) == []  # the dead task's directory went with the next one's


def test_a_task_killed_mid_batch_gives_the_same_rows_of_tikv(
    spark: SparkSession, tidb: Tidb, tmp_path: Path
) -> None:
    before = history.on_tidb(tidb)
    where = {"tables": "shop.*", "fromTs": before, "toTs": tidb.tso(), "partitions": 2}
    url = f"tikv://{tidb.pd_address}"
    wanted = history.of_frame(changes(spark, "tidemill", url, **where))
    spark.dataSource.register(dying(tmp_path / "died"))
    assert history.of_frame(changes(spark, "dying", url, **where)) == wanted
    assert len(wanted) == 12 * 2 + 1 + 4 * 3
    assert (tmp_path / "died").exists()


class Bank:
    """Accounts that change, come and go."""

    def __init__(self, sql: Client) -> None:
        self.sql = sql
        self.random = random.Random(7)
        self.next = 0
        sql("CREATE TABLE account (id INT PRIMARY KEY, balance DECIMAL(12,2))")
        sql("CREATE TABLE note (id INT PRIMARY KEY, text VARCHAR(20))")

    def work(self, transactions: int) -> None:
        for _ in range(transactions):
            self.next += 1
            number, some = self.next, self.random.randint(1, self.next)
            self.sql(
                "BEGIN",
                f"INSERT INTO account VALUES ({number}, {number}.25)",
                f"UPDATE account SET balance = balance + 1 WHERE id <= {some}",
                f"DELETE FROM account WHERE id = {some} AND id % 5 = 0",
                f"REPLACE INTO note VALUES ({some}, 'note {number}')",
                "COMMIT",
            )

    def tables(self) -> dict[str, dict[int, tuple[Any, ...]]]:
        return {
            name: {row[0]: row for row in self.sql(f"SELECT * FROM {name}")} for name in ("account", "note")
        }


def folded(frame: DataFrame) -> dict[str, dict[int, tuple[Any, ...]]]:
    """The rows that are left when every change is applied; each must apply exactly once."""
    found: dict[str, dict[int, tuple[Any, ...]]] = {"account": {}, "note": {}}
    for row in frame.orderBy("commit_ts", "start_ts", "sequence").collect():
        rows = found[row.table]
        if row.before is not None:
            before = json.loads(row.before)
            assert rows.pop(before["id"]) == tuple(before.values())
        if row.after is not None:
            after = json.loads(row.after)
            assert after["id"] not in rows
            rows[after["id"]] = tuple(after.values())
    return found


def test_a_stream_into_parquet_survives_its_driver(
    spark: SparkSession, sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    bank = Bank(sql)
    command = [sys.executable, EXAMPLE, mariadb.url(), f"{sql.database}.*", str(tmp_path)]
    bank.work(30)
    log = (tmp_path / "log").open("wb")
    with log, subprocess.Popen(command, stdout=log, stderr=log) as driver:
        try:
            commits = tmp_path / "checkpoint" / "commits"
            eventually(
                lambda: commits.exists() and list(commits.glob("[0-9]*")),
                300,  # much of a start shows no progress
                sign=lambda: (tmp_path / "log").stat().st_size,
            )
            bank.work(30)
        finally:
            driver.kill()
    bank.work(30)
    runpy.run_path(str(EXAMPLE))["follow"](spark, mariadb.url(), f"{sql.database}.*", str(tmp_path), "--now")
    frame = spark.read.parquet(str(tmp_path / "changes"))
    assert folded(frame.filter("op != 'ddl'")) == {
        name: {
            id_: tuple(str(v) if name == "account" and v != id_ else v for v in row)
            for id_, row in rows.items()
        }
        for name, rows in bank.tables().items()
    }
    assert frame.filter("op = 'ddl'").count() == 2
    assert (tmp_path / "changes" / f"schema={sql.database}" / "table=account").is_dir()
