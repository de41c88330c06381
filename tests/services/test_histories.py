"""Random histories of schemas and rows, the feed killed in between: the copies end as the source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tidemill.failpoint import POINTS
from tidemill.testing.histories import History
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.schema_copies import SchemaCopies

KILLS = tuple(point for point in POINTS if point.startswith(("sink.", "snapshot.", "binlog.")))
ROUNDS = 3
STATEMENTS = 15


@pytest.fixture
def copies(mariadb: MariaDb, database: str, tmp_path: Path) -> Iterator[SchemaCopies]:
    copies = SchemaCopies(mariadb, database, tmp_path)
    yield copies
    copies.execute(f"DROP DATABASE IF EXISTS {copies.copy}")


def replay(copies: SchemaCopies, seed: int) -> None:
    """Alternate statements and runs of the feed, each of which may be killed; compare after the last."""
    random = Random(seed)
    history = History(copies.server, copies.schema, seed)
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
    assert differences == [], f"seed {seed}:\n" + "\n".join(history.log)


@pytest.mark.parametrize("seed", range(40))
def test_a_history(copies: SchemaCopies, seed: int) -> None:
    replay(copies, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1_000, 1_300))
def test_many_histories(copies: SchemaCopies, seed: int) -> None:
    replay(copies, seed)
