"""Backfills of a MariaDB that is written to, altered, and left by whoever reads it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pymysql.err import OperationalError

from tidemill.engine.opening import open_sinks
from tidemill.errors import CheckpointError, ConfigError, SourceError
from tidemill.events import Ddl
from tidemill.spark.backfill.backfill import backfill
from tidemill.spark.backfill.backfilled import opened
from tidemill.spark.backfill.directory import READ, BackfillDirectory
from tidemill.spark.backfill.errors import NotLoadable
from tidemill.spark.backfill.options import BackfillOptions
from tidemill.spark.backfill.progress import BackfillProgress, ProgressBar
from tidemill.spark.backfill.run import run
from tidemill.spark.envelope import Decoder
from tidemill.testing.mariadb_client import Client

from .world import (
    HeldBack,
    Writer,
    connections,
    create_tables,
    eventually,
    finished,
    go_on,
    held_back,
    into_copy,
    load,
    planned,
    processes,
    rows,
    workers,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 50_000
SMALL = BackfillOptions(chunk_rows=5_000)


@pytest.fixture
def copy(sql: Client) -> Iterator[str]:
    """A schema that doesn't exist yet."""
    name = f"{sql.database}_copy"
    yield name
    sql(f"DROP DATABASE IF EXISTS {name}")


@pytest.fixture
def reader(sql: Client) -> Iterator[str]:
    """A user of the backfill's own, with every right."""
    name = f"reader_{sql.database}"
    sql(f"CREATE USER {name} IDENTIFIED BY 'x'", f"GRANT ALL ON *.* TO {name}")
    yield name
    sql(f"DROP USER IF EXISTS {name}")


def test_rows_that_change_meanwhile_are_the_same_at_the_end(
    spark: SparkSession, sql: Client, copy: str, tmp_path: Path
) -> None:
    create_tables(sql, ROWS)
    server, tables, told = sql.server, f"{sql.database}.*", []
    options = into_copy(server.url(), server, tables, copy, tmp_path / "state")
    with Writer(server, sql.database, ROWS) as writer:
        before = writer.transactions
        done = backfill(
            spark, {"source": server.url(), "tables": tables}, tmp_path / "bf", SMALL, told.append
        )
        meanwhile = writer.transactions - before
        load(done, options)
        eventually(lambda: writer.transactions >= before + meanwhile + 500)
    go_on(options)
    assert meanwhile > 500
    assert {one.stage for one in told} == {"reading", "catching up", "merging"}
    assert done.chunks >= 10
    for table in ("a", "w", "k"):
        assert rows(server, copy, table) == rows(server, sql.database, table)


