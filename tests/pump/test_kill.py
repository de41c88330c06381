"""kill -9 of a feed of pumps at named points, under load, while pumps are cut: nothing lost, nothing twice.

Triggers on the target count every row change that it gets; what was committed is counted as it is written.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.failpoint import POINTS
from tidemill.testing.child import CLI, Child
from tidemill.testing.repeated import repeated

FEED = """\
name = "kill"
data_dir = "{directory}/state"
{until}

[source]
url = "pump://{pumps}"
pd = ["{pd}"]
tables = ["many.*"]
retry_seconds = 0.05

[sorter]
memory_bytes = 0

[[sink]]
url = "sqlite:///{directory}/copy.db"
relay = {{ directory = "{directory}/relay", segment_bytes = 65536, keep_bytes = "1GiB" }}
"""
KILLED_AT = [
    "pump.pulled",
    "pump.mounted",
    "relay.before_sync",
    "relay.synced",
    "sink.before_commit",
    "sink.committed",
]
OPS = ("insert", "update", "delete")


class Copy:
    """The feed's target, and how the feed is run."""

    def __init__(self, directory: Path, tidb: Tidb) -> None:
        self._directory = directory
        self._tidb = tidb

    def config(self, until: str) -> str:
        pd, pumps = self._tidb.pd_address, self._tidb.pumps.address
        return FEED.format(directory=self._directory, pd=pd, pumps=pumps, until=until)

    def run(self, point: str = "", until: str = "") -> Child:
        config = self._directory / "feed.toml"
        config.write_text(self.config(until))
        return Child([*CLI, "run", config], self._directory / "feed.log", failpoint=point)

    def dies(self, point: str) -> None:
        with self.run(point) as feed:
            feed.dies()

    def ends(self) -> None:
        with self.run(until='until = "now"') as feed:
            assert feed.exit_status() == 0, feed.output()[-3000:]

    def save(self) -> None:
        shutil.copy(self._directory / "copy.db", self._directory / "backup.db")

    def replay(self) -> None:
        """Put the saved target back, and replay the relay into it."""
        shutil.copy(self._directory / "backup.db", self._directory / "copy.db")
        with Child([*CLI, "replay", self._directory / "feed.toml"], self._directory / "replay.log") as replay:
            assert replay.exit_status() == 0, replay.output()[-3000:]

    def count_changes(self) -> None:
        with closing(sqlite3.connect(self._directory / "copy.db")) as copy:
            copy.execute("CREATE TABLE counted (op TEXT PRIMARY KEY, n INTEGER)")
            for op in OPS:
                copy.execute("INSERT INTO counted VALUES (?, 0)", (op,))
                copy.execute(
                    f'CREATE TRIGGER "t_{op}" AFTER {op} ON "many.t" BEGIN'
                    f" UPDATE counted SET n = n + 1 WHERE op = '{op}'; END"
                )
            copy.commit()

    def counted(self) -> Counter[str]:
        with closing(sqlite3.connect(self._directory / "copy.db")) as copy:
            return Counter(dict(copy.execute("SELECT op, n FROM counted WHERE n")))

    def rows(self) -> dict[int, str]:
        with closing(sqlite3.connect(self._directory / "copy.db")) as copy:
            return dict(copy.execute('SELECT id, note FROM "many.t"'))


class Writer:
    """Commits transactions and counts their row changes."""

    def __init__(self, tidb: Tidb, random: Random) -> None:
        self.changes: Counter[str] = Counter()
        self.rows: dict[int, str] = {}
        self._tidb = tidb
        self._random = random

    def write(self) -> None:
        random = self._random
        with self._tidb.transaction() as txn:
            for key in random.sample(range(300), random.randint(1, 12)):
                note = f"{random.random()}"
                if key not in self.rows:
                    txn.insert("many.t", (key, note))
                    self.changes["insert"] += 1
                elif random.random() < 0.4:
                    txn.delete("many.t", key)
                    del self.rows[key]
                    self.changes["delete"] += 1
                    continue
                else:
                    txn.update("many.t", key, {"note": note})
                    self.changes["update"] += 1
                self.rows[key] = note


def kill_everywhere(tmp_path: Path, tidb: Tidb, times: int, seed: int) -> None:
    random = Random(seed)
    tidb.execute("create database many")
    tidb.execute("create table many.t (id int primary key, note varchar(40))")
    copy, writer = Copy(tmp_path, tidb), Writer(tidb, random)
    copy.ends()
    copy.count_changes()
    copy.save()
    with repeated(writer.write):
        for point in KILLED_AT:
            for _ in range(times):
                tidb.pump_half(random.choice(list(tidb.pumps.by_id)))
                copy.dies(f"{point}:{random.randint(2, 12)}")
    copy.ends()
    assert copy.rows() == writer.rows
    assert copy.counted() == writer.changes
    tidb.close()
    copy.replay()
    assert copy.rows() == writer.rows
    assert copy.counted() == writer.changes


def test_the_points_are_known():
    assert {*KILLED_AT} <= {*POINTS}


def test_killed_anywhere_nothing_is_lost_and_nothing_comes_twice_also_from_the_relay(tmp_path, tidb):
    kill_everywhere(tmp_path, tidb, times=1, seed=1)


@pytest.mark.soak
def test_killed_very_often(tmp_path, tidb):
    kill_everywhere(tmp_path, tidb, times=20, seed=2)
