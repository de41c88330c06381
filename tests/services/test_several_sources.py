"""Several MariaDB servers in one feed: exactly once, each server's transactions whole and in its order."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pymysql
import pytest

import tidemill
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.engine.sentences import sentence
from tidemill.engine.status import FeedStatus, StatusFile
from tidemill.errors import CheckpointError, SourceError
from tidemill.testing.child import CLI, Child
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import feed_ended, moved
from tidemill.testing.repeated import RepeatedInSession

ACCOUNTS = 20
OPENING = 100


class Bank(RepeatedInSession):
    """A server with a bank: transfers keep its sum, and a log numbers them in their order."""

    def __init__(self, name: str, server: MariaDb) -> None:
        super().__init__(lambda: server.connect(read_timeout=60), self.transfer)
        self.name = name
        self.server = server
        self.transfers = 0

    def create(self) -> None:
        self.execute(
            f"CREATE DATABASE {self.name}",
            f"CREATE TABLE {self.name}.account (id INT PRIMARY KEY, balance INT NOT NULL)",
            f"INSERT INTO {self.name}.account SELECT seq, {OPENING} FROM seq_1_to_{ACCOUNTS}",
            f"CREATE TABLE {self.name}.transfer (n INT PRIMARY KEY, amount INT)",
        )

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """The rows of the last one."""
        return self.server.execute(*statements, database="mysql")

    def transfer(self, connection: pymysql.connections.Connection[Any]) -> None:
        number = self.transfers
        table = f"{self.name}.account"
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(f"UPDATE {table} SET balance = balance - 1 WHERE id = {number % ACCOUNTS + 1}")
            cursor.execute(
                f"UPDATE {table} SET balance = balance + 1 WHERE id = {(number + 7) % ACCOUNTS + 1}"
            )
            log = f"{self.name}.transfer"  # no AUTO_INCREMENT, which has a gap where a server was killed
            cursor.execute(f"INSERT INTO {log} SELECT COALESCE(MAX(n), 0) + 1, 1 FROM {log}")
            cursor.execute("COMMIT")
        self.transfers += 1

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return self.execute(f"SELECT * FROM {self.name}.{table} ORDER BY 1")


@pytest.fixture
def banks(tmp_path: Path, mariadb_template: Path) -> Iterator[list[Bank]]:
    with ExitStack() as stack:
        banks = []
        for name in ("north", "south"):
            server = MariaDb(tmp_path / name, template=mariadb_template)
            stack.callback(server.stop)
            bank = Bank(name, server.start())
            stack.callback(bank.stop)
            bank.create()
            banks.append(bank)
        yield banks


def section(bank: Bank, **more: Any) -> dict[str, Any]:
    return {
        "name": bank.name,
        "url": bank.server.url(),
        "tables": [f"{bank.name}.*"],
        "retry_longest_seconds": 0.5,
        "timeout_seconds": 2.0,
        **more,
    }


def write_config(directory: Path, banks: list[Bank]) -> Path:
    lines = ['name = "both"', f'data_dir = "{directory}/state"']
    for bank in banks:
        lines += ["[[source]]", *(f"{key} = {json.dumps(value)}" for key, value in section(bank).items())]
    lines += ["[[sink]]", 'name = "copy"', f'url = "sqlite:///{directory}/copy.db"']
    config = directory / "feed.toml"
    config.write_text("\n".join(lines) + "\n")
    return config


def count_changes(directory: Path, banks: list[Bank]) -> None:
    """Triggers in the copy count each row change that it gets."""
    with closing(sqlite3.connect(directory / "copy.db", timeout=60)) as copy, copy:
        copy.execute("CREATE TABLE counted (tbl TEXT, op TEXT, n INTEGER, PRIMARY KEY (tbl, op))")
        for bank in banks:
            for table in ("account", "transfer"):
                for op in ("INSERT", "UPDATE", "DELETE"):
                    copy.execute(
                        f'CREATE TRIGGER "{bank.name}_{table}_{op}" AFTER {op} ON "{bank.name}.{table}" '
                        f"BEGIN INSERT INTO counted VALUES ('{bank.name}.{table}', '{op}', 1) "
                        "ON CONFLICT DO UPDATE SET n = n + 1; END"
                    )


def copied(directory: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{directory}/copy.db?mode=ro", uri=True, timeout=60)) as copy:
        return copy.execute(query).fetchall()


def is_consistent(directory: Path, banks: list[Bank]) -> bool:
    """True if at this moment each bank's sum is right, and its transfers are the first ones without a gap."""
    queries = [
        f'SELECT (SELECT SUM(balance) FROM "{bank.name}.account"), '
        f'(SELECT COUNT(*) FROM "{bank.name}.transfer"), '
        f'(SELECT COALESCE(MAX(n), 0) FROM "{bank.name}.transfer")'
        for bank in banks
    ]
    return all(
        total == ACCOUNTS * OPENING and count == last
        for query in queries
        for total, count, last in copied(directory, query)
    )