def test_a_killed_backfill_goes_on_with_the_chunks_that_are_missing(
    spark: SparkSession, sql: Client, copy: str, tmp_path: Path
) -> None:
    create_tables(sql, 4_000)
    sql("RENAME TABLE w TO z")
    server, tables = sql.server, f"{sql.database}.*"
    source = {"source": server.url(), "tables": tables}
    directory = tmp_path / "bf"
    connected = connections(sql)
    command = [sys.executable, str(Path(__file__).with_name("driver.py"))]
    with (tmp_path / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            [*command, server.url(), tables, str(directory), "500"],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        plan = planned(directory)
        wanted = {chunk.number for table in plan.tables[:2] for chunk in table.chunks}
        with held_back(server, sql.database, "z"):  # long before all chunks of `a` are read
            eventually(lambda: finished(directory) >= wanted)
            os.kill(driver.pid, signal.SIGKILL)
            driver.wait()
            eventually(lambda: not processes(driver.pid))
        eventually(lambda: connections(sql) == connected)
    finally:
        for left in processes(driver.pid):
            os.kill(left, signal.SIGKILL)
    place = BackfillDirectory(directory)
    before = place.records(READ, sorted(wanted))
    ends, _, begins = plan.tables[0].chunks[1:4]
    sql(f"REPLACE INTO a (id, n) VALUES ({ends.up_to[0]}, -5), ({begins.after[0] + 1}, -6)")
    sql("INSERT INTO z VALUES ('new', 1)")
    told: list[BackfillProgress] = []
    done = backfill(spark, source, directory, BackfillOptions(chunk_rows=500), told.append)
    assert told[0].chunks == len(wanted) < told[0].chunks_in_all
    after = place.records(READ, sorted(wanted))
    assert wanted - after.keys() == {ends.number, begins.number}  # merged with their changes
    assert {number: before[number] for number in after} == after
    options = into_copy(server.url(), server, tables, copy, tmp_path / "state")
    load(done, options)
    go_on(options)
    for table in ("a", "z", "k"):
        assert rows(server, copy, table) == rows(server, sql.database, table)


def test_a_killed_worker_costs_its_chunk_and_no_other(
    spark: SparkSession, sql: Client, tmp_path: Path
) -> None:
    create_tables(sql, 3_000)
    sql("RENAME TABLE w TO z")
    server, directory = sql.server, tmp_path / "bf"
    place = BackfillDirectory(directory)
    with ThreadPoolExecutor(1) as thread:
        source = {"source": server.url(), "tables": f"{sql.database}.*"}
        with HeldBack(server, sql.database, "z") as held:
            running = thread.submit(backfill, spark, source, directory, SMALL, held)
            plan = planned(directory)
            early = {chunk.number for table in plan.tables[:2] for chunk in table.chunks}
            eventually(lambda: finished(directory) >= early)
            before = place.records(READ, sorted(early))
            for pid in workers(spark):
                os.kill(pid, signal.SIGKILL)
        assert running.result().rows == 5_000
    assert place.records(READ, sorted(early)) == before


def test_a_table_that_is_altered_meanwhile_is_begun_again(
    spark: SparkSession, sql: Client, reader: str, copy: str, tmp_path: Path
) -> None:
    create_tables(sql, 5_000)
    sql("RENAME TABLE w TO z")
    server, tables, directory = sql.server, f"{sql.database}.*", tmp_path / "bf"
    with ThreadPoolExecutor(1) as thread:
        source = {"source": server.url(user=reader, password="x"), "tables": tables}
        with HeldBack(server, sql.database, "z") as held:
            running = thread.submit(backfill, spark, source, directory, SMALL, held)
            plan = planned(directory)
            early = {chunk.number for table in plan.tables[:2] for chunk in table.chunks}
            eventually(lambda: finished(directory) >= early)
            sql("ALTER TABLE a ADD COLUMN more INT DEFAULT 7", "CREATE TABLE came (id INT PRIMARY KEY)")
            sql("TRUNCATE TABLE k", "INSERT INTO came VALUES (1)", "INSERT INTO k VALUES ('only', 1)")
            _cut(sql, reader)  # so that what waits for `z` takes another snapshot, behind all this
        done = running.result()
    assert [table.name for table in done.tables] == ["z", "a", "came", "k"]
    assert len(done.tables[1].columns) == 9
    options = into_copy(server.url(), server, tables, copy, tmp_path / "state")
    load(done, options)
    go_on(options)
    for table in ("a", "z", "k", "came"):
        assert rows(server, copy, table) == rows(server, sql.database, table)


def test_watermarks_serve_where_the_server_says_no_position(
    spark: SparkSession, sql: Client, copy: str, tmp_path: Path
) -> None:
    create_tables(sql, 10_000)
    sql("DROP TABLE k", "ALTER TABLE w ENGINE = MyISAM")
    sql("CREATE TABLE k (s VARCHAR(20) PRIMARY KEY, n INT)")
    server, tables = sql.server, f"{sql.database}.*"
    settings = BackfillOptions(chunk_rows=2_000, positions="watermark")
    options = into_copy(server.url(), server, tables, copy, tmp_path / "state")
    with Writer(server, sql.database, 10_000):
        done = backfill(spark, {"source": server.url(), "tables": tables}, tmp_path / "bf", settings)
    load(done, options)
    go_on(options)
    for table in ("a", "w"):
        assert rows(server, copy, table) == rows(server, sql.database, table)


def test_a_table_without_a_key_needs_a_position(spark: SparkSession, sql: Client, tmp_path: Path) -> None:
    sql("CREATE TABLE k (n INT)")
    with pytest.raises(NotLoadable, match=r"\.k has no primary key"):
        backfill(
            spark,
            {"source": sql.server.url(), "tables": f"{sql.database}.*"},
            tmp_path / "bf",
            BackfillOptions(positions="watermark"),
        )


def test_the_envelope_has_every_row_and_definition_once_for_any_writer(
    spark: SparkSession, sql: Client, copy: str, tmp_path: Path
) -> None:
    create_tables(sql, 10_000)
    sql("CREATE TABLE nothing (id INT PRIMARY KEY)")
    done = backfill(
        spark, {"source": sql.server.url(), "tables": f"{sql.database}.*"}, tmp_path / "bf", SMALL
    )
    frame = done.frame(spark)
    assert frame.select("commit_ts", "start_ts", "sequence").distinct().count() == frame.count() == 12_004
    assert frame.where("op = 'insert' and `table` = 'a'").selectExpr("count(after)").first()[0] == 10_000
    batches = frame.orderBy("commit_ts", "sequence").toArrow().to_batches()
    items = [item for batch in batches for item in Decoder().decode(batch)]
    assert [item.table for item in items if isinstance(item, Ddl)] == ["a", "k", "nothing", "w"]
    assert all(item.commit_ts < done.offset.ts for item in items)
    ordered = frame.repartition("schema", "table").sortWithinPartitions("commit_ts", "start_ts", "sequence")
    target = sql.server.url(copy, scheme="mysql+pymysql")
    ordered.write.format("tidemill").option("sink", target).mode("append").save()
    for table in ("a", "w", "k", "nothing"):
        assert rows(sql.server, copy, table) == rows(sql.server, sql.database, table)


def test_a_load_that_was_cut_short_goes_on(
    spark: SparkSession, sql: Client, copy: str, tmp_path: Path
) -> None:
    create_tables(sql, 20_000)
    server, tables = sql.server, f"{sql.database}.*"
    done = backfill(spark, {"source": server.url(), "tables": tables}, tmp_path / "bf", SMALL)
    options = into_copy(server.url(), server, tables, copy, tmp_path / "state")

    def enough(count: int) -> None:
        if count > 12_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        done.load(open_sinks(options), enough)
    assert 0 < len(rows(server, copy, "a")) < 20_000
    load(opened(tmp_path / "bf"), options)
    load(opened(tmp_path / "bf"), options)  # and once more changes nothing
    for table in ("a", "w", "k"):
        assert rows(server, copy, table) == rows(server, sql.database, table)
    done.remove()
    assert not (tmp_path / "bf").exists()


def test_a_feeds_sinks_are_loaded_by_one_command_and_its_feed_goes_on(
    spark: SparkSession, sql: Client, copy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create_tables(sql, 1_000)
    server = sql.server
    options = into_copy(server.url(), server, f"{sql.database}.*", copy, tmp_path / "state")
    found = {
        "data_dir": str(tmp_path / "state"),
        "source": {"url": server.url(), "tables": [f"{sql.database}.*"], "timeout_seconds": 20},
        "sink": [{"url": server.url(copy, scheme="mysql+pymysql")}],
    }
    assert run(found) == 0
    assert not (tmp_path / "state" / "backfill").exists()
    shown = capsys.readouterr().err
    assert "stage=reading chunks=0/3 rows=0" in shown
    assert "stage=loading chunks=3/3 rows=3000" in shown
    sql("UPDATE a SET n = -7 WHERE id < 100")
    go_on(options)
    assert rows(server, copy, "a") == rows(server, sql.database, "a")
    with pytest.raises(ConfigError, match="sink: none is named"):
        run({**found, "sink": []})


def test_what_goes_wrong_is_one_clear_sentence(
    spark: SparkSession, sql: Client, copy: str, tmp_path: Path
) -> None:
    server, url = sql.server, sql.server.url()
    sql("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    with pytest.raises(ConfigError, match=r"no table.* matches 'nowhere"):
        backfill(spark, {"source": url, "tables": "nowhere.*"}, tmp_path / "none")
    with pytest.raises(ConfigError, match="fromTs"):
        backfill(spark, {"source": url, "tables": "a.*", "fromTs": "5"}, tmp_path / "none")
    with pytest.raises(ConfigError, match=r"settings\.chunk_rows: expected `int` >= 1"):
        backfill(spark, {"source": url, "tables": "a.*"}, tmp_path / "none", BackfillOptions(chunk_rows=0))
    with pytest.raises(ConfigError, match="no finished backfill"):
        opened(tmp_path / "none")
    done = backfill(spark, {"source": url, "tables": f"{sql.database}.*"}, tmp_path / "bf")
    with pytest.raises(ConfigError, match=rf"holds a backfill of {sql.database}\.\*"):
        backfill(spark, {"source": url, "tables": f"{sql.database}.a"}, tmp_path / "bf")
    with BackfillDirectory(tmp_path / "bf").held(), pytest.raises(ConfigError, match="another backfill runs"):
        backfill(spark, {"source": url, "tables": f"{sql.database}.*"}, tmp_path / "bf")
    options = into_copy(url, server, f"{sql.database}.*", copy, tmp_path / "state")
    load(done, options)
    (tmp_path / "bf" / "done.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"done\.json is damaged"):
        opened(tmp_path / "bf")


def test_an_error_of_the_source_ends_it_and_leaves_what_was_finished(
    spark: SparkSession, sql: Client, reader: str, tmp_path: Path
) -> None:
    create_tables(sql, 1_000)
    url = sql.server.url(user=reader, password="x")
    directory, source = tmp_path / "bf", {"source": url, "tables": f"{sql.database}.*"}
    with ThreadPoolExecutor(1) as thread:
        with HeldBack(sql.server, sql.database, "w") as held:
            running = thread.submit(backfill, spark, source, directory, SMALL, held)
            plan = planned(directory)
            early = {chunk.number for table in plan.tables[:2] for chunk in table.chunks}
            eventually(lambda: finished(directory) >= early)
            sql(f"DROP USER {reader}")
            eventually(lambda: _cut(sql, reader) and running.done())
        with pytest.raises(SourceError, match="check user and password"):
            running.result()
    assert finished(directory) == early
    done = backfill(spark, {**source, "source": sql.server.url()}, directory, SMALL)
    assert done.rows == 3_000


def _cut(sql: Client, user: str) -> bool:
    """Cut the user's connections."""
    for (number,) in sql(f"SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{user}'"):
        with suppress(OperationalError):  # it has ended by itself
            sql._connection.kill(number)
    return True


def test_a_progress_bar_shows_chunks_and_rows(tmp_path: Path) -> None:
    with (tmp_path / "shown").open("w+") as stream:
        with ProgressBar(stream) as bar:
            bar(BackfillProgress("reading", 3, 10, 12_345, 50_000, 7.0))
        stream.seek(0)
        shown = stream.read()
    assert "reading" in shown
    assert "3 of 10 chunks, 12,345 rows" in shown
