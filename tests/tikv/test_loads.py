"""Tables loaded again while a feed of TiKV runs, after changes that its log doesn't have."""

from __future__ import annotations

import signal
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import checkpoint_file, open_sinks
from tidemill.engine.options import feed_options
from tidemill.events import (
    REST,
    STALE,
    WHOLE,
    Checkpoint,
    CreateTable,
    Ddl,
    DropTable,
    Item,
    RenameTables,
    Row,
    TableProgress,
    Transaction,
    TruncateTable,
    Ts,
)
from tidemill.sink.python import python_sink
from tidemill.sources import tidb as tidb_source
from tidemill.sources import tikv_loads
from tidemill.testing.child import Child
from tidemill.testing.progress import eventually, feed_ended

from ..pump.test_schema_changes import Copy
from .moves import Moves

PARTS = "partition by range (id) (partition a values less than (100), partition b values less than maxvalue)"
WITH_SMALL_CHUNKS = """
from tidemill.cli import main
from tidemill.sources import tidb, tikv_loads
tikv_loads.CHUNK_ROWS = 7
tidb.RENAME_SECONDS = 1.0
main()
"""
FEED = """
name = "copy"
data_dir = "{directory}/state"
until = "now"

[source]
url = "tikv://{pd}"
tables = ["shop.*"]

[[sink]]
url = "sqlite:///{directory}/copy.db"
"""
POINTS = ["snapshot.chunk_read:3", "sink.committed:5", "snapshot.chunk_read:6", "sink.before_commit:7"]


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    with Tidb(stores=1, tick_seconds=0.02) as made:
        yield made


@pytest.fixture
def shop(tidb: Tidb) -> Tidb:
    for database in ("shop", "depot"):
        tidb.execute(f"create database {database}")
    for name in ("shop.plain", "shop.parted", "shop.gone", "depot.moved", "shop.few", "depot.few"):
        parts = PARTS if name == "shop.parted" else ""
        tidb.execute(f"create table {name} (id int primary key, n varchar(20)) {parts}")
        fill(tidb, name, range(10) if name.endswith("few") else range(90, 110))
    tidb.execute("create table shop.loose (id int primary key nonclustered, n varchar(20))")
    fill(tidb, "shop.loose", range(90, 110))
    return tidb


def fill(tidb: Tidb, name: str, keys: range) -> None:
    with tidb.transaction() as txn:
        for key in keys:
            txn.insert(name, {"id": key, "n": f"row {key}"})


@pytest.mark.parametrize(
    "statements",
    [
        ["rename table depot.moved to shop.moved"],
        ["rename table shop.plain to shop.old, depot.moved to shop.plain"],
        ["drop table shop.gone", "recover table shop.gone"],
        ["drop table shop.gone", "flashback table shop.gone to shop.found"],
        ["alter table shop.parted truncate partition a"],
        ["alter table shop.parted drop partition a"],
        ["alter table shop.parted exchange partition a with table shop.few"],
        ["alter table shop.parted exchange partition a with table depot.few"],
        ["alter table shop.parted reorganize partition a, b into (partition c values less than maxvalue)"],
        ["alter table shop.plain modify column n char(20)"],
        ["alter table shop.loose drop primary key"],
    ],
    ids=lambda statements: statements[-1],
)
def test_a_copy_after_the_statement_is_the_same_as_a_new_one(shop, tmp_path, statements):
    copy = Copy(tmp_path, shop, "tikv", "copy", ["shop.*"])
    copy.run()
    for statement in statements:
        shop.execute(statement)
        for table in shop.schema.tables("shop"):
            number = 100 * shop.schema.new_id()
            fill(shop, f"shop.{table.info.name}", range(number, number + 10))
    copy.run()
    fresh = Copy(tmp_path, shop, "tikv", "fresh", ["shop.*"])
    fresh.run()
    assert copy.tables() == fresh.tables()


def test_rows_that_share_a_primary_key_while_it_is_dropped(shop, tmp_path):
    copy = Copy(tmp_path, shop, "tikv", "copy", ["shop.*"])
    copy.run()
    shop.execute("alter table shop.loose drop primary key", lambda: fill(shop, "shop.loose", range(90, 95)))
    copy.run()
    ids = [row[0] for row in copy.tables()["shop.loose"][1]]
    assert sorted(ids) == sorted([*range(90, 110), *[*range(90, 95)] * 3])


