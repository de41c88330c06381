from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tidemill.testing.cases")

from tidemill.testing import disk  # noqa: E402
from tidemill.testing.mariadb import MariaDb, missing  # noqa: E402
from tidemill.testing.mariadb_client import Client  # noqa: E402

# Hypothesis' own time limits (0.2 s an example, and how long making examples takes) fail on a busy machine.
settings.register_profile("progress", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("progress")

_numbers = count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write what comes out into the case files")
    parser.addoption("--seed", type=int, help="of tests that run many seeds, only this one")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if missing():
        terminalreporter.write_line(f"Tests against MariaDB were SKIPPED: {missing()}", yellow=True)


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """True if case files are to be rewritten instead of compared with."""
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    with disk.small_disk(tmp_path / "disk") as directory:
        yield directory


# --- MariaDB


@pytest.fixture(scope="session")
def mariadb_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of a fresh data directory, kept as the template of others.

    Every test with a MariaDB asks for it: without the server it is skipped, or fails where all services
    must be installed.
    """
    if reason := missing():
        if os.environ.get("TIDEMILL_ALL_SERVICES") == "1":
            pytest.fail(f"MariaDB is required here (TIDEMILL_ALL_SERVICES=1), but {reason}")
        pytest.skip(reason)
    return tmp_path_factory.mktemp("template") / "data"


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory, mariadb_template: Path) -> Iterator[MariaDb]:
    """A server for the whole session, one for each xdist worker. Don't stop it or set globals."""
    with MariaDb(tmp_path_factory.mktemp("mariadb"), template=mariadb_template) as server:
        yield server


@pytest.fixture
def private_mariadb(tmp_path: Path, mariadb_template: Path) -> Iterator[MariaDb]:
    """A server of the test's own, not started yet: give it `options`, start, kill and restart it."""
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