def status_of(directory: Path) -> FeedStatus | None:
    try:
        return StatusFile(directory / "state").load()
    except CheckpointError:
        return None


def run_to_end(config: Path) -> None:
    with Child([*CLI, "run", config, "--until", "now"], config.parent / "feed.log") as child:
        status = child.exit_status(sign=lambda: moved(status_of(config.parent)))
        assert status == 0, child.output()


def compare(directory: Path, banks: list[Bank]) -> None:
    for bank in banks:
        for table in ("account", "transfer"):
            assert copied(directory, f'SELECT * FROM "{bank.name}.{table}" ORDER BY 1') == bank.rows(table)


def arrived(directory: Path, bank: Bank) -> int:
    return int(copied(directory, f'SELECT COUNT(*) FROM "{bank.name}.transfer"')[0][0])


def test_two_servers_arrive_once_while_all_of_them_fail(tmp_path, banks):
    config = write_config(tmp_path, banks)
    log = tmp_path / "feed.log"
    run_to_end(config)
    count_changes(tmp_path, banks)
    for bank in banks:
        bank.start()

    def further(child: Child, bank: Bank, transfers: int) -> None:
        goal = arrived(tmp_path, bank) + transfers
        child.wait_until(lambda: arrived(tmp_path, bank) >= goal, sign=lambda: moved(status_of(tmp_path)))
        assert is_consistent(tmp_path, banks)

    for point in ("sink.committed:20", "sink.before_commit:10", "binlog.batch_read:40", "sink.mid_batch:5"):
        with Child([*CLI, "run", config], log, failpoint=point) as child:
            child.dies()
        assert is_consistent(tmp_path, banks)
    with Child([*CLI, "run", config], log) as child:
        north, south = banks
        further(child, north, 50)
        south.server.kill()
        south.server.start()
        further(child, south, 50)
        north.server.restart()
        further(child, north, 50)
        further(child, south, 50)
        for bank in banks:
            bank.stop()
        child.process.send_signal(signal.SIGINT)
        assert child.exit_status() == 0
    run_to_end(config)
    compare(tmp_path, banks)
    assert is_consistent(tmp_path, banks)
    transfers = {bank.name: len(bank.rows("transfer")) for bank in banks}
    expected = {(f"{name}.account", "UPDATE"): 2 * n for name, n in transfers.items()}
    expected |= {(f"{name}.transfer", "INSERT"): n for name, n in transfers.items()}
    assert {(table, op): n for table, op, n in copied(tmp_path, "SELECT * FROM counted")} == expected
    assert all(n > 100 for n in transfers.values())


def test_a_frozen_server_holds_the_feed_and_explain_names_it(tmp_path, banks):
    north, south = banks
    config = write_config(tmp_path, banks)
    run_to_end(config)
    with Child([*CLI, "run", config], tmp_path / "feed.log") as child:
        for bank in banks:
            with bank.server.connect() as connection:
                bank.transfer(connection)
        child.wait_until(lambda: all(arrived(tmp_path, bank) == 1 for bank in banks))
        process = south.server._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        try:
            with north.server.connect() as connection:
                north.transfer(connection)

            def named() -> list[str]:
                status = status_of(tmp_path)
                found = [] if status is None else [w for w in status.waits if w.kind == "source"]
                return [sentence(w) for w in found if w.seconds > 3]

            (said,) = child.wait_until(named)
            assert f"for source south ({south.server.host}:{south.server.port})" in said
            retries = child.wait_until(
                lambda: [w for w in getattr(status_of(tmp_path), "waits", []) if w.kind == "retry"]
            )
            assert {wait.stage for wait in retries} == {"source south"}
            assert arrived(tmp_path, north) == 1
        finally:
            os.kill(process.pid, signal.SIGCONT)
        child.wait_until(lambda: arrived(tmp_path, north) == 2)
        child.process.send_signal(signal.SIGINT)
        assert child.exit_status() == 0
    compare(tmp_path, banks)


