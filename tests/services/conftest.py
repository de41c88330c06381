from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from tidemill.benchmarks.mariadb import MariaDb, missing

_numbers = count(1)


def require_mariadb() -> None:
    """Skip the test, or fail it where every service must be there."""
    reason = missing()
    if not reason:
        return
    if os.environ.get("TIDEMILL_ALL_SERVICES") == "1":
        pytest.fail(f"MariaDB is required here (TIDEMILL_ALL_SERVICES=1), but {reason}")
    pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if missing():
        terminalreporter.write_line(f"Tests against MariaDB were SKIPPED: {missing()}", yellow=True)


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb]:
    """A server for the whole session, one for each xdist worker. Don't stop it or set globals."""
    require_mariadb()
    with MariaDb(tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.fixture
def private_mariadb(tmp_path: Path) -> Iterator[MariaDb]:
    """A server of the test's own, not started yet: give it `options`, start, kill and restart it."""
    require_mariadb()
    server = MariaDb(tmp_path / "mariadb")
    yield server
    server.stop()


@pytest.fixture
def database(mariadb: MariaDb) -> Iterator[str]:
    """The name of a fresh, empty database on `mariadb`."""
    name = f"shop_{next(_numbers)}"
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        yield name
        cursor.execute(f"DROP DATABASE {name}")
