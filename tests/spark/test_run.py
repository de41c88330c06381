"""`tidemill run --engine spark`: the same feed with the same meaning, whatever is killed."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.engine.status import StatusFile
from tidemill.errors import CheckpointError, ConfigError, Retryable, TidemillError
from tidemill.events import Batch, Checkpoint, compose_ts
from tidemill.sink import SinkFactory
from tidemill.spark.backfill.backfill import backfill
from tidemill.spark.backfill.backfilled import Backfilled
from tidemill.spark.backfill.options import BackfillOptions
from tidemill.spark.backfill.run import run as run_backfill
from tidemill.spark.capture import client
from tidemill.spark.capture.captures import Captures
from tidemill.spark.offsets.offset import Offset
from tidemill.spark.run.captures import Acknowledging
from tidemill.spark.run.errors import explain
from tidemill.spark.run.feed_reads import feed_reads
from tidemill.spark.run.queries import QueryLog, SinkQuery
from tidemill.spark.run.run import run
from tidemill.spark.run.stream import Stream
from tidemill.testing.child import Child
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import eventually, feed_ended

from . import history
from .capture.beds import MariaBed, Running
from .test_writer import copy_locally, rows_in_sqlite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """\
import json, sys
from tidemill.spark.run.run import run
from tidemill.spark.run.errors import explain
from tidemill.spark.run.queries import SinkQuery
found, options = json.loads(sys.argv[1])
run(found, **options)
"""
SMALL = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
    "spark.driver.memory": "600m",
    "spark.log.level": "WARN",
}


def feed(
    directory: Path, source: str, tables: str, *sinks: dict[str, Any], until: str = "now"
) -> dict[str, Any]:
    return {
        "name": "copy",
        "data_dir": str(directory / "state"),
        "until": until,
        "source": {"url": source, "tables": [tables]},
        "sink": [{"name": "abc"[number], **sink} for number, sink in enumerate(sinks)],
    }


def running(found: dict[str, Any], log: Path, failpoint: str = "", **options: Any) -> Child:
    command = [sys.executable, "-c", PROGRAM, json.dumps([found, options])]
    return Child(command, log, failpoint=failpoint, start_new_session=True)


def test_a_feed_of_tikv_goes_on_where_its_snapshot_ended(
    spark: SparkSession, tidb: Tidb, tmp_path: Path
) -> None:
    source = f"tikv://{tidb.pd_address}"
    history.on_tidb(tidb)
    found = feed(
        tmp_path,
        source,
        "shop.*",
        {"url": f"sqlite:///{tmp_path}/a.db"},
        {"url": f"directory://{tmp_path}/b?format=ndjson"},
    )
    assert run(found, partitions=2) == 0
    status = StatusFile(tmp_path / "state").load()
    assert (status.rows, [sink.rows for sink in status.sinks]) == (24, [24, 24])
    for number in range(100, 110):
        with tidb.transaction() as txn:
            txn.insert("shop.orders", {"id": number, "note": "later", "price": "1.00"})
            txn.insert("shop.logs", {"id": number, "note": None, "price": None})
    tidb.execute("alter table shop.orders add column size int default 7")
    with tidb.transaction() as txn:
        txn.delete("shop.pairs", 0)
    assert run(found, partitions=2) == 0
    copy_locally(source, "shop.*", f"sqlite:///{tmp_path}/local.db", tmp_path)
    rows = rows_in_sqlite(tmp_path / "a.db", "shop")
    assert rows == rows_in_sqlite(tmp_path / "local.db", "shop")
    assert len(rows["orders"]) == 22
    lines = [
        json.loads(line)
        for file in sorted((tmp_path / "b").glob("table=shop*/*/*.ndjson"))
        for line in file.read_text().splitlines()
    ]
    assert sum(line["op"] == "insert" for line in lines) == sum(map(len, rows.values())) + 1
    assert sum(line["op"] == "delete" for line in lines) == 1
    status = StatusFile(tmp_path / "state").load()
    assert status.state == "finished"
    assert [sink.rows for sink in status.sinks] == [24 + 22, 24 + 22]
    assert spark.streams.active == []

    with pytest.raises(ConfigError, match="begun with 2"):
        run(found, partitions=3)
    with pytest.raises(ConfigError, match="Spark follows it already: run with --engine spark"):
        run_backfill(found)
    options = feed_options(found)
    local = Feed(options, open_sinks(options)[:1])
    local.start()
    local.wait()
    assert isinstance(local.error, CheckpointError)
    assert "is written by Spark in 2 partitions" in str(local.error)
    assert "go on with --engine spark, or name another target" in str(local.error)


def test_until_a_position_ends_there(
    spark: SparkSession, sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    ((early, start, *_),) = sql("SHOW MASTER STATUS")
    sql("CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40))", "INSERT INTO item VALUES (1, 'one')")

    def ids(until: str) -> list[int]:
        sinks = ({"url": f"sqlite:///{tmp_path}/a.db"}, {"url": f"parquet://{tmp_path}/b"})
        run(feed(tmp_path, mariadb.url(), f"{sql.database}.*", *sinks, until=until))
        found = in_sqlite(tmp_path / "a.db", f"{sql.database}.item")
        files = (tmp_path / "b").glob("table=*.item/**/*.parquet")
        archived = [row["id"] for path in files for row in pq.read_table(path).column("after").to_pylist()]
        assert sorted(archived) == [row[0] for row in found]
        return [row[0] for row in found]

    assert ids(f"{early}:{start}") == [1], "what is loaded is given whole"
    sql("INSERT INTO item VALUES (2, 'two')")
    ((file, offset, *_),) = sql("SHOW MASTER STATUS")
    sql("INSERT INTO item VALUES (3, 'three')")
    assert ids(f"{file}:{offset}") == [1, 2]
    shutil.rmtree(tmp_path / "state" / "spark" / "a")
    assert ids("now") == [1, 2, 3], "the target knows what it has, without Spark's checkpoint"
    assert spark.streams.active == []


def test_a_feed_says_that_it_starts_and_its_log_how_old_a_batch_is(
    spark: SparkSession,
    sql: Client,
    mariadb: MariaDb,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    sql("CREATE TABLE item (id INT PRIMARY KEY)", "INSERT INTO item VALUES (1)")
    found = feed(tmp_path, mariadb.url(), f"{sql.database}.*", {"url": f"sqlite:///{tmp_path}/a.db"})
    run(found, as_json=True)
    first = json.loads(capfd.readouterr().out.splitlines()[0])
    assert (first["state"], first["detail"]) == ("starting", "starting Spark")
    before = compose_ts(int(sql("SELECT UNIX_TIMESTAMP()")[0][0]) * 1000)
    sql("INSERT INTO item VALUES (2)")
    run(found)
    log = QueryLog(tmp_path / "state" / "spark" / "a")
    assert before <= log.end(log.begun)["oldest"] <= log.end(log.begun)["ts"]
    status = StatusFile(tmp_path / "state").load()
    assert (status.rows, status.sinks[0].lag_seconds) == (2, 0.0)


def test_a_query_whose_start_fails_for_now_is_started_again(
    spark: SparkSession, sql: Client, mariadb: MariaDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql("CREATE TABLE item (id INT PRIMARY KEY)", "INSERT INTO item VALUES (1)")
    really, failures = SinkQuery.start, ["Python worker failed to connect back."]

    def start(query: SinkQuery, *args: Any) -> None:
        if failures:
            raise RuntimeError(failures.pop())
        really(query, *args)

    monkeypatch.setattr(SinkQuery, "start", start)
    run(feed(tmp_path, mariadb.url(), f"{sql.database}.*", {"url": f"sqlite:///{tmp_path}/a.db"}))
    assert not failures
    assert in_sqlite(tmp_path / "a.db", f"{sql.database}.item") == [(1,)]


def test_a_query_that_fails_while_it_is_looked_at_is_not_taken_for_finished(
    spark: SparkSession, sql: Client, mariadb: MariaDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql("CREATE TABLE item (id INT PRIMARY KEY)", "INSERT INTO item VALUES (1)")
    copy = tmp_path / "a.db"
    found = feed(tmp_path, mariadb.url(), f"{sql.database}.*", {"url": f"sqlite:///{copy}"})
    run(found)

    def change(statement: str) -> None:
        with closing(sqlite3.connect(copy)) as connection, connection:
            connection.execute(statement)

    change(f'DELETE FROM "{sql.database}.item"')
    sql("UPDATE item SET id = 2")
    really = Stream._failure

    def failure(stream: Stream) -> TidemillError | None:
        error = really(stream)
        eventually(lambda: not any(query.is_active for query in stream._queries))
        if error is not None:
            change(f'INSERT INTO "{sql.database}.item" VALUES (1)')
        return error

    monkeypatch.setattr(Stream, "_failure", failure)
    run(found)
    assert in_sqlite(copy, f"{sql.database}.item") == [(2,)]


def test_what_a_backfill_cannot_load_the_local_engine_loads(
    spark: SparkSession,
    sql: Client,
    mariadb: MariaDb,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    sql("CREATE TABLE k (n INT) ENGINE=MyISAM", "INSERT INTO k VALUES (1), (1), (2)")
    found = feed(tmp_path, mariadb.url(), f"{sql.database}.*", {"url": f"sqlite:///{tmp_path}/a.db"})
    run(found)
    sql("DELETE FROM k WHERE n = 1 LIMIT 1", "INSERT INTO k VALUES (3)")
    run(found)
    assert in_sqlite(tmp_path / "a.db", f"{sql.database}.k") == [(1,), (2,), (3,)]
    shown = capfd.readouterr().err
    assert shown.count("loaded by the local engine, not by Spark") == 1
    assert "k has no primary key" in shown
    assert not (tmp_path / "state" / "backfill").exists()


def test_a_sink_that_is_half_loaded_goes_on_with_what_began_it(
    spark: SparkSession,
    sql: Client,
    mariadb: MariaDb,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """`a` by a snapshot of the local engine, `b` by a backfill; `c` is new."""
    sql("CREATE TABLE item (id INT PRIMARY KEY, n INT)", "INSERT INTO item SELECT seq, 0 FROM seq_1_to_6000")
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in "abc"]
    found = feed(tmp_path, mariadb.url(), f"{sql.database}.*", *({"url": url} for url in urls))
    options = feed_options(found)
    chunks = BackfillOptions(chunk_rows=1_000)
    done = backfill(spark, feed_reads(options), tmp_path / "state" / "backfill", chunks)
    a, b, _ = open_sinks(options)
    half_load(done, b)
    sql("UPDATE item SET n = id WHERE id % 1000 = 0")
    ((file, offset, *_),) = sql("SHOW MASTER STATUS")
    begun = a.new()
    begun.open()
    begun.write(Batch([], Checkpoint(1, f"{file}:{offset}", {}, done.offset.source)))
    begun.flush()
    begun.close()
    assert run(found) == 0
    for name in "abc":
        rows = in_sqlite(tmp_path / f"{name}.db", f"{sql.database}.item")
        assert rows == sql("SELECT * FROM item ORDER BY id")
    assert "sink a is in the middle of a snapshot of the local engine" in capfd.readouterr().err
    assert not (tmp_path / "state" / "backfill").exists()


def half_load(done: Backfilled, factory: SinkFactory) -> None:
    """Up to where something is written down."""

    class Enough(Exception):
        pass

    def told(_rows: int) -> None:
        raise Enough

    with pytest.raises(Enough):
        done.load([factory], told)
    sink = factory.new()
    at = sink.open()
    sink.close()
    assert at is not None
    assert at.loading is not None


def test_all_sinks_read_from_one_capture_and_it_keeps_what_one_of_them_lacks(
    spark: SparkSession,
    sql: Client,
    mariadb: MariaDb,
    tmp_path: Path,
) -> None:
    (tmp_path / "bed").mkdir()
    sinks = {"url": f"sqlite:///{tmp_path}/a.db"}, {"url": f"directory://{tmp_path}/b?format=ndjson"}
    with MariaBed(tmp_path / "bed", mariadb, sql.database) as bed:
        found = feed(tmp_path, bed.url, f"{bed.schema}.*", *sinks)
        with Running(bed).begun() as capture:
            found["spark"] = {"capture": ["127.0.0.1:1", capture.address]}
            bed.burst(0, 5)
            assert run(found) == 0
            bed.burst(5, 5)
            before = client.status(capture.address)
            assert run(found) == 0
            after = client.status(capture.address)
        assert after.answered == before.answered + len(sinks)
        assert after.lease.lease == f"copy of {tmp_path / 'state'}"
        ends = {sink.position for sink in StatusFile(tmp_path / "state").load().sinks}
        assert {after.held.base.position.partition(" ")[0]} == {end.partition(" ")[0] for end in ends}
    for table in ("item", "other"):
        copy = in_sqlite(tmp_path / "a.db", f"{sql.database}.{table}")
        assert copy == sql(f"SELECT * FROM {table} ORDER BY id")
        assert copy


def in_sqlite(path: Path, table: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f'SELECT * FROM "{table}" ORDER BY 1').fetchall()


def test_the_slowest_query_says_what_captures_may_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(client, "acknowledge", lambda *a, **_: told.append(a[2].ts) or [])
    acknowledging = Acknowledging(Captures(addresses=("127.0.0.1:1",)), "copy")
    for slow, quick in ((1, 9), (1, 12), (5, 12)):
        acknowledging.reached([Offset(quick, "", "s"), Offset(slow, "", "s")])
        eventually(lambda slow=slow: told[-1:] == [slow])  # type: ignore[misc]
    acknowledging.close()
    assert told == [1, 5]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"master": "spark://127.0.0.1:1"}, "master: spark://127.0.0.1:1 doesn't answer"),
        ({"master": "somewhere"}, "master: 'somewhere' is none; accepted: local"),
        ({"partitions": 0}, "spark.partitions: expected `int` >= 1"),
        (
            {"capture": ["127.0.0.1:1"], "capture_token_file": Path("none")},
            "spark.capture_token_file: none: No",
        ),
    ],
)
def test_bad_options_are_one_sentence(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    found = feed(tmp_path, "mysql://root@127.0.0.1:1", "a.*", {"url": f"sqlite:///{tmp_path}/a.db"})
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        run(found, **options)


def test_what_spark_says_of_a_failure_becomes_one_sentence() -> None:
    mismatch = explain(
        Exception("An error\n[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 …\nmore"),
        "sink a",
    )
    assert isinstance(mismatch, ConfigError)
    assert str(mismatch).startswith("the workers have another Python than the driver: 3.9, and not 3.")
    missing = explain(Exception("...\nModuleNotFoundError: No module named 'tidemill'"), "sink a")
    assert "pip install 'tidemill[spark]' on each of them" in str(missing)
    ours = explain(Exception("x\ntidemill.pipeline.Unavailable: source: gone\n\tat java"), "sink a")
    assert isinstance(ours, Retryable)
    busy = explain(
        Exception("org.apache.spark.SparkException: Python worker failed to connect back."), "sink a"
    )
    assert isinstance(busy, Retryable)
    java = explain(Exception("An error\n: java.lang.X: no room"), "sink a")
    assert str(java) == "sink a: java.lang.X: no room"


# --- kills


SOON_SECONDS = 240
TRANSACTIONS = 12
THERE = 12_000
"""Rows, of which a load commits 5,000 at a time."""


@pytest.fixture
def copied(sql: Client, mariadb: MariaDb) -> Iterator[str]:
    """A schema with an empty copy of a table, and triggers that count what is done to it."""
    copy = f"{sql.database}_copy"
    sql("CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40))", f"CREATE DATABASE {copy}")
    for schema, counts in ((sql.database, f"{copy}.source_counts"), (copy, f"{copy}.copy_counts")):
        if schema == copy:
            sql(f"CREATE TABLE {copy}.item LIKE item")
        sql(f"CREATE TABLE {counts} (op VARCHAR(6), id INT)")
        for op, row in (("insert", "NEW"), ("update", "NEW"), ("delete", "OLD")):
            sql(
                f"CREATE TRIGGER {schema}.{op}_{schema} AFTER {op} ON {schema}.item FOR EACH ROW "
                f"INSERT INTO {counts} VALUES ('{op}', {row}.id)"
            )
    yield copy
    sql(f"DROP DATABASE {copy}")


def change_much(sql: Client) -> None:
    for number in range(TRANSACTIONS):
        sql("BEGIN", f"INSERT INTO item (id, name) VALUES ({number}, 'first'), ({number + 1000}, 'second')")
        sql(
            f"UPDATE item SET name = 'third' WHERE id = {number}",
            f"DELETE FROM item WHERE id = {number + 1000}",
        )
        sql("COMMIT")
        if number == TRANSACTIONS // 2:
            sql("ALTER TABLE item ADD COLUMN size INT DEFAULT 5")


def counted(sql: Client, table: str) -> list[tuple[Any, ...]]:
    return sql(f"SELECT op, id, COUNT(*) FROM {table} GROUP BY op, id ORDER BY op, id")


def same(sql: Client, copy: str, more: int = 0) -> None:
    assert sql(f"SELECT * FROM {copy}.item ORDER BY id") == sql("SELECT * FROM item ORDER BY id")
    assert counted(sql, f"{copy}.copy_counts") == counted(sql, f"{copy}.source_counts")
    assert sql(f"SELECT COUNT(*) FROM {copy}.copy_counts") == [(4 * TRANSACTIONS + more,)]


@pytest.mark.soak
@pytest.mark.parametrize("failpoint", ["sink.before_commit:3", "sink.committed:3", "sink.mid_batch:3"])
def test_tasks_that_die_again_and_again_change_every_row_once(
    sql: Client, mariadb: MariaDb, copied: str, tmp_path: Path, failpoint: str
) -> None:
    """Every worker that Spark starts for a task dies in its third turn. The local engine started the feed."""
    found = feed(tmp_path, mariadb.url(), f"{sql.database}.item", {"url": mariadb.url(), "schema": copied})
    options = feed_options(found)
    local = Feed(options, open_sinks(options))
    local.start()
    feed_ended(local)
    change_much(sql)
    with running(found, tmp_path / "log", failpoint, master="local[2,60]", config=SMALL) as driver:
        assert driver.exit_status(SOON_SECONDS) == 0, driver.output()
    same(sql, copied)
    assert "Python worker exited unexpectedly" in (tmp_path / "state" / "spark.log").read_text()


@pytest.mark.soak
def test_a_driver_that_is_killed_as_it_loads_and_as_it_streams_goes_on(
    sql: Client, mariadb: MariaDb, copied: str, tmp_path: Path
) -> None:
    """The second time in the middle of a batch, whose task waits for a lock and may outlive it."""
    sink = {"url": mariadb.url(), "schema": copied}
    found = feed(tmp_path, mariadb.url(), f"{sql.database}.item", sink, until="")
    log = tmp_path / "log"
    sql(f"INSERT INTO item SELECT seq + 10000, 'there' FROM seq_1_to_{THERE}")
    with running(found, log, "sink.before_commit:3", config=SMALL, backfill={"chunk_rows": 1_000}) as driver:
        driver.dies(SOON_SECONDS)
    assert 0 < sql(f"SELECT COUNT(*) FROM {copied}.item")[0][0] < THERE
    sql("INSERT INTO item (id, name) VALUES (-1, 'zero')")
    with running(found, log, config=SMALL) as driver, mariadb.connect() as connection:
        eventually(lambda: sql(f"SELECT COUNT(*) FROM {copied}.item") == [(THERE + 1,)], SOON_SECONDS)
        assert not (tmp_path / "state" / "backfill").exists()
        connection.cursor().execute(f"LOCK TABLES {copied}.item READ")
        change_much(sql)
        waiting = "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table%'"
        eventually(lambda: sql(waiting) == [(1,)], SOON_SECONDS)
        driver.kill()
    with running(found, log, config=SMALL) as driver:
        eventually(
            lambda: sql(f"SELECT COUNT(*) FROM {copied}.copy_counts")[0][0] > 4 * TRANSACTIONS + THERE,
            SOON_SECONDS,
        )
        eventually(lambda: _state(tmp_path, driver.process.pid) == "normal", SOON_SECONDS)
        driver.process.send_signal(signal.SIGTERM)
        assert driver.exit_status(SOON_SECONDS) == 0, driver.output()
    same(sql, copied, THERE + 1)
    assert _state(tmp_path, driver.process.pid) == "stopped"
    events = re.findall(r"event=(\w+)", log.read_text())
    assert set(events) == {"starting", "normal", "stopped"}
    assert all(line.startswith("timestamp=") for line in log.read_text().splitlines()), "nothing of the JVM"


def _state(directory: Path, pid: int) -> str:
    try:
        status = StatusFile(directory / "state").load()
    except CheckpointError:
        return ""
    return status.state if status.pid == pid else ""
