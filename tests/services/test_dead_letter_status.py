"""The state of a running feed that has dead letters, and its metrics."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import tidemill
from tidemill.engine.feed import Feed
from tidemill.engine.metrics import metrics_text
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.testing.progress import eventually


def test_a_running_feed_with_dead_letters_is_in_the_state_warning_until_they_are_dropped(
    tmp_path, mariadb, database, sql
):
    sql("CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(20))", "INSERT INTO item VALUES (1, 'a')")
    file = tmp_path / "copy.db"
    url = f"sqlite:///{file}"
    options = feed_options(
        {
            "name": "copy",
            "data_dir": str(tmp_path / "state"),
            "source": {"url": mariadb.url(), "tables": [f"{database}.item"]},
            "sink": [{"name": "lake", "url": url, "on_error": "dead letters"}],
        }
    )
    feed = Feed(options, open_sinks(options))
    feed.start()
    table = f"{database}.item"

    def has_rows(count):
        with closing(sqlite3.connect(file)) as copy:
            there = copy.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchall()
            return there and copy.execute(f'SELECT COUNT(*) FROM "{table}"').fetchall() == [(count,)]

    try:
        eventually(lambda: feed.status().state == "normal" and has_rows(1))
        with closing(sqlite3.connect(file)) as copy:
            copy.execute(
                f"CREATE TRIGGER no BEFORE INSERT ON \"{table}\" WHEN NEW.name = 'bad' "
                "BEGIN SELECT RAISE(ABORT, 'bad name'); END"
            )
            copy.commit()
        sql("INSERT INTO item VALUES (2, 'bad')", "INSERT INTO item VALUES (3, 'c')")
        eventually(lambda: feed.status().sinks[0].dead_letters and has_rows(2))
        status = feed.status()
        assert (status.state, status.sinks[0].state) == ("warning", "warning")
        assert status.detail == "sink lake: 1 dead letter: run tidemill dead-letters list"
        wanted = f'tidemill_dead_letters_of_table{{feed="copy",sink="lake",table="{table}"}} 1.0'
        assert wanted in metrics_text([status]).splitlines()
        with closing(tidemill.open_dead_letters(url, feed="copy")) as letters:
            assert [one.key for one in letters.list()] == ["id=2"]
            letters.drop()
        sql("INSERT INTO item VALUES (4, 'd')")
        eventually(lambda: feed.status().state == "normal" and has_rows(3))
        assert "dead_letters_of_table{" not in metrics_text([feed.status()])
    finally:
        feed.stop()
        feed.wait()
    assert feed.error is None
