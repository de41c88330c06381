from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tidemill.testing.cases")

from tidemill.testing import disk, mysql  # noqa: E402
from tidemill.testing.mariadb import MariaDb, missing  # noqa: E402
from tidemill.testing.mariadb_client import Client  # noqa: E402
from tidemill.testing.mysql import MySql  # noqa: E402

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
    if mysql.missing():
        terminalreporter.write_line(f"Tests against MySQL were SKIPPED: {mysql.missing()}", yellow=True)


def _require(service: str, reason: str) -> None:
    """Skip the test if `reason` says why the service is missing; fail it where it must be there.

    TIDEMILL_ALL_SERVICES=1 requires all services except those of TIDEMILL_WITHOUT, which can't be had.
    """
    if not reason:
        return
    without = os.environ.get("TIDEMILL_WITHOUT", "").split()
    if os.environ.get("TIDEMILL_ALL_SERVICES") == "1" and service not in without:
        pytest.fail(f"{service} is required here (TIDEMILL_ALL_SERVICES=1), but {reason}")
    pytest.skip(reason)


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
    _require("mariadb", missing())
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


# --- MySQL


@pytest.fixture(scope="session")
def mysql_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Like `mariadb_template`, of MySQL."""
    _require("mysql", mysql.missing())
    return tmp_path_factory.mktemp("template") / "data"


@pytest.fixture(scope="session")
def mysql97(tmp_path_factory: pytest.TempPathFactory, mysql_template: Path) -> Iterator[MySql]:
    """A server for the whole session, one for each xdist worker. Don't stop it or set globals."""
    with MySql(tmp_path_factory.mktemp("mysql"), template=mysql_template) as server:
        yield server


@pytest.fixture
def private_mysql(tmp_path: Path, mysql_template: Path) -> Iterator[MySql]:
    """A server of the test's own, not started yet: give it `options`, start, kill and restart it."""
    server = MySql(tmp_path / "mysql", template=mysql_template)
    yield server
    server.stop()


@pytest.fixture
def mysql_database(mysql97: MySql) -> Iterator[str]:
    """The name of a fresh, empty database on `mysql97`."""
    name = f"shop_{next(_numbers)}"
    with mysql97.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        yield name
        cursor.execute(f"DROP DATABASE {name}")


@pytest.fixture
def mysql_sql(mysql97: MySql, mysql_database: str) -> Iterator[Client]:
    client = Client(mysql97, mysql_database)
    yield client
    client.close()
