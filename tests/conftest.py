from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tidemill.testing.cases")

from tidemill.codec.native import library  # noqa: E402
from tidemill.emulator.server import Tls  # noqa: E402
from tidemill.store.temporary import temporary_directory  # noqa: E402
from tidemill.testing import (  # noqa: E402
    chromium,
    delta,
    disk,
    etcd,
    iceberg_rest,
    java_consumer,
    kafka,
    mysql,
    postgres,
)
from tidemill.testing.certificates import Authority  # noqa: E402
from tidemill.testing.disk import memory_disk  # noqa: E402
from tidemill.testing.etcd import Etcd  # noqa: E402
from tidemill.testing.iceberg_rest import IcebergRest  # noqa: E402
from tidemill.testing.java_consumer import JavaConsumer  # noqa: E402
from tidemill.testing.kafka import Kafka  # noqa: E402
from tidemill.testing.kafka_mock import MockKafka  # noqa: E402
from tidemill.testing.mariadb import MariaDb, missing  # noqa: E402
from tidemill.testing.mariadb118 import MariaDb118  # noqa: E402
from tidemill.testing.mariadb118 import missing as mariadb118_missing  # noqa: E402
from tidemill.testing.mariadb_client import Client  # noqa: E402
from tidemill.testing.mysql import MySql  # noqa: E402
from tidemill.testing.postgres import PostgreSql  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tidemill.testing.s3 import S3Store

# Children would compile the whole package at each start, a third of the time that they take to start; each
# worker would compile all tests to collect them, half of the time that this takes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# For the tests' own session of Spark, and for those of the commands that they start.
os.environ["SPARK_CONF_DIR"] = str(Path(__file__).parent / "spark" / "conf")

# pytest's own variable; a kill -9 takes no page out of memory, so files there are as durable for it.
if (_in_memory := memory_disk()) is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_in_memory))

