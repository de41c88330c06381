"""Random histories of schemas and rows of MySQL, the feed killed in between: the copies end as the source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemill.testing.mysql import MySql
from tidemill.testing.schema_copies import SchemaCopies

from .test_histories import replay, replay_beside


@pytest.fixture
def copies(mysql97: MySql, mysql_database: str, tmp_path: Path) -> Iterator[SchemaCopies]:
    copies = SchemaCopies(mysql97, mysql_database, tmp_path)
    yield copies
    copies.drop()


@pytest.fixture
def small_chunks(mysql97: MySql, mysql_database: str, tmp_path: Path) -> Iterator[SchemaCopies]:
    copies = SchemaCopies(mysql97, mysql_database, tmp_path, chunk_rows=3, snapshot_workers=3)
    yield copies
    copies.drop()


@pytest.mark.long
def test_a_history(copies: SchemaCopies) -> None:
    replay(copies, 100)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(101, 150))
def test_many_histories(copies: SchemaCopies, seed: int) -> None:
    replay(copies, seed)


def test_a_history_beside_the_loads(small_chunks: SchemaCopies) -> None:
    replay_beside(small_chunks, 200)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(201, 250))
def test_many_histories_beside_the_loads(small_chunks: SchemaCopies, seed: int) -> None:
    replay_beside(small_chunks, seed)