def test_a_table_that_is_one_transaction_comes_in_parts(shop, tmp_path, monkeypatch):
    """The rows don't fit into the memory of the sorter."""
    monkeypatch.setattr(tikv_loads, "CHUNK_ROWS", 10)
    fill(shop, "shop.parted", range(1_000, 1_300))
    section = {"url": f"tikv://{shop.pd_address}", "tables": ["shop.p*"]}
    sorter = {"memory_bytes": 0, "merge_bytes": 1, "block_changes": 10}
    options = feed_options({"data_dir": str(tmp_path), "source": section, "until": "now", "sorter": sorter})
    followed = Followed()
    for loads in (0, 10):
        followed.loads = 0
        feed = Feed(options, [python_sink("python", followed, checkpoint_file(options, "python"))])
        feed.start()
        feed_ended(feed)
        assert feed.error is None, feed.error
        assert followed.loads >= loads
        assert followed.tables["shop.parted"] == {row[0]: row for row in shop.rows("shop.parted")}
        shop.execute("alter table shop.parted truncate partition a")


def test_steps_of_a_load_may_have_the_ts_of_a_commit(shop, tmp_path, monkeypatch):
    """A commit in one phase takes the ts after the newest one: PD may give that to the next who asks."""
    copy = Copy(tmp_path, shop, "tikv", "copy", ["shop.*"])
    copy.run()
    shop.execute("alter table shop.parted truncate partition a")
    keys = iter(range(1_000, 2_000))

    def after_a_commit(_loads: tikv_loads.TikvLoads) -> Ts:
        key = next(keys)
        with shop.transaction() as txn:
            for name in ("shop.few", "shop.parted"):
                txn.insert(name, {"id": key, "n": f"row {key}"})
            txn.update("shop.parted", 100, {"n": f"row {key}"})
        return txn.commit_ts

    monkeypatch.setattr(tikv_loads.TikvLoads, "_next_ts", after_a_commit)
    copy.run()
    fresh = Copy(tmp_path, shop, "tikv", "fresh", ["shop.*"])
    fresh.run()
    assert next(keys) == 1_003  # the table is created, read, and done
    assert copy.tables() == fresh.tables()


def test_only_the_end_of_a_load_is_left():
    """The process was killed after the last row."""
    done = Checkpoint(7, "7", {REST: WHOLE, "shop.item": WHOLE})
    assert tikv_loads.tables_to_load([done, Checkpoint(9, "9")]) == {}
    assert tikv_loads.tables_to_load([Checkpoint(9, "9"), Checkpoint(7, "7", {})]) is None


def test_tables_are_read_after_the_key_that_every_sink_has():
    some = {"shop.a": TableProgress((7,)), "shop.b": TableProgress((5,)), "shop.c": STALE}
    other = {"shop.a": TableProgress((4,)), "shop.b": WHOLE}
    sinks = [Checkpoint(9, "9", {REST: WHOLE, **one}) for one in (some, other)]
    wanted = {"shop.a": (4,), "shop.b": (5,), "shop.c": ()}
    assert tikv_loads.tables_to_load([*sinks, Checkpoint(9, "9")]) == wanted


def test_a_new_sink_gets_its_snapshot_before_a_table_of_another_is_loaded_again(shop, tmp_path):
    followed = Followed()
    section = {"url": f"tikv://{shop.pd_address}", "tables": ["shop.p*"]}
    options = feed_options({"data_dir": str(tmp_path), "source": section, "until": "now"})
    checkpoint = checkpoint_file(options, "python")
    copy = {"name": "copy", "url": f"sqlite:///{tmp_path}/copy.db"}
    with_copy = feed_options({"data_dir": str(tmp_path), "source": section, "until": "now", "sink": [copy]})
    for each in (options, with_copy):
        feed = Feed(each, [*open_sinks(each), python_sink("python", followed, checkpoint)])
        feed.start()
        feed_ended(feed)
        assert feed.error is None, feed.error
        found = checkpoint.load()
        assert found is not None
        checkpoint.save(replace(found[0], loading={REST: WHOLE, "shop.plain": STALE}))
        if each is options:
            fill(shop, "shop.plain", range(200, 205))
    assert {key: len(rows) for key, rows in followed.tables.items()} == {"shop.parted": 20, "shop.plain": 25}
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        assert len(connection.execute('SELECT * FROM "shop.plain"').fetchall()) == 25


# --- random histories ----------------------------------------------------------------------------