# Hypothesis' own time limits (0.2 s an example, and how long making examples takes) fail on a busy machine.
settings.register_profile("progress", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("progress")

_numbers = count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write what comes out into the case files")
    parser.addoption("--seed", type=int, help="of tests that run many seeds, only this one")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: the modules and items of all tests stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print a failure as it comes, on standard error: a run that is cut off has still said what failed."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\n{report.nodeid} ({report.when}, {report.duration:.0f} s)", file=sys.__stderr__)
        print(report.longreprtext[-3000:], file=sys.__stderr__, flush=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if missing():
        terminalreporter.write_line(f"Tests against MariaDB were SKIPPED: {missing()}", yellow=True)
    if mariadb118_missing():
        terminalreporter.write_line(
            f"Tests against MariaDB 11.8 were SKIPPED: {mariadb118_missing()}", yellow=True
        )
    if mysql.missing():
        terminalreporter.write_line(f"Tests against MySQL were SKIPPED: {mysql.missing()}", yellow=True)
    if postgres.missing():
        terminalreporter.write_line(
            f"Tests against PostgreSQL were SKIPPED: {postgres.missing()}", yellow=True
        )
    if kafka.missing():
        terminalreporter.write_line(f"Tests against Kafka were SKIPPED: {kafka.missing()}", yellow=True)
    if etcd.missing():
        terminalreporter.write_line(f"Tests against etcd were SKIPPED: {etcd.missing()}", yellow=True)
    if delta.missing():
        terminalreporter.write_line(
            f"Tests of Delta Lake on Spark were SKIPPED: {delta.missing()}", yellow=True
        )
    if chromium.missing():
        terminalreporter.write_line(f"Tests of the page were SKIPPED: {chromium.missing()}", yellow=True)


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


@pytest.fixture(scope="session", autouse=True)
def _temporary_files() -> Iterator[None]:
    """Give the run a temporary directory of its own, so that files of killed children go with it."""
    with pytest.MonkeyPatch.context() as patch, temporary_directory("tests") as directory:
        directory.chmod(0o711)  # PostgreSQL runs as another user
        patch.setenv("TMPDIR", str(directory))
        patch.setattr(tempfile, "tempdir", str(directory))
        yield


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """True if case files are to be rewritten instead of compared with."""
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    with disk.small_disk(tmp_path / "disk") as directory:
        yield directory


def _fresh_database(server: MariaDb | MySql) -> Iterator[str]:
    """Yield the name of a fresh, empty database, and drop it."""
    name = f"shop_{next(_numbers)}"
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        yield name
        cursor.execute(f"DROP DATABASE {name}")


def _template(factory: pytest.TempPathFactory, name: str) -> Path:
    """Return the path of a fresh data directory: the first server of any xdist worker makes it."""
    base = factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return root / "templates" / name / "data"


# --- MariaDB


@pytest.fixture(scope="session")
def mariadb_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of a fresh data directory, kept as the template of others.

    Every test with a MariaDB asks for it: without the server it is skipped, or fails where all services
    must be installed.
    """
    _require("mariadb", missing())
    return _template(tmp_path_factory, "mariadb")


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
    server.kill()  # a shutdown takes a second or two, and its files go
    server.stop()


@pytest.fixture(scope="session")
def mariadb118(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb118]:
    """As `mariadb`, of version 11.8."""
    _require("mariadb118", mariadb118_missing())
    with MariaDb118(tmp_path_factory.mktemp("mariadb118")) as server:
        yield server


@pytest.fixture
def mariadb118_database(mariadb118: MariaDb118) -> Iterator[str]:
    """The name of a fresh, empty database on `mariadb118`."""
    yield from _fresh_database(mariadb118)


@pytest.fixture
def database(mariadb: MariaDb) -> Iterator[str]:
    """The name of a fresh, empty database on `mariadb`."""
    yield from _fresh_database(mariadb)


@pytest.fixture
def target_mariadb(mariadb: MariaDb, database: str) -> tuple[MariaDb, str]:
    """A server and the name of a fresh, empty database, for a target."""
    return mariadb, database


@pytest.fixture
def sql(mariadb: MariaDb, database: str) -> Iterator[Client]:
    client = Client(mariadb, database)
    yield client
    client.close()


@pytest.fixture
def own(private_mariadb: MariaDb) -> Iterator[Client]:
    """A session on a server of the test's own."""
    server = private_mariadb.start()
    server.execute("CREATE DATABASE shop")
    client = Client(server, "shop")
    yield client
    client.close()


# --- MySQL


@pytest.fixture(scope="session")
def mysql_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Like `mariadb_template`, of MySQL."""
    _require("mysql", mysql.missing())
    return _template(tmp_path_factory, "mysql")


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
    server.kill()  # a shutdown takes a second or two, and its files go
    server.stop()


@pytest.fixture
def mysql_database(mysql97: MySql) -> Iterator[str]:
    """The name of a fresh, empty database on `mysql97`."""
    yield from _fresh_database(mysql97)


@pytest.fixture
def mysql_sql(mysql97: MySql, mysql_database: str) -> Iterator[Client]:
    client = Client(mysql97, mysql_database)
    yield client
    client.close()


# --- PostgreSQL


@pytest.fixture(scope="session")
def postgres_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Like `mariadb_template`, of PostgreSQL."""
    _require("postgres", postgres.missing())
    return _template(tmp_path_factory, "postgres")


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory, postgres_template: Path) -> Iterator[PostgreSql]:
    """A server for the whole session, one for each xdist worker. Don't stop it or set globals."""
    with PostgreSql(tmp_path_factory.mktemp("postgres"), template=postgres_template) as server:
        yield server


@pytest.fixture
def private_postgresql(tmp_path: Path, postgres_template: Path) -> Iterator[PostgreSql]:
    """A server of the test's own, not started yet: give it `options`, start, kill and restart it."""
    server = PostgreSql(tmp_path / "postgres", template=postgres_template)
    yield server
    server.stop()


