"""Feeds whose place in the binlog was purged: all tables are loaded again into the present targets."""

from __future__ import annotations

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidemill.testing.feeds import CopiedTable
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import eventually


class Purged(CopiedTable):
    """A feed with two targets, one of which leaves a table out."""

    def configure(self, **options: Any) -> None:
        super().configure(**{"sinks": [self.sqlite_url, f"sqlite:///{self.directory}/other.db"], **options})
        text = self.config.read_text()
        self.config.write_text(f'{text}tables = ["{self.schema}.*", "!{self.schema}.gone"]\n')

    def lose_the_log(self) -> None:
        """Change what the feed doesn't see: the log of these changes is purged."""
        self.execute(
            f"UPDATE {self.schema}.item SET name = 'unseen' WHERE id = 1",
            f"DELETE FROM {self.schema}.item WHERE id = 2",
            f"DROP TABLE {self.schema}.gone",
            f"ALTER TABLE {self.schema}.kept ADD COLUMN n INT NOT NULL DEFAULT 7",
            f"RENAME TABLE {self.schema}.named TO {self.schema}.renamed",
            f"CREATE TABLE {self.schema}.fresh (id INT PRIMARY KEY)",
            f"INSERT INTO {self.schema}.fresh VALUES (1), (2)",
        )
        self.insert(4)
        for _ in range(3):
            self.execute("FLUSH BINARY LOGS")
        last = self.execute("SHOW BINARY LOGS")[-1][0]

        def is_purged() -> bool:
            self.execute(f"PURGE BINARY LOGS TO '{last}'")
            return bool(self.execute("SHOW BINARY LOGS")[0][0] == last)

        eventually(is_purged)

    def tables(self, copy: str) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of the copies by the source's names, and what they have too much."""
        with closing(sqlite3.connect(self.directory / copy, timeout=60)) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            return {
                name.removeprefix(f"{self.schema}."): sorted(connection.execute(f'SELECT * FROM "{name}"'))
                for (name,) in names
                if not name.startswith("tidemill")
            }

    def sources(self) -> dict[str, list[tuple[Any, ...]]]:
        names = self.execute(f"SHOW TABLES IN {self.schema}")
        return {name: sorted(self.execute(f"SELECT * FROM {self.schema}.{name}")) for (name,) in names}


@pytest.fixture(params=["mariadb", "mysql"])
def purged(request: pytest.FixtureRequest, tmp_path: Path) -> Purged:
    server: MariaDb = request.getfixturevalue(f"private_{request.param}").start()
    server.execute("CREATE DATABASE shop")
    place = Purged(tmp_path, server, "shop")
    for name in ("kept", "gone", "named"):
        place.execute(f"CREATE TABLE shop.{name} (id INT PRIMARY KEY)", f"INSERT INTO shop.{name} VALUES (5)")
    assert place.run().status == 0
    assert place.tables("copy.db") == place.sources()
    place.lose_the_log()
    return place


def has_caught_up(place: Purged) -> bool:
    wanted = place.sources()
    return place.tables("copy.db") == wanted and place.tables("other.db") == wanted


def test_all_tables_are_loaded_again_into_the_present_targets(purged: Purged) -> None:
    refused = purged.run().sentence
    assert "can't read the binlog from" in refused
    assert "tidemill resume FEED --resnapshot '*'" in refused
    with purged.start_command("resume", str(purged.config), "--resnapshot", "*") as running:
        running.wait_until(lambda: has_caught_up(purged))
        purged.insert(8)
        running.wait_until(lambda: has_caught_up(purged))
        assert running.stop(signal.SIGTERM).status == 0
    purged.insert(9)
    assert purged.run().status == 0
    assert has_caught_up(purged), "the request was carried out once"


@pytest.mark.parametrize(
    "point",
    [
        "renewal.stored:1",
        "renewal.stored:2",
        "snapshot.chunk_read:1",
        "snapshot.chunk_read:3",
        "sink.altered:2",
        "sink.before_commit:3",
        "sink.committed:2",
        "sink.committed:5",
    ],
)
def test_a_kill_in_the_middle_of_it_loses_nothing(purged: Purged, point: str) -> None:
    arguments = ("resume", str(purged.config), "--resnapshot", "*")
    with purged.start_command(*arguments, failpoint=point) as running:
        running.dies()
    purged.insert(8)
    done = purged.run()
    assert done.status == 0, done
    assert has_caught_up(purged)
    assert json.loads((purged.directory / "state" / "requests.json").read_text())["load_again"] == []


def test_a_running_feed_loads_all_tables_again(purged: Purged) -> None:
    assert purged.call("snapshot", str(purged.config), "*").status == 0
    assert purged.run().status == 0
    with purged.start() as running:
        running.until(lambda status: status.state == "normal" and status.position)
        with closing(sqlite3.connect(purged.copy, timeout=60)) as copy:
            copy.execute('DELETE FROM "shop.item"')
            copy.commit()
        done = purged.call("snapshot", str(purged.config), "*")
        assert done.out == "all tables: loaded again now\n"
        running.wait_until(lambda: has_caught_up(purged))
        assert running.stop(signal.SIGTERM).status == 0


def test_a_feed_that_can_t_load_all_tables_again_says_so(purged: Purged) -> None:
    purged.config.write_text(
        purged.config.read_text() + '[[route]]\ntables = ["shop.it*"]\ntarget = "shop.all"\n'
    )
    done = purged.call("resume", str(purged.config), "--resnapshot", "*")
    assert done.sentence == (
        "'*': only a feed of one MariaDB or MySQL server, without [[route]], loads all tables again into its "
        "present targets: give every sink an empty target, and a new snapshot is taken"
    )


def test_check_refuses_a_purged_position_as_run_does(purged: Purged) -> None:
    refused = purged.run().sentence
    done = purged.call("check", str(purged.config))
    assert done.status == 1
    (error,) = [line for line in done.out.splitlines() if line.startswith("error")]
    assert error.removeprefix("error   source: ") == refused
    purged.call("snapshot", str(purged.config), "*")
    assert "error" not in purged.call("check", str(purged.config)).out, "the request is known"