# --- two sources on one server


def run(server: MariaDb, folder: Path, patterns: dict[str, str], *copies: str) -> None:
    sections = [
        {"name": name, "url": server.url(), "tables": [pattern], "chunk_rows": 10}
        for name, pattern in patterns.items()
    ]
    sinks = [{"name": name, "url": f"sqlite:///{folder / name}.db"} for name in copies]
    options = feed_options(
        {"data_dir": str(folder / "state"), "until": "now", "source": sections, "sink": sinks}
    )
    feed = Feed(options, open_sinks(options))
    feed.start()
    feed_ended(feed)
    if feed.error is not None:
        raise feed.error


def test_a_sink_that_is_added_later_is_loaded_from_all_sources(mariadb, database, tmp_path):
    patterns = {"one": f"{database}.t", "other": f"{database}.u"}
    with mariadb.connect(database=database) as connection, connection.cursor() as cursor:
        for table in "tu":
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
            cursor.execute(f"INSERT INTO {table} SELECT seq, 0 FROM seq_1_to_95")
        run(mariadb, tmp_path, patterns, "first")
        cursor.execute("UPDATE t SET v = 1 WHERE id > 50")
        cursor.execute("UPDATE u SET v = 2 WHERE id < 50")
        run(mariadb, tmp_path, patterns, "first", "second")
        cursor.execute("DELETE FROM t WHERE id > 90")
        cursor.execute("INSERT INTO u VALUES (100, 3)")
        run(mariadb, tmp_path, patterns, "first", "second")
        for table in "tu":
            cursor.execute(f"SELECT id, v FROM {table} ORDER BY id")
            present = list(cursor.fetchall())
            for name in ("first", "second"):
                with closing(sqlite3.connect(tmp_path / f"{name}.db")) as copy:
                    query = f'SELECT id, v FROM "{database}.{table}" ORDER BY id'
                    assert copy.execute(query).fetchall() == present


def test_a_table_that_two_sources_follow_is_refused(mariadb, database, tmp_path):
    mariadb.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database)
    with pytest.raises(SourceError, match=r"t is followed in source one and in source other"):
        run(mariadb, tmp_path, {"one": f"{database}.*", "other": f"{database}.t"}, "copy")


def test_a_source_that_is_added_later_needs_another_target(mariadb, database, tmp_path):
    mariadb.execute(*(f"CREATE TABLE {table} (id INT PRIMARY KEY)" for table in "tu"), database=database)
    run(mariadb, tmp_path, {"one": f"{database}.t"}, "copy")
    with pytest.raises(CheckpointError, match=r"sink copy has what came from one: .*or name another target"):
        run(mariadb, tmp_path, {"one": f"{database}.t", "other": f"{database}.u"}, "copy")


def test_a_program_reads_several_sources(mariadb, database, tmp_path):
    with mariadb.connect(database=database) as connection, connection.cursor() as cursor:
        for table in "tu":
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
            cursor.execute(f"INSERT INTO {table} VALUES (1), (2)")
    sources = [
        {"name": "one", "url": mariadb.url(), "tables": [f"{database}.t"]},
        {"name": "other", "url": mariadb.url()},
    ]
    found = []
    with tidemill.open(sources, [f"{database}.u"], data_dir=tmp_path, until="now") as feed:
        for txn in feed:
            found += [(row.table.name, row.after) for row in txn.rows]
            feed.ack(txn)
    assert sorted(found) == [("t", (1,)), ("t", (2,)), ("u", (1,)), ("u", (2,))]
