"""A target that gives no answer while another one loads a table again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidemill.engine import stages
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import eventually, feed_ended


def copied(path: Path, table: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as copy:
        return copy.execute(f'SELECT * FROM "{table}" ORDER BY id').fetchall()


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize(
    ("rounds", "stop_seconds"), [(2, 0.5), pytest.param(50, stages.STOP_SECONDS, marks=pytest.mark.soak)]
)
def test_the_sink_of_a_stopped_target_is_left_to_its_thread(
    mariadb: MariaDb,
    sql: Client,
    private_mariadb: MariaDb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rounds: int,
    stop_seconds: float,
    workers: int,
) -> None:
    monkeypatch.setattr(stages, "STOP_SECONDS", stop_seconds)
    private_mariadb.start()
    target = Client(private_mariadb, "")
    sql("CREATE TABLE item (id INT PRIMARY KEY, n INT)", "INSERT INTO item VALUES (0, 0)")
    table = f"{sql.database}.item"
    options = feed_options(
        {
            "data_dir": str(tmp_path / "state"),
            "source": {"url": mariadb.url(), "tables": [f"{sql.database}.*"]},
            "sink": [
                {"name": "silent", "url": private_mariadb.url(), "workers": workers},
                {"name": "copy", "url": f"sqlite:///{tmp_path}/copy.db"},
            ],
        }
    )
    feed = Feed(options, open_sinks(options))
    feed.start()

    def is_complete() -> bool:
        rows = sql("SELECT id, n FROM item ORDER BY id")
        return (
            all(not sink.loading and sink.ts for sink in feed.status().sinks)
            and target(f"SELECT id, n FROM {table} ORDER BY id") == rows
            and [row[:2] for row in copied(tmp_path / "copy.db", table)] == rows
        )

    eventually(lambda: feed.error or all(not sink.loading for sink in feed.status().sinks))
    for round_ in range(1, rounds + 1):
        private_mariadb.pause()
        sql(f"INSERT INTO item (id, n) VALUES ({round_}, 0)", "UPDATE item SET n = n + 1")
        eventually(lambda: feed.error or "sink silent" in {wait.stage for wait in feed.explain()})
        sql(f"ALTER TABLE item ADD COLUMN c{round_} DATETIME DEFAULT '2024/01/02'")  # copy loads it again
        eventually(lambda: feed.error or feed._live.pipeline is None)
        eventually(lambda: feed.error or "sink silent" in {wait.stage for wait in feed.explain()})
        assert feed.error is None
        private_mariadb.resume()
        eventually(lambda: feed.error or is_complete(), sign=lambda: feed.status().rows)
        assert feed.error is None
    feed.stop()
    feed_ended(feed)
    assert feed.error is None
    assert target(f"SELECT * FROM {table} ORDER BY id") == sql("SELECT * FROM item ORDER BY id")
    target.close()
