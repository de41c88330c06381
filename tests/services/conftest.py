from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemill.testing.feeds import CopiedTable
from tidemill.testing.mariadb import MariaDb

from .twins import Twins


@pytest.fixture(params=["sqlite", "mariadb"])
def place(
    request: pytest.FixtureRequest, mariadb: MariaDb, database: str, tmp_path: Path
) -> Iterator[CopiedTable]:
    """A feed whose snapshot is done, with a second table."""
    place = CopiedTable(tmp_path, mariadb, database)
    place.execute(f"CREATE TABLE {database}.kept (id INT PRIMARY KEY)")
    if request.param == "mariadb":
        place.copy_server, place.copy_schema = mariadb, f"{database}_copy"
        place.configure(sinks=[mariadb.url(place.copy_schema)])
    place.continues()
    yield place
    place.execute(f"DROP DATABASE IF EXISTS {database}_copy")


@pytest.fixture
def twins(mariadb: MariaDb, database: str, private_mariadb: MariaDb, tmp_path: Path) -> Twins:
    private_mariadb.start().execute(f"CREATE DATABASE {database}")
    return Twins({"north": mariadb, "south": private_mariadb}, database, tmp_path)
