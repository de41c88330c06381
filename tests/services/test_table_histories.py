"""Random histories of tables that are paused, resumed, loaded again, parked by errors, added and left out,
with rows and schema changes meanwhile and the feed killed at each step: the copies end as the source."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from tidemill.engine.requests import TableRequests
from tidemill.failpoint import POINTS
from tidemill.testing.histories import History
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.postgres import PostgreSql
from tidemill.testing.schema_copies import SchemaCopies

KILLS = tuple(point for point in POINTS if point.startswith(("sink.", "snapshot.", "binlog.")))
OF_TABLES = tuple(point for point in POINTS if point.startswith("tables."))
NAMES = tuple(f"t{number}" for number in range(5))
SPARE = "spare"
"""Table that every pattern matches."""
CHARSETS = ("utf8mb4", "latin1", "utf8mb3")
"""Without UCS-2, in which ALTER IGNORE makes halves of pairs of binary values, which are no text."""
ROUNDS = 5
ORDINARY = 6
"""Histories of every run; the others are soaks."""
STATEMENTS = 12


class Lives:
    """Requests, patterns and damage of one history, drawn from its seed."""

    def __init__(self, copies: SchemaCopies, seed: int) -> None:
        self.log: list[str] = []
        self._copies = copies
        self._random = Random(seed)

    def ask(self) -> None:
        """Request something of some tables."""
        random = self._random
        some = [f"{self._copies.schema}.{name}" for name in random.sample(NAMES, random.randint(1, 3))]
        asked = random.choice(
            [
                TableRequests(pause=tuple(some)),
                TableRequests(pause=tuple(some)),
                TableRequests(resume=tuple(some)),
                TableRequests(load_again=tuple(some)),
            ]
        )
        self._copies.requests.add(asked)
        self.log.append(f"-- {asked}")

    def choose(self) -> None:
        """Change the patterns of the feed, and of one sink; each of them matches a table at any time."""
        random, schema = self._random, self._copies.schema
        some = random.sample(NAMES, random.randint(0, len(NAMES)))
        tables = [f"{schema}.*", *(f"!{schema}.{name}" for name in some)]
        if random.random() < 0.5:
            tables = [f"{schema}.~({'|'.join([SPARE, *some])})"]
        sqlite = [f"{schema}.~({'|'.join([SPARE, *random.sample(NAMES, random.randint(0, 4))])})"]
        self._copies.choose(tables, **({"sqlite": sqlite} if random.random() < 0.5 else {}))
        self.log.append(f"-- tables {tables}, of sqlite {sqlite}")

    def damage(self) -> None:
        """Drop a copy, so that an error of the target parks the table at its next change."""
        name = self._random.choice(NAMES)
        if self._random.random() < 0.5:
            self._copies.execute(f"DROP TABLE IF EXISTS {self._copies.copy}.{name}")
        elif self._copies.file.exists():
            with closing(sqlite3.connect(self._copies.file, timeout=60)) as copy:
                copy.execute(f'DROP TABLE IF EXISTS "{self._copies.schema}.{name}"')
                copy.commit()
        self.log.append(f"-- the copy of {name} is damaged")

    def end(self) -> None:
        """Follow all tables again, and resume each that waits, or fails on the way; load those again whose
        damage no change has met."""
        names = tuple(f"{self._copies.schema}.{name}" for name in NAMES)
        self._copies.choose([f"{self._copies.schema}.*"])
        self._copies.requests.add(TableRequests(resume=names))
        self._copies.follow()
        damaged = self._damaged()
        others = tuple(name for name in names if name not in damaged)  # a failure moves with a renaming
        self._copies.requests.add(TableRequests(load_again=damaged, resume=others))
        self._copies.follow()

    def _damaged(self) -> tuple[str, ...]:
        """Return the tables of which a copy was damaged."""
        schema = self._copies.schema
        return tuple(f"{schema}.{name}" for name in NAMES if f"-- the copy of {name} is damaged" in self.log)


def replay(copies: SchemaCopies, seed: int) -> None:
    random = Random(seed)
    history = History(copies.server, copies.schema, seed, spares=[SPARE], charsets=CHARSETS)
    lives = Lives(copies, seed)
    lives.log = history.log
    copies.park_failed()
    copies.execute(f"CREATE TABLE {SPARE} (id INT PRIMARY KEY)")  # a feed begins with a table
    try:
        history.advance(2 * STATEMENTS)
        if random.random() < 0.7:
            copies.follow()
        for _ in range(ROUNDS):
            step = random.choice([lives.ask, lives.ask, lives.choose, lives.choose, lives.damage])
            step()
            point = random.choice(OF_TABLES if random.random() < 0.5 else KILLS)
            writing = Thread(target=history.advance, args=(STATEMENTS,))
            writing.start()
            try:
                lives.log.append(f"-- run, {point}")
                copies.follow_in_process(f"{point}:{random.randint(1, 4)}")
            finally:
                writing.join()
        lives.end()
        differences = copies.differences()
    finally:
        history.close()
        print(f"seed {seed}:", *history.log, sep="\n")
    assert differences == []


@pytest.fixture
def copies(mariadb: MariaDb, database: str, postgresql: PostgreSql, tmp_path: Path) -> Iterator[SchemaCopies]:
    copies = SchemaCopies(mariadb, database, tmp_path, postgres=postgresql, chunk_rows=3, snapshot_workers=2)
    yield copies
    copies.drop()


@pytest.mark.parametrize("seed", range(ORDINARY))
def test_a_history(copies: SchemaCopies, seed: int) -> None:
    replay(copies, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(ORDINARY, 200))
def test_many_histories(copies: SchemaCopies, seed: int) -> None:
    replay(copies, seed)
