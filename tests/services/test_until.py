"""A feed that ends by itself, and loads what a sink lacks before it does."""

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from tidemill.engine.feed import Feed
from tidemill.engine.opening import checkpoint_file, open_sinks
from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError, SourceError
from tidemill.puller.puller import PullerStatistics
from tidemill.sink.python import python_sink
from tidemill.sources.mysql import MysqlSource
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import feed_ended

from .pulling import VERSIONED_BY_TRANSACTIONS


def run(server: MariaDb, database: str, folder: Path, *copies: str, tables: tuple[str, ...] = ()) -> None:
    options = feed_options(
        {
            "data_dir": str(folder / "state"),
            "until": "now",
            "source": {"url": server.url(), "tables": list(tables) or [f"{database}.*"], "chunk_rows": 10},
            "sink": [{"name": name, "url": f"sqlite:///{folder / name}.db"} for name in copies],
        }
    )
    feed = Feed(options, open_sinks(options))
    feed.start()
    feed_ended(feed)
    if feed.error is not None:
        raise feed.error
    assert feed.status().state == "finished"


def copied(folder: Path, name: str, database: str) -> list[tuple[int, int]]:
    with closing(sqlite3.connect(folder / f"{name}.db")) as connection:
        return connection.execute(f'SELECT id, v FROM "{database}.t" ORDER BY id').fetchall()


def test_a_sink_that_is_added_later_is_loaded_before_the_feed_ends(mariadb, database, tmp_path):
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)")
        cursor.execute(f"INSERT INTO {database}.t SELECT seq, 0 FROM {database}.seq_1_to_95")
        run(mariadb, database, tmp_path, "first")
        cursor.execute(f"UPDATE {database}.t SET v = 1 WHERE id > 50")
        run(mariadb, database, tmp_path, "first", "second")
        cursor.execute(f"SELECT id, v FROM {database}.t ORDER BY id")
        present = list(cursor.fetchall())
    assert copied(tmp_path, "first", database) == present
    assert copied(tmp_path, "second", database) == present


def test_a_busy_puller_s_old_position_is_not_shown(mariadb, database, tmp_path, monkeypatch):
    asked = Event()

    def old_answer(source: MysqlSource) -> PullerStatistics:
        asked.set()
        return PullerStatistics("following", "binlog.000001:4", 0, 0, 0, 0, 0, 0, 0.0, 0)

    monkeypatch.setattr(MysqlSource, "statistics", old_answer)
    mariadb.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    options = feed_options(
        {
            "data_dir": str(tmp_path),
            "until": "now",
            "source": {"url": mariadb.url(), "tables": [f"{database}.*"]},
        }
    )
    sink = python_sink("python", lambda items: asked.wait(), checkpoint_file(options, "python"))
    feed = Feed(options, [sink])
    feed.start()
    feed_ended(feed)
    status = feed.status()
    assert status.position == status.sinks[0].position != ""


def test_tables_that_no_pattern_matches_any_more_keep_their_rows(mariadb, database, tmp_path):
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)")
        cursor.execute(f"CREATE TABLE {database}.u (id INT PRIMARY KEY, v INT)")
        cursor.execute(f"INSERT INTO {database}.t VALUES (1, 1)")
        run(mariadb, database, tmp_path, "first", tables=[f"{database}.*"])
        cursor.execute(f"INSERT INTO {database}.t VALUES (2, 2)")
        run(mariadb, database, tmp_path, "first", tables=[f"{database}.u"])
        assert copied(tmp_path, "first", database) == [(1, 1)]
        cursor.execute(f"DELETE FROM {database}.t WHERE id = 1")
        run(mariadb, database, tmp_path, "first", tables=[f"{database}.*"])
    assert copied(tmp_path, "first", database) == [(2, 2)]


def test_a_table_that_cannot_be_followed_is_left_out_of_a_feed_that_has_begun(mariadb, database, tmp_path):
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)")
        run(mariadb, database, tmp_path, "first")
        cursor.execute(f"CREATE TABLE {database}.other {VERSIONED_BY_TRANSACTIONS}")
        cursor.execute(f"INSERT INTO {database}.t VALUES (1, 1)")
        with pytest.raises(
            SourceError, match=f'other .*: add "!{database}.other" at the end of source.tables'
        ):
            run(mariadb, database, tmp_path, "first")
        run(mariadb, database, tmp_path, "first", tables=[f"{database}.*", f"!{database}.other"])
    assert copied(tmp_path, "first", database) == [(1, 1)]


@pytest.mark.parametrize("name", ["", "../x", "a b", "a\0b", "x" * 65])
def test_a_name_that_can_be_no_file_name_is_refused(name):
    with pytest.raises(ConfigError, match=r"^name: up to 64 letters"):
        feed_options({"name": name, "source": {"url": "mysql://host", "tables": ["shop.item"]}})
