"""Empty databases of every dialect, in which the suites of sinks, of comparisons and of Spark's writers work.

A dialect needs one entry of PLACES to be tested by all of them. An installed package adds its entries by the
entry-point group `tidemill.test_places`, each named like its dialect.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from importlib.metadata import entry_points
from ipaddress import ip_address

import duckdb
import pytest

from tidemill.dialects.dialect import Dialect
from tidemill.dialects.postgres.types import TEXTS
from tidemill.dialects.registry import DIALECTS
from tidemill.dialects.sqlite.types import from_sqlite
from tidemill.events import WITH_DATE, Row
from tidemill.testing import column_kinds as kinds
from tidemill.testing.database_place import DatabasePlace
from tidemill.testing.postgres_values import from_postgres


class SqlitePlace(DatabasePlace):
    def __init__(self, path, feed="test", **options):
        super().__init__(f"sqlite:///{path}", feed, **options)
        self.path = path

    def query(self, sql):
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return connection.execute(sql).fetchall()

    def rows(self, table):
        names = ", ".join(f'"{column.name}"' for column in table.columns)
        rows = self.query(f"SELECT {names} FROM {self.named(table.schema, table.name)}")
        return [tuple(map(from_sqlite, table.columns, row)) for row in rows]

    def named(self, schema, table):
        return f'"{schema}.{table}"'

    def tells_apart(self, one, other):
        return one != other  # a zero has no sign


class DuckDbPlace(DatabasePlace):
    def __init__(self, path, feed="test", **options):
        super().__init__(f"duckdb:///{path}", feed, **{"dates": "text", **options})
        self.path = path

    def query(self, sql):
        with duckdb.connect(str(self.path)) as connection:
            return connection.execute(sql).fetchall()

    def rows(self, table):
        names = ", ".join(f'"{column.name}"' for column in table.columns)
        rows = self.query(f"SELECT {names} FROM {self.named(table.schema, table.name)}")
        return [tuple(map(self._value, table.columns, row)) for row in rows]

    @staticmethod
    def _value(column, value):
        """Return the value of the source for one that DuckDB stores, some of them as SQLite does."""
        return from_sqlite(column, value) if isinstance(value, str) else value

    def named(self, schema, table):
        return f'{self.path.stem}."{schema}"."{table}"'

    def storable(self, row):
        return row if self.options["dates"] == "text" else without_odd_dates(row)

    def kept_open(self):
        return duckdb.connect(str(self.path))


class MariaDbPlace(DatabasePlace):
    """A database of any server of the MySQL family."""

    def __init__(self, server, database, feed="test", **options):
        super().__init__(server.url(database), feed, **options)
        self.server = server
        self.database = database

    def query(self, sql):
        return self.server.execute("SET time_zone='+00:00'", sql, database=self.database)

    def kill(self, session):
        self.query(f"KILL {session.rows('SELECT CONNECTION_ID()')[0][0]}")

    def rows(self, table):
        names = ", ".join(f"`{column.name}`" for column in table.columns)
        return self.query(f"SELECT {names} FROM `{table.name}`")

    def named(self, schema, table):
        return f"`{table}`"

    def tells_apart(self, one, other):
        if self.query("SELECT VERSION() LIKE '%MariaDB%'")[0][0]:
            return one != other  # a zero has no sign
        return super().tells_apart(one, other)


class PostgresPlace(DatabasePlace):
    def __init__(self, server, database, feed="test", **options):
        super().__init__(server.url(database), feed, **options)
        self.server = server
        self.database = database

    def query(self, sql):
        with self.server.connect(dbname=self.database) as connection:
            connection.execute("SET TimeZone='UTC'")
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def kill(self, session):
        self.query(f"SELECT pg_terminate_backend({session.rows('SELECT pg_backend_pid()')[0][0]}, 10000)")

    def rows(self, table):
        names = ", ".join(f'"{column.name}"::text' for column in table.columns)
        rows = self.query(f"SELECT {names} FROM {self.named(table.schema, table.name)}")
        return [tuple(map(from_postgres, table.columns, row)) for row in rows]

    def named(self, schema, table):
        return f'"{schema}"."{table}"'

    def storable(self, row):
        return storable(row)


def storable(row: Row, *, dates: bool = False) -> Row:
    """Return a row of kinds.KEYED without what PostgreSQL lacks: NUL in texts, and dates that don't exist."""
    values = []
    for column, value in zip(kinds.KEYED.columns, row, strict=True):
        if isinstance(value, str) and column.kind in TEXTS:
            value = value.replace("\0", "|")
        if value is not None and column.kind == "inet6":
            value = str(ip_address(value))
        values.append(value)
    return tuple(values) if dates else without_odd_dates(values)


def without_odd_dates(row: Row) -> Row:
    """Return a row of kinds.KEYED with NULL for dates that don't exist."""
    return tuple(
        [
            None if isinstance(value, str) and column.kind in WITH_DATE else value
            for column, value in zip(kinds.KEYED.columns, row, strict=True)
        ]
    )


# --- of every dialect

Maker = Callable[[pytest.FixtureRequest], DatabasePlace]


def _sqlite(request: pytest.FixtureRequest) -> DatabasePlace:
    return SqlitePlace(request.getfixturevalue("tmp_path") / "copy.db")


def _duckdb(request: pytest.FixtureRequest) -> DatabasePlace:
    return DuckDbPlace(request.getfixturevalue("tmp_path") / "copy.duckdb")


def _native_duckdb(request: pytest.FixtureRequest) -> DatabasePlace:
    return DuckDbPlace(request.getfixturevalue("tmp_path") / "copy.duckdb", dates="native")


def _mariadb(request: pytest.FixtureRequest) -> DatabasePlace:
    return MariaDbPlace(*request.getfixturevalue("target_mariadb"))


def _mysql(request: pytest.FixtureRequest) -> DatabasePlace:
    return MariaDbPlace(request.getfixturevalue("mysql97"), request.getfixturevalue("mysql_database"))


def _postgres(request: pytest.FixtureRequest) -> DatabasePlace:
    return PostgresPlace(request.getfixturevalue("postgresql"), request.getfixturevalue("postgres_database"))


PLACES: dict[str, Mapping[str, Maker]] = {
    "SQLite": {"sqlite": _sqlite},
    "MySQL": {"mariadb": _mariadb, "mysql": _mysql},
    "PostgreSQL": {"postgresql": _postgres},
    "DuckDB": {"duckdb": _duckdb, "duckdb, native dates": _native_duckdb},
    **{entry.name: {entry.name: entry.load()} for entry in entry_points(group="tidemill.test_places")},
}
"""Places by dialect, and by the name of the server or setting in test ids."""


def _no_place(dialect: Dialect) -> Maker:
    def fails(request: pytest.FixtureRequest) -> DatabasePlace:
        pytest.fail(
            f"{dialect.name} has no empty database for tests: add one to PLACES in tests/dialects/places.py, "
            "or by an entry point of the group tidemill.test_places"
        )

    return fails


def makers(dialects: Iterator[Dialect] | None = None) -> dict[str, Maker]:
    """Return the makers of places of the dialects, of every dialect of the registry by default."""
    found: dict[str, Maker] = {}
    for dialect in DIALECTS if dialects is None else dialects:
        found |= PLACES.get(dialect.name) or {dialect.name: _no_place(dialect)}
    return found


MAKERS = makers()
SHARED = makers(dialect for dialect in DIALECTS if dialect.traits.is_shared)
"""Of databases to which several processes can write at the same time."""
