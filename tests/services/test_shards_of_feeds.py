"""Shards of several processes in one table of MariaDB: schema changes are coordinated through the target."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pymysql
import pytest
from typer.testing import CliRunner

import tidemill
from tidemill.cli import app
from tidemill.errors import SinkError
from tidemill.sharding import LockStatus
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.network_faults import NetworkFaults
from tidemill.testing.progress import eventually
from tidemill.testing.proxy import Proxy

from .shared_feeds import SharedFeeds


@pytest.fixture
def feeds(mariadb: MariaDb, database: str, tmp_path: Path) -> Iterator[SharedFeeds]:
    copy = f"{database}_copy"
    made = SharedFeeds(mariadb, database, tmp_path, {"name": "copy", "url": mariadb.url(), "schema": copy})
    made.execute(f"CREATE DATABASE {copy}")
    yield made
    made.execute(f"DROP DATABASE {copy}")


def rows(feeds: SharedFeeds, columns: str = "id, v") -> list[tuple]:
    return feeds.execute(f"SELECT {columns} FROM {feeds.schema}_copy.item ORDER BY id")


def test_a_change_is_executed_once_all_feeds_have_made_it(feeds):
    feeds.load()
    assert rows(feeds) == feeds.union("id, v")
    feeds.execute(
        "ALTER TABLE item_1 ADD COLUMN c INT DEFAULT 5",
        "INSERT INTO item_1 VALUES (50, 1, 1)",
        "ALTER TABLE item_2 ADD COLUMN c INT DEFAULT 5",
        "UPDATE item_3 SET v = 7 WHERE id = 201",
    )
    _, south = feeds.run("north", "south")
    (lock,) = south.status().locks
    assert (lock.owner, lock.unsynced) == ("feed north", [f"{feeds.schema}.item_3", "feed south"])
    assert len(rows(feeds)) == 60
    feeds.execute("ALTER TABLE item_3 ADD COLUMN c INT DEFAULT 5", "UPDATE item_3 SET c = 6 WHERE id = 202")
    feeds.run("south", "north", "south", "north")
    assert rows(feeds, "id, v, c") == feeds.union("id, v, c")


def executions(feeds: SharedFeeds, column: str = "c") -> int:
    """Return the number of times that the target has added a column to the merged table."""
    found = 0
    for log, *_ in feeds.execute("SHOW BINARY LOGS"):
        for *_, info in feeds.execute(f"SHOW BINLOG EVENTS IN '{log}'"):
            found += f"ALTER TABLE `{feeds.schema}_copy`.`item` ADD COLUMN `{column}`" in info
    return found


def owner(feeds: SharedFeeds) -> str:
    """Return the feed that owns the change that waits; empty if none does."""
    found = feeds.execute(
        f"SELECT value FROM {feeds.schema}_copy.tidemill_coordination WHERE name LIKE 'lock/%'"
    )
    changes = json.loads(found[0][0]).get("changes") if found else []
    return changes[0]["owner"] if changes else ""


def play(feeds: SharedFeeds, killed: str, point: str) -> None:
    """Two processes run while all shards change; one is killed at a point, and starts again."""
    feeds.load()
    other = "south" if killed == "north" else "north"
    with feeds.child(other) as running, feeds.child(killed, point) as dying:
        feeds.execute(
            "ALTER TABLE item_1 ADD COLUMN c INT DEFAULT 5",
            "INSERT INTO item_1 VALUES (50, 1, 1), (51, 1, 2), (52, 1, 3), (53, 1, 4)",
            "ALTER TABLE item_2 ADD COLUMN c INT DEFAULT 5",
            "UPDATE item_3 SET v = 7 WHERE id = 201",
        )
        if point != "shard.held:1":
            eventually(lambda: owner(feeds) == "north")
        feeds.execute(
            "ALTER TABLE item_3 ADD COLUMN c INT DEFAULT 5", "UPDATE item_3 SET c = 6 WHERE id > 210"
        )
        dying.dies()
        with feeds.child(killed) as again:
            wanted = feeds.union("id, v, c")
            again.wait_until(lambda: try_rows(feeds, "id, v, c") == wanted)
            running.wait_until(lambda: owner(feeds) == "")
    assert executions(feeds) == 1


def test_a_change_is_executed_once_although_its_owner_is_killed_after_it(feeds):
    play(feeds, "north", "sink.altered:2")


OWNER_POINTS = (
    "shard.held:1", "shard.reported:1", "shard.taken:1", "sink.altered:1", "sink.altered:3", "sink.altered:4",
    "sink.before_commit:3", "sink.committed:3", "shard.synced:2", "shard.released:1", "shard.passed:1",
)  # fmt: skip
SKIPPER_POINTS = (
    "shard.held:1",
    "shard.reported:1",
    "shard.synced:1",
    "shard.synced:2",
    "shard.released:1",
    "shard.passed:1",
)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("killed", "point"),
    [*(("north", point) for point in OWNER_POINTS), *(("south", point) for point in SKIPPER_POINTS)],
)
def test_a_change_is_executed_once_at_every_point_of_a_kill(feeds, killed, point):
    play(feeds, killed, point)


@pytest.mark.parametrize("faults", [5, pytest.param(60, marks=pytest.mark.soak)])
def test_feeds_agree_through_etcd_behind_a_bad_network(feeds, private_etcd, faults):
    """They change the merged table in rounds: in three at least, until the network has had all its faults."""
    network = NetworkFaults(faults, faults, longest_seconds=1.5)
    with Proxy(private_etcd.host, private_etcd.port, faults=network) as proxy:
        feeds.coordination = f"etcd://{proxy.host}:{proxy.port}/orders"
        feeds.load()
        with feeds.child("north") as north, feeds.child("south") as south:

            def is_followed() -> bool:
                assert south.process.poll() is None
                return try_rows(feeds, ", ".join(["id", "v", *columns])) == feeds.union("*")

            columns: list[str] = []
            while len(columns) < 3 or not network.is_over:
                columns.append(f"c{len(columns)}")
                for table in ("item_1", "item_2", "item_3"):
                    feeds.execute(
                        f"ALTER TABLE {table} ADD COLUMN {columns[-1]} INT DEFAULT 5",
                        f"UPDATE {table} SET {columns[-1]} = id",
                    )
                north.wait_until(is_followed, sign=lambda: network.made.total())
    print("etcd:", dict(network.made), "in", len(columns), "rounds")
    assert {executions(feeds, column) for column in columns} == {1}


def test_feeds_agree_through_etcd_which_is_restarted_meanwhile(feeds, private_etcd):
    feeds.coordination = f"etcd://{private_etcd.address}/orders"
    feeds.load()
    with feeds.child("north") as north, feeds.child("south") as south:
        feeds.execute(*(f"ALTER TABLE {table} ADD COLUMN c INT DEFAULT 5" for table in ("item_1", "item_2")))
        eventually(lambda: "item_1" in str(north_locks(feeds)))
        private_etcd.kill()
        feeds.execute("UPDATE item_3 SET v = 7", "ALTER TABLE item_3 ADD COLUMN c INT DEFAULT 5")
        eventually(lambda: (210, 7) in rows(feeds))
        private_etcd.start()
        wanted = feeds.union("id, v, c")
        north.wait_until(lambda: try_rows(feeds, "id, v, c") == wanted)
        assert south.process.poll() is None
    assert executions(feeds) == 1


def north_locks(feeds: SharedFeeds) -> list[LockStatus]:
    return tidemill.locks(feeds.directory / "north")


def call(feeds: SharedFeeds, command: str, name: str, *arguments: str) -> str:
    found = CliRunner().invoke(app, [command, str(feeds.config(name)), *arguments])
    assert found.exit_code == 0, found.output
    return found.output


def lock_of(feeds: SharedFeeds, name: str) -> LockStatus:
    """Return the feed's lock once its status has one."""

    def look() -> LockStatus | None:
        return next(iter(tidemill.locks(feeds.directory / name)), None)

    return eventually(look)


