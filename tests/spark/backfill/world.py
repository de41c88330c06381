"""A source that is written to, and the feed that goes on where a backfill ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import FeedOptions, feed_options
from tidemill.spark.backfill.backfilled import Backfilled
from tidemill.spark.backfill.directory import READ, BackfillDirectory
from tidemill.testing.private_server import PrivateServer
from tidemill.testing.progress import eventually, feed_ended

PAUSE_SECONDS = 0.0015
"""Pause of a writer between two transactions, which makes about 500 per second."""


def into_copy(url: str, server: PrivateServer, tables: str, copy: str, directory: Path) -> FeedOptions:
    """A feed of these tables into another schema of the server, up to now."""
    return feed_options(
        {
            "data_dir": str(directory),
            "until": "now",
            "source": {"url": url, "tables": [tables]},
            "sink": [{"url": server.url(copy, scheme="mysql+pymysql")}],
        }
    )


def load(done: Backfilled, options: FeedOptions) -> None:
    options.data_dir.mkdir(parents=True, exist_ok=True)
    done.load(open_sinks(options))


def go_on(options: FeedOptions) -> None:
    """The ordinary feed, from where its sinks are."""
    feed = Feed(options, open_sinks(options))
    feed.start()
    feed_ended(feed)
    if feed.error is not None:
        raise feed.error


def rows(server: PrivateServer, database: str, table: str) -> list[tuple[Any, ...]]:
    """In an order that is the same for equal rows."""
    return sorted(server.execute(f"SELECT * FROM {table}", database=database), key=repr)


def planned(directory: Path) -> Any:
    return eventually(BackfillDirectory(directory).plan)


def finished(directory: Path) -> set[int]:
    return BackfillDirectory(directory).numbers(READ)


class Writer:
    """Changes rows of the tables `a`, `w` and `k` until it is stopped: a transaction after the other."""

    def __init__(self, server: PrivateServer, database: str, rows: int, seed: int = 1) -> None:
        self.transactions = 0
        self._connection = server.connect(database=database, autocommit=False)
        self._rows = rows
        self._random = Random(seed)
        self._stop = Event()
        self._thread = Thread(target=self._run)

    def _run(self) -> None:
        with self._connection as connection, connection.cursor() as cursor:
            while not self._stop.is_set():
                for statement in self._transaction(self.transactions):
                    cursor.execute(statement)
                connection.commit()
                self.transactions += 1
                self._stop.wait(PAUSE_SECONDS)

    def _transaction(self, number: int) -> Sequence[str]:
        some = self._random.randrange
        key = some(3 * self._rows + 2)
        always = f"UPDATE a SET n = n + 1, s = 'changed {number}' WHERE id = {key // 3 * 3}"
        others = (
            [f"DELETE FROM a WHERE id = {some(3 * self._rows)}"],
            [f"INSERT INTO a VALUES ({10**15 + number}, 1, NULL, NULL, NULL, 0.1, '838:59:59', NULL)"],
            [f"UPDATE IGNORE a SET id = {some(3 * self._rows)} WHERE id = {some(3 * self._rows)}"],
            [
                f"UPDATE w SET n = n + 1 WHERE s = 'k{some(1000)}'",
                f"REPLACE INTO w VALUES ('n{some(50)}', {number})",
                f"DELETE FROM w WHERE s = 'n{some(50)}'",
            ],
            [
                f"UPDATE IGNORE k SET n = n + 1 WHERE s = 'k{some(100)}' LIMIT 1",
                f"DELETE FROM k WHERE n = {some(50)} LIMIT 1",
                "INSERT IGNORE INTO k VALUES ('x', 1)",
            ],
        )
        return always, *others[number % len(others)]

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def create_tables(sql: Callable[..., Any], rows: int) -> None:
    """`a` has a key of integers, `w` of strings, `k` none."""
    sql(
        "CREATE TABLE a (id BIGINT UNSIGNED PRIMARY KEY, n INT, s VARCHAR(40), p DECIMAL(10,2),"
        " d DATETIME(3), f FLOAT, t TIME(2), b VARBINARY(9))",
        "INSERT INTO a SELECT seq * 3, seq, CONCAT('row ', seq), seq / 7, '2024-02-03 04:05:06.789', seq / 3,"
        f" '-11:12:13.45', UNHEX(HEX(seq)) FROM seq_1_to_{rows}",
        "CREATE TABLE w (s VARCHAR(20) PRIMARY KEY, n INT)",
        "INSERT INTO w SELECT CONCAT('k', seq), seq FROM seq_1_to_1000",
        "CREATE TABLE k (s VARCHAR(20), n INT)",
        "INSERT INTO k SELECT CONCAT('k', seq % 100), seq % 50 FROM seq_1_to_1000",
    )


def processes(session: int) -> list[int]:
    """Return the processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


@contextmanager
def held_back(server: PrivateServer, database: str, table: str) -> Iterator[None]:
    """Nobody can read `table` meanwhile."""
    with HeldBack(server, database, table) as held:
        held.hold()
        yield


class HeldBack:
    """A report that lets nobody read `table`, from before the first chunk is read until the block ends."""

    def __init__(self, server: PrivateServer, database: str, table: str) -> None:
        self._connection = server.connect(database=database)
        self._table = table
        self._held = Event()

    def __call__(self, _progress: object) -> None:
        if not self._held.is_set():
            self.hold()

    def hold(self) -> None:
        self._connection.cursor().execute(f"LOCK TABLES {self._table} WRITE")
        self._held.set()

    def __enter__(self) -> HeldBack:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def connections(sql: Callable[..., Any]) -> int:
    """To the server, of anybody."""
    return int(sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER <> 'system user'")[0][0])


def workers(spark: Any) -> set[int]:
    """Spark's Python workers on this machine: children of the daemon that its JVM has started."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    daemons = {pid for pid, parent in parents.items() if parent == spark.sparkContext._gateway.proc.pid}
    return {pid for pid, parent in parents.items() if parent in daemons}