class Followed:
    """Applies every item to rows in memory; raises for an item that doesn't fit them."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[int, Row]] = {}
        self.loads = 0
        """Number of chunks that were delivered."""

    def __call__(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Ddl):
                for action in item.actions:
                    self._change(item.full_name, action)
            elif isinstance(item, Transaction):
                self.loads += item.chunk is not None
                for change in item.rows:
                    rows = self.tables[change.table.full_name]
                    if change.before is not None:
                        assert rows.pop(change.before[0]) == change.before
                    if change.after is not None:
                        assert rows.setdefault(change.after[0], change.after) is change.after

    def _change(self, name: str, action: object) -> None:
        match action:
            case CreateTable():
                assert action.replaces or name not in self.tables
                self.tables[name] = {}
            case DropTable():
                self.tables.pop(name, None)
            case TruncateTable():
                self.tables[name].clear()
            case RenameTables(pairs):
                moved = {".".join(new): self.tables.pop(".".join(old)) for old, new in pairs}
                assert not moved.keys() & self.tables.keys()
                self.tables |= moved
            case _:
                raise AssertionError(action)

    def goes_on(self, tidb: Tidb, feed: Feed, loads: int) -> bool:
        """Return True if more than this number of chunks came, or everything did."""
        return feed.error is not None or self.loads > loads or self.has(tidb)

    def has(self, tidb: Tidb) -> bool:
        names = [f"shop.{table.info.name}" for table in tidb.schema.tables("shop")]
        return self.tables == {name: {row[0]: row for row in tidb.rows(name)} for name in names}


@pytest.fixture
def small(monkeypatch):
    """Small chunks, and garbage that is collected soon."""
    monkeypatch.setattr(tikv_loads, "CHUNK_ROWS", 7)
    monkeypatch.setattr(tidb_source, "RENAME_SECONDS", 1.0)


def follow_live(tidb: Tidb, directory: Path, seed: int, rounds: int) -> int:
    """Change a database while a feed follows it, stops and begins again, and garbage is collected as far as
    its safe point allows. Return the number of chunks."""
    moves = Moves(tidb, seed)
    followed = Followed()
    section = {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]}
    options = feed_options({"data_dir": str(directory), "source": section})
    for _ in range(rounds):
        feed = Feed(options, [python_sink("python", followed, checkpoint_file(options, "python"))])
        feed.start()
        for _ in range(4):
            moves.change()
            for _ in range(3):
                moves.write()
                if followed.tables:  # then it has set its safe point
                    tidb.gc(tidb.tso())
            eventually(partial(followed.goes_on, tidb, feed, followed.loads))
        feed.stop()
        feed_ended(feed)
        assert feed.error is None, feed.error
    feed = Feed(options, [python_sink("python", followed, checkpoint_file(options, "python"))])
    feed.start()
    eventually(lambda: feed.error is not None or followed.has(tidb))
    feed.stop()
    feed_ended(feed)
    assert feed.error is None, feed.error
    return followed.loads


def test_python_code_has_every_row_once_while_tables_are_loaded(tidb, tmp_path, small):
    assert follow_live(tidb, tmp_path, seed=1, rounds=3) > 10


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 30))
def test_many_random_moves_are_followed_live(tidb, tmp_path, small, seed):
    follow_live(tidb, tmp_path, seed, rounds=5)


def play_killed(tidb: Tidb, directory: Path, seed: int, rounds: int) -> list[int]:
    """Copy a database that changes, by a feed that is killed. Return the exit status of each run."""
    moves = Moves(tidb, seed)
    config = directory / "feed.toml"
    config.write_text(FEED.format(directory=directory, pd=tidb.pd_address))

    def run(point: str = "") -> int:
        command = [sys.executable, "-c", WITH_SMALL_CHUNKS, "run", config]
        with Child(command, directory / "feed.log", failpoint=point) as feed:
            return feed.exit_status()

    assert run() == 0
    found = []
    for number in range(rounds):
        for _ in range(3):
            moves.change()
            moves.write(2)
        found.append(run(POINTS[number % len(POINTS)]))
    assert run() == 0, (directory / "feed.log").read_text()[-3000:]
    assert {*found} <= {0, -signal.SIGKILL}
    with closing(sqlite3.connect(directory / "copy.db")) as copy:
        tables = [name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {
            name: sorted(copy.execute(f'SELECT id, n FROM "{name}"'))
            for name in tables
            if not name.startswith("tidemill")
        }
    assert rows == {name: sorted(tidb.rows(name)) for name in moves.names if name.startswith("shop")}
    return found


def test_a_feed_that_is_killed_while_it_loads_goes_on(tidb, tmp_path):
    assert play_killed(tidb, tmp_path, seed=1, rounds=2) == [-signal.SIGKILL] * 2


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 20))
def test_feeds_that_are_killed_often(tidb, tmp_path, seed):
    play_killed(tidb, tmp_path, seed, rounds=12)