def statement_of(feeds: SharedFeeds, name: str) -> str:
    """Return the statement by which the feed's shards made the change; empty until it has reported it."""
    locks = tidemill.locks(feeds.directory / name)
    return next((one.query for lock in locks for one in lock.feeds if one.feed == name), "")


@pytest.mark.parametrize(
    "point",
    ["sink.altered:2", *(pytest.param(f"sink.altered:{n}", marks=pytest.mark.soak) for n in (1, 3, 4))],
)
def test_another_feed_executes_the_change_of_an_owner_that_died_meanwhile(feeds, point):
    feeds.load()
    with feeds.child("south"), feeds.child("north", point) as dying:
        feeds.execute(*(f"ALTER TABLE {table} ADD COLUMN c INT DEFAULT 5" for table in ("item_1", "item_2")))
        eventually(lambda: owner(feeds) == "north")
        feeds.execute("ALTER TABLE item_3 ADD COLUMN c INT DEFAULT 5", "UPDATE item_3 SET c = 6")
        dying.dies()
        lock = lock_of(feeds, "south")
        eventually(lambda: statement_of(feeds, "south"))
        said = call(feeds, "unlock", "south", lock.id, "--owner", "south", "--dry-run")
        assert said.startswith(
            "would execute 'ALTER TABLE item_3 ADD COLUMN c INT DEFAULT 5' of feed south in"
        )
        call(feeds, "unlock", "south", lock.id, "--owner", "south")
        eventually(lambda: (201, 0, 6) in try_rows(feeds, "id, v, c"))
    feeds.execute("UPDATE item_1 SET c = 8")
    feeds.run("north")
    assert rows(feeds, "id, v, c") == feeds.union("id, v, c")
    assert executions(feeds) == 1


