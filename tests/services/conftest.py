from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tidemill.testing.mariadb import MariaDb, missing

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
def mariadb_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a fresh data directory is kept, to be copied."""
    return tmp_path_factory.mktemp("template") / "data"


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory, mariadb_template: Path) -> Iterator[MariaDb]:
    """A server for the whole session, one for each xdist worker. Don't stop it or set globals."""
    require_mariadb()
    with MariaDb(tmp_path_factory.mktemp("mariadb"), template=mariadb_template) as server:
        yield server


@pytest.fixture
def private_mariadb(tmp_path: Path, mariadb_template: Path) -> Iterator[MariaDb]:
    """A server of the test's own, not started yet: give it `options`, start, kill and restart it."""
    require_mariadb()
    server = MariaDb(tmp_path / "mariadb", template=mariadb_template)
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


class Client:
    """A session on a database of the server."""

    def __init__(self, server: MariaDb, database: str) -> None:
        self.server = server
        self.database = database
        self.reconnect()

    def reconnect(self) -> None:
        self._connection = self.server.connect(database=self.database)

    def __call__(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements; the rows of the last one."""
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def sql(mariadb: MariaDb, database: str) -> Iterator[Client]:
    client = Client(mariadb, database)
    yield client
    client.close()


@pytest.fixture
def own(private_mariadb: MariaDb) -> Iterator[Client]:
    """A session on a server of the test's own."""
    server = private_mariadb.start()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
    client = Client(server, "shop")
    yield client
    client.close()
