"""Random schema changes of an emulated TiDB, copied into SQLite through kill -9 and restarts.

A feed that followed everything, through TiKV or through pumps, has the same tables with the same rows as one
that takes a snapshot at the end.
"""

from __future__ import annotations

import signal
import sqlite3
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidemill.emulator.sql.schema import SqlTable
from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.testing.child import CLI, Child
from tidemill.testing.progress import feed_ended

from .world import History

FEED = """\
name = "{target}"
data_dir = "{directory}/state"
until = "now"

[source]
{source}
tables = {tables}

[[sink]]
url = "sqlite:///{directory}/{target}.db"
"""
POINTS = ["sink.committed:2", "sink.before_commit:3", "sink.mid_batch:5"]


class Copy:
    """A copy in SQLite, and the feed that makes it."""

    def __init__(
        self,
        directory: Path,
        tidb: Tidb,
        kind: str,
        target: str,
        tables: Sequence[str] = ("shop.*", "left.*"),
    ) -> None:
        self._directory = directory
        self._target = target
        source = f'url = "tikv://{tidb.pd_address}"'
        if kind == "pump":
            source = f'url = "pump://{tidb.pumps.address}"\npd = ["{tidb.pd_address}"]\nretry_seconds = 0.02'
        self._config = directory / f"{target}.toml"
        self._config.write_text(
            FEED.format(directory=directory, source=source, target=target, tables=[*tables])
        )

    def run(self) -> None:
        """Run until now, in this process."""
        options = feed_options(tomllib.loads(self._config.read_text()))
        feed = Feed(options, open_sinks(options))
        feed.start()
        feed_ended(feed)
        if feed.error is not None:
            raise feed.error

    def run_killed(self, point: str) -> None:
        """Run until now, or until the process is killed at a failpoint that it reaches before."""
        log = self._directory / f"{self._target}.log"
        with Child([*CLI, "run", self._config], log, failpoint=point) as feed:
            assert feed.exit_status() in (0, -signal.SIGKILL), feed.output()[-3000:]

    def tables(self) -> dict[str, tuple[Any, ...]]:
        """The columns of each table by name, and its rows with the columns in this order."""
        with closing(sqlite3.connect(self._directory / f"{self._target}.db")) as copy:
            return {
                name: _table(copy, name)
                for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                if not name.startswith("tidemill")
            }


def _table(copy: sqlite3.Connection, name: str) -> tuple[Any, ...]:
    info = copy.execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (name,))
    columns = sorted(info.fetchall())
    names = ", ".join(f'"{column}"' for column, *_ in columns)
    rows = copy.execute(f'SELECT {names} FROM "{name}"').fetchall()
    return tuple(columns), tuple(sorted(rows, key=repr))


@pytest.fixture(params=["tikv", "pump"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[1, 2], ids=["arguments 1", "arguments 2"])
def tidb(request: pytest.FixtureRequest, kind: str) -> Iterator[Tidb]:
    """A TiDB as of v8.1, and one of a later version; those that remove columns late have no binlogs."""
    version = request.param
    removes_late = version == 2 and kind == "tikv"
    with Tidb(stores=1, tick_seconds=0.02, args_version=version, removes_late=removes_late) as made:
        made.add_pump()
        made.add_pump()
        yield made


def play(tidb: Tidb, directory: Path, kind: str, seed: int, rounds: int) -> None:
    history = History(tidb, seed)
    history.run(20)
    copy = Copy(directory, tidb, kind, "copy", ["shop.*"])
    copy.run()
    for number in range(rounds):
        for _ in range(6):
            history.change_schema()
            history.run(2)
        copy.run_killed(POINTS[number % len(POINTS)])
    copy.run()
    fresh = Copy(directory, tidb, "tikv", "fresh", ["shop.*"])
    fresh.run()
    assert copy.tables() == fresh.tables()


def test_a_copy_that_follows_random_schema_changes_is_the_same_as_a_new_one(tidb, tmp_path, kind):
    play(tidb, tmp_path, kind, seed=1, rounds=3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 40))
def test_many_random_schema_changes(tidb, tmp_path, kind, seed):
    play(tidb, tmp_path, kind, seed, rounds=6)


STATEMENTS = """
    rename table shop.a to shop.b
    rename table shop.b to shop.a, shop.c to shop.d
    rename table shop.a to shop.x, shop.d to shop.a, shop.x to shop.d
    alter table shop.d rename to shop.c
    rename table shop.c to depot.c, shop.a to shop.c
    truncate table shop.c
    drop table shop.c
    drop database left
    alter table shop.kept modify column price decimal(12,2)
    alter table shop.kept change column price cost decimal(14,2) first
    alter table shop.kept rename column n to name
    alter table shop.kept alter column name set default 'x'
    alter table shop.kept add column c int not null default 3, modify column name varchar(40)
    alter table shop.kept modify column c bigint not null after id, drop column name
    alter table shop.free add primary key (id) nonclustered
"""


def test_a_feed_that_stops_between_the_steps_of_each_job_goes_on_where_it_was(tidb, tmp_path, kind):
    """Names and states of tables change before a job is done."""
    for database in ("shop", "depot", "left"):
        tidb.execute(f"create database {database}")
    tidb.execute("create table shop.free (id int not null, n varchar(20))")
    names = ["shop.a", "shop.c", "shop.kept", "left.one", "left.two"]
    for name in names:
        tidb.execute(f"create table {name} (id int primary key, n varchar(20), price decimal(10,2))")
        insert(tidb, name)
    copy = Copy(tmp_path, tidb, kind, "copy")
    copy.run()
    assert set(copy.tables()) == {*names, "shop.free"}

    def between() -> None:
        for table in tidb.schema.tables("shop"):
            insert(tidb, f"shop.{table.info.name}")
        if not any(is_waited_for(table) for table in tidb.schema.tables("shop")):
            copy.run()

    for statement in STATEMENTS.strip().splitlines():
        tidb.execute(statement.strip(), between)
        between()
    fresh = Copy(tmp_path, tidb, "tikv", "fresh", ["shop.*"])
    fresh.run()
    assert copy.tables() == fresh.tables()
    assert len(copy.tables()["shop.kept"][1]) == len(tidb.rows("shop.kept")) > 10


def is_waited_for(table: SqlTable) -> bool:
    """True if the feed doesn't pass the present step of a job before the job is done."""
    return any(column.name.startswith("_Tombstone$_") for column in table.info.columns)


def insert(tidb: Tidb, name: str) -> None:
    with tidb.transaction() as txn:
        columns = tidb.schema.table(name).decoder.table.columns
        number = tidb.schema.new_id()
        txn.insert(name, [f"{number}" for _ in columns])