def waits_for(feeds: SharedFeeds) -> dict[str, bool]:
    """Return the feeds of north's lock, with True for those that run."""
    return {
        one.feed: one.is_running for lock in tidemill.locks(feeds.directory / "north") for one in lock.feeds
    }


@pytest.mark.parametrize("runs", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_a_person_doesn_t_wait_for_a_feed_that_runs_or_has_stopped(feeds, runs):
    feeds.load()
    with feeds.child("north") as north, contextlib.ExitStack() as stack:
        if runs:
            stack.enter_context(feeds.child("south"))
        feeds.execute(*(f"ALTER TABLE {table} ADD COLUMN c INT DEFAULT 5" for table in ("item_1", "item_2")))
        eventually(lambda: waits_for(feeds).get("south") is runs)
        assert "feed south: not all of its shards have made it" in call(feeds, "locks", "north")
        lock = lock_of(feeds, "north").id
        assert ("have feed south start again" in call(feeds, "unlock", "north", lock)) is runs
        feeds.execute("UPDATE item_1 SET c = 6", "UPDATE item_3 SET v = 7")
        north.wait_until(lambda: (1, 6) in try_rows(feeds, "id, c"))
        if runs:
            north.wait_until(lambda: (201, 7, 5) in try_rows(feeds, "id, v, c"))
    feeds.run("south")
    assert (220, 7, 5) in rows(feeds, "id, v, c")
    feeds.execute("ALTER TABLE item_3 ADD COLUMN c INT DEFAULT 5", "UPDATE item_3 SET c = 9 WHERE id = 202")
    feeds.run("south", "north")
    assert rows(feeds, "id, v, c") == feeds.union("id, v, c")
    assert executions(feeds) == 1


def try_rows(feeds: SharedFeeds, columns: str) -> list[tuple]:
    return there(lambda: rows(feeds, columns))


def test_nothing_waits_for_a_feed_that_has_left_for_good(feeds):
    feeds.load()
    with feeds.child("north") as north:
        feeds.execute(*(f"ALTER TABLE {table} ADD COLUMN c INT DEFAULT 5" for table in ("item_1", "item_2")))
        eventually(lambda: waits_for(feeds).get("south") is False)
        said = "wait for feed south no more; its rows stay, and it can't continue\n"
        lock = lock_of(feeds, "north").id
        assert call(feeds, "unlock", "north", lock, "--force-remove", "south") == said
        feeds.execute("UPDATE item_1 SET c = 6")
        north.wait_until(lambda: (1, 6) in try_rows(feeds, "id, c"))
    with pytest.raises(SinkError, match=r"feed south is at change 0 of whole\.item, and the feeds that"):
        feeds.run("south")


def test_a_feed_or_a_source_that_another_process_runs_is_refused(feeds):
    feeds.source_names = {"north": "berlin", "south": "berlin"}
    with feeds.child("north"):
        eventually(lambda: "north" in feeds.running)
        with pytest.raises(SinkError, match="source berlin is run by another process of feed north, "):
            feeds.run("south")
        feeds.directory /= "elsewhere"
        feeds.directory.mkdir()
        with pytest.raises(SinkError, match="feed north is run by another process, "):
            feeds.run("north")


@pytest.mark.soak
def test_a_feed_that_starts_later_joins_and_is_waited_for(feeds):
    feeds.run("north")
    feeds.execute(*(f"ALTER TABLE {table} ADD COLUMN c INT DEFAULT 5" for table in ("item_1", "item_2")))
    feeds.run("north")
    with pytest.raises(SinkError, match=r"differs from the merged table whole\.item: it lacks column c"):
        feeds.run("south")
    feeds.execute("ALTER TABLE item_3 ADD COLUMN c INT DEFAULT 5")
    feeds.run("south")
    assert rows(feeds, "id, v, c") == feeds.union("id, v, c")
    feeds.execute(*(f"ALTER TABLE {table} ADD COLUMN d INT DEFAULT 5" for table in ("item_1", "item_2")))
    feeds.run("north")
    assert owner(feeds) == "north"
    feeds.execute("ALTER TABLE item_3 ADD COLUMN d INT DEFAULT 5")
    feeds.run("south", "north", "south")
    assert rows(feeds, "id, v, c, d") == feeds.union("id, v, c, d")


@pytest.mark.parametrize("kind", ["postgres", pytest.param("sqlite", marks=pytest.mark.soak)])
def test_feeds_share_tables_of_other_targets(feeds, kind, postgresql, postgres_database, tmp_path):
    url = postgresql.url(postgres_database) if kind == "postgres" else f"sqlite:///{tmp_path}/copy.db"
    feeds.target = {"name": "copy", "url": url}
    feeds.load()
    changes = [f"ALTER TABLE {table} ADD COLUMN c INT DEFAULT 5" for table in ("item_1", "item_2", "item_3")]
    with feeds.child("north") as north, feeds.child("south"):
        feeds.execute(*changes, "UPDATE item_1 SET c = 6", "UPDATE item_3 SET c = 7 WHERE id = 202")
        wanted = feeds.union("id, v, c")
        if kind == "postgres":
            with postgresql.connect(dbname=postgres_database, autocommit=True) as copy:
                query = "SELECT id, v, c FROM whole.item ORDER BY 1"
                north.wait_until(lambda: there(lambda: copy.execute(query).fetchall()) == wanted)
        else:
            with contextlib.closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
                query = 'SELECT id, v, c FROM "whole.item" ORDER BY 1'
                north.wait_until(lambda: there(lambda: copy.execute(query).fetchall()) == wanted)


def there(select: Callable[[], list[tuple]]) -> list[tuple]:
    """Return the rows; none while the table lacks a column."""
    with contextlib.suppress(pymysql.MySQLError, psycopg.Error, sqlite3.Error):
        return select()
    return []
