"""Random histories of schemas and rows, the feed killed in between: the copies end as the source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from tidemill.failpoint import POINTS
from tidemill.testing.histories import History
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.postgres import PostgreSql
from tidemill.testing.schema_copies import SchemaCopies

KILLS = tuple(point for point in POINTS if point.startswith(("sink.", "snapshot.", "binlog.")))
ROUNDS = 3
ORDINARY = 8
ORDINARY_BESIDE = 3
"""Histories of every run; the others are soaks."""
STATEMENTS = 15


@pytest.fixture
def copies(mariadb: MariaDb, database: str, postgresql: PostgreSql, tmp_path: Path) -> Iterator[SchemaCopies]:
    copies = SchemaCopies(mariadb, database, tmp_path, postgres=postgresql)
    yield copies
    copies.drop()


def replay(copies: SchemaCopies, seed: int) -> None:
    """Alternate statements and runs of the feed, each of which may be killed; compare after the last."""
    random = Random(seed)
    history = History(copies.server, copies.schema, seed)
    copies.execute("CREATE TABLE never_dropped (id INT PRIMARY KEY)")  # a feed begins with a table
    try:
        history.advance(2 * STATEMENTS)
        copies.follow()
        for _ in range(ROUNDS):
            history.advance(STATEMENTS)
            copies.follow_in_process(f"{random.choice(KILLS)}:{random.randint(1, 6)}")
        copies.follow()
        differences = copies.differences()
    finally:
        history.close()
        print(f"seed {seed}:", *history.log, sep="\n")
    assert differences == []


def replay_beside(copies: SchemaCopies, seed: int) -> None:
    """Run statements while the feed loads the tables, and loads some again; it may be killed."""
    random = Random(seed)
    history = History(copies.server, copies.schema, seed)
    copies.execute("CREATE TABLE never_dropped (id INT PRIMARY KEY)")  # a feed begins with a table
    try:
        history.advance(2 * STATEMENTS)
        for _ in range(ROUNDS):
            writing = Thread(target=history.advance, args=(STATEMENTS,))
            writing.start()
            copies.follow_in_process(f"{random.choice(KILLS)}:{random.randint(1, 12)}")
            writing.join()
        copies.follow()
        differences = copies.differences()
    finally:
        history.close()
        print(f"seed {seed}:", *history.log, sep="\n")
    assert differences == []


@pytest.mark.parametrize("nth", range(1, 6))
def test_killed_while_it_creates_tables_that_are_others_by_the_next_start(
    small_chunks: SchemaCopies, nth: int
) -> None:
    copies = small_chunks
    for name in ("a", "b"):
        copies.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, n FLOAT)", f"INSERT {name} VALUES (1, 2.5)")
    assert not copies.follow_in_process(f"sink.altered:{nth}")
    for name in ("a", "b"):
        copies.execute(f"ALTER IGNORE TABLE {name} MODIFY n SET('x', 'y') NOT NULL")
    copies.follow()
    assert copies.differences() == []


@pytest.fixture
def small_chunks(mariadb: MariaDb, database: str, tmp_path: Path) -> Iterator[SchemaCopies]:
    copies = SchemaCopies(mariadb, database, tmp_path, chunk_rows=3, snapshot_workers=3)
    yield copies
    copies.drop()


@pytest.mark.parametrize("seed", range(ORDINARY_BESIDE))
def test_a_history_beside_the_loads(small_chunks: SchemaCopies, seed: int) -> None:
    replay_beside(small_chunks, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [*range(ORDINARY_BESIDE, 8), *range(2_000, 2_100)])
def test_many_histories_beside_the_loads(small_chunks: SchemaCopies, seed: int) -> None:
    replay_beside(small_chunks, seed)


@pytest.mark.parametrize("seed", range(ORDINARY))
def test_a_history(copies: SchemaCopies, seed: int) -> None:
    replay(copies, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [*range(ORDINARY, 40), *range(1_000, 1_300)])
def test_many_histories(copies: SchemaCopies, seed: int) -> None:
    replay(copies, seed)
