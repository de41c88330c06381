"""kill -9 of a feed of TiKV at named points, under load, while stores go away: nothing lost, nothing twice.

Triggers on the target count every row change that it gets; what was committed is counted as it is written.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pytest

from tidemill.emulator.cluster import Cluster
from tidemill.failpoint import POINTS
from tidemill.testing.child import CLI, Child
from tidemill.testing.repeated import repeated

from .served import Made

FEED = """\
name = "kill"
data_dir = "{directory}/state"
{until}

[source]
url = "tikv://{pd}"
tables = ["many.*"]

[sorter]
memory_bytes = 0

[[sink]]
url = "sqlite:///{directory}/{target}"
"""
TABLES, REGIONS, KEYS = 3, 9, 300
SNAPSHOT_POINTS = ["snapshot.chunk_read"]
STREAM_POINTS = ["tikv.batch_read", "tikv.mounted", "sink.mid_batch", "sink.before_commit", "sink.committed"]
OPS = ("insert", "update", "delete")


class Writer:
    """Commits transactions over all tables and counts their row changes."""

    def __init__(self, made: Made, random: Random) -> None:
        self.changes: Counter[tuple[str, str]] = Counter()
        self.rows: dict[tuple[int, int], str] = {}
        self.commits = 0
        self._made = made
        self._random = random

    def write(self, most: int = 12) -> None:
        random = self._random
        self.commits += 1
        puts, gone = [], []
        for number, key in {
            (random.randrange(TABLES), random.randrange(KEYS)) for _ in range(random.randint(1, most))
        }:
            there = (number, key) in self.rows
            if there and random.random() < 0.4:
                del self.rows[number, key]
                gone.append((number, key))
                self.changes[f"t{number}", "delete"] += 1
            else:
                self.rows[number, key] = text = f"{self.commits}-{random.random()}"
                puts.append((number, key, text))
                self.changes[f"t{number}", "update" if there else "insert"] += 1
        self._made.change(puts, gone)


class Copy:
    """The feed's target, and how the feed is run."""

    def __init__(self, directory: Path, cluster: Cluster) -> None:
        self._directory = directory
        self._cluster = cluster

    def run(self, point: str = "", *, until: str = "", target: str = "copy.db") -> Child:
        """A feed that ends by itself or at a failpoint."""
        config = self._directory / "feed.toml"
        pd = self._cluster.pd_address
        config.write_text(FEED.format(directory=self._directory, pd=pd, until=until, target=target))
        return Child([*CLI, "run", config], self._directory / "feed.log", failpoint=point)

    def dies(self, point: str) -> bool:
        with self.run(point) as feed:
            feed.dies()
        return True

    def ends(self, target: str = "copy.db") -> None:
        with self.run(until='until = "now"', target=target) as feed:
            assert feed.exit_status() == 0, feed.output()[-3000:]

    def prepare(self) -> None:
        """Make the tables as a feed would, with triggers that count."""
        self.ends("empty.db")
        for left in (self._directory / "state").iterdir():
            if left.name.startswith("kill"):
                left.unlink()
        with self._open("empty.db") as empty, self._open("copy.db") as copy:
            for (sql,) in empty.execute(
                "SELECT sql FROM sqlite_master WHERE name LIKE 'many.%' AND sql <> ''"
            ):
                copy.execute(sql)
            copy.execute("CREATE TABLE counted (tbl TEXT, op TEXT, n INTEGER, PRIMARY KEY (tbl, op))")
            for name in (f"t{number}" for number in range(TABLES)):
                for op in OPS:
                    copy.execute("INSERT INTO counted VALUES (?, ?, 0)", (name, op))
                    copy.execute(
                        f'CREATE TRIGGER "{name}_{op}" AFTER {op} ON "many.{name}" BEGIN'
                        f" UPDATE counted SET n = n + 1 WHERE tbl = '{name}' AND op = '{op}'; END"
                    )

    def counted(self) -> Counter[tuple[str, str]]:
        with self._open("copy.db") as connection:
            found = connection.execute("SELECT tbl, op, n FROM counted WHERE n")
            return Counter({(name, op): n for name, op, n in found})

    def forget(self) -> None:
        with self._open("copy.db") as connection:
            connection.execute("UPDATE counted SET n = 0")

    def rows(self) -> dict[tuple[int, int], str]:
        with self._open("copy.db") as connection:
            return {
                (number, key): note
                for number in range(TABLES)
                for key, note in connection.execute(f'SELECT id, note FROM "many.t{number}"')
            }

    @contextmanager
    def _open(self, name: str) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._directory / name)) as connection:
            yield connection
            connection.commit()


def kill_everywhere(tmp_path: Path, cluster: Cluster, times: int, seed: int) -> Counter[str]:
    """The whole test; how often each point was hit."""
    hits: Counter[str] = Counter()
    random = Random(seed)
    made = Made(cluster)
    made.tables(TABLES, REGIONS)
    copy = Copy(tmp_path, cluster)
    copy.prepare()
    writer = Writer(made, random)
    for _ in range(60):
        writer.write(50)

    # In the snapshot of a quiet cluster: every row arrives by exactly one insert.
    for point in SNAPSHOT_POINTS:
        for nth in range(times):
            # At the first chunk of a run nothing is gained, so that it may be killed as often as one likes.
            hits[point] += copy.dies(f"{point}:{2 if nth == 1 else 1}")
    copy.ends()
    assert copy.counted() == Counter((f"t{number}", "insert") for number, _ in writer.rows)
    assert copy.rows() == writer.rows

    # While it follows a busy cluster whose stores go away and come back.
    copy.forget()
    writer.changes.clear()
    before = writer.commits
    with repeated(writer.write):
        for point in STREAM_POINTS:
            for nth in range(times):
                store = random.randint(1, 3)
                if nth % 2:
                    cluster.store_down(store)
                hits[point] += copy.dies(f"{point}:{random.randint(1, 12)}")
                if nth % 2:
                    cluster.store_up(store)
                cluster.drop_streams()
    copy.ends()
    assert writer.commits - before > 10 * times
    assert copy.counted() == +writer.changes
    assert copy.rows() == writer.rows
    return hits


def test_the_points_are_known():
    assert {*SNAPSHOT_POINTS, *STREAM_POINTS} <= {*POINTS}


def test_killed_at_every_point_nothing_is_lost_and_nothing_comes_twice(tmp_path, cluster):
    hits = kill_everywhere(tmp_path, cluster, times=2, seed=1)
    assert hits == dict.fromkeys([*SNAPSHOT_POINTS, *STREAM_POINTS], 2)


@pytest.mark.soak
def test_killed_very_often(tmp_path, cluster):
    hits = kill_everywhere(tmp_path, cluster, times=20, seed=2)
    print("killed at:", ", ".join(f"{point} {count} times" for point, count in hits.items()))
    assert hits == dict.fromkeys([*SNAPSHOT_POINTS, *STREAM_POINTS], 20)