@pytest.fixture
def postgres_database(postgresql: PostgreSql) -> Iterator[str]:
    """The name of a fresh, empty database on `postgresql`."""
    name = f"shop_{next(_numbers)}"
    with postgresql.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield name
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


# --- Kafka


def _tls(authority: Authority, name: str) -> Tls:
    certificate, key = authority.issue(name)
    return Tls(ca_path=authority.ca, cert_path=certificate, key_path=key)


@pytest.fixture(scope="session")
def kafka_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker for the whole session, one for each xdist worker. Don't stop it.

    It has a listener with TLS if there is the command openssl.
    """
    _require("kafka", kafka.missing())
    directory = tmp_path_factory.mktemp("kafka")
    server = Kafka(directory / "broker")
    if shutil.which("openssl"):
        authority = Authority(directory / "certificates")
        server.tls, server.client_tls = _tls(authority, "broker"), _tls(authority, "client")
    with server:
        yield server


@pytest.fixture
def private_kafka(tmp_path: Path) -> Iterator[Kafka]:
    """A broker of the test's own, not started yet: give it `options`, start, kill and restart it."""
    _require("kafka", kafka.missing())
    server = Kafka(tmp_path / "kafka")
    yield server
    server.kill()  # a shutdown takes seconds, and its files go
    server.stop()


@pytest.fixture(scope="session")
def delta_jars() -> list[str]:
    """Delta Lake's jars for Spark."""
    _require("delta", delta.missing())
    return delta.jars()


@pytest.fixture
def duckdb_iceberg() -> Path:
    """A Python with DuckDB's extension for Iceberg."""
    home = Path(__file__).parents[1] / "build/duckdb-iceberg"
    is_here = (home / ".installed").exists()
    _require("duckdb-iceberg", "" if is_here else f"{home} isn't there: run tests/services/duckdb-iceberg")
    return home / "bin/python"


@pytest.fixture
def consumer_in_java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaConsumer]:
    """examples/java, which is compiled while the test begins."""
    _require("avro-java", java_consumer.missing())
    consumer = JavaConsumer(tmp_path_factory.mktemp("java"))
    yield consumer
    consumer.close()


@pytest.fixture(name="iceberg_rest")
def _iceberg_rest(tmp_path: Path) -> Iterator[IcebergRest]:
    """A REST catalog of the test's own."""
    _require("iceberg-rest", iceberg_rest.missing())
    with IcebergRest(tmp_path / "rest") as server:
        yield server


@pytest.fixture
def mock_kafka() -> Iterator[MockKafka]:
    """Two imitated brokers of the test's own."""
    with MockKafka(2) as cluster:
        yield cluster


# --- S3


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Store]:
    """A store for the whole session, one for each xdist worker: make a bucket of your own."""
    from tidemill.testing.s3 import LOGIN, S3Store

    os.environ.update(LOGIN)
    with S3Store() as server:
        yield server


@pytest.fixture
def bucket(s3_server: S3Store) -> str:
    """The name of a fresh, empty bucket on `s3_server`."""
    return s3_server.bucket(f"bucket-{next(_numbers)}")


# --- etcd


@pytest.fixture
def needs_etcd() -> None:
    """Skips, or fails, a test that starts an etcd itself where there is none."""
    _require("etcd", etcd.missing())


@pytest.fixture
def private_etcd(tmp_path: Path) -> Iterator[Etcd]:
    """A running etcd of the test's own: kill, pause and start it again."""
    _require("etcd", etcd.missing())
    with Etcd(tmp_path / "etcd") as server:
        yield server


# --- Chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless browser, for tests that aren't asynchronous: it has a loop in this thread."""
    _require("chromium", chromium.missing())
    with chromium.chromium() as started:
        yield started


@pytest.fixture(scope="module", params=["python", "native"])
def decoder(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a module's tests with each of the two decoders of rows."""
    if request.param == "native" and library.native is None:
        pytest.skip("the native decoder isn't built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "in_use", request.param == "native")
        yield request.param
