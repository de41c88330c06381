"""Shards of MariaDB and MySQL in one table of each kind of SQL target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mysql import MySql
from tidemill.testing.postgres import PostgreSql

from .twins import TABLES, Twins


class Target(NamedTuple):
    sink: dict[str, Any]
    select: Callable[[str], list[tuple[Any, ...]]]
    """Return the rows of a SELECT that names the merged table {}."""


@pytest.fixture
def mixed(mariadb: MariaDb, mysql97: MySql, database: str, tmp_path: Path) -> Iterator[Twins]:
    """One server is a MariaDB, the other one a MySQL."""
    with mysql97.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
        yield Twins({"north": mariadb, "south": mysql97}, database, tmp_path)
        cursor.execute(f"DROP DATABASE {database}")


@pytest.fixture
def sqlite(mixed: Twins) -> Target:
    return Target(mixed.sink, lambda columns: mixed.rows(columns))


@pytest.fixture
def postgres(postgresql: PostgreSql, postgres_database: str) -> Target:
    def select(columns: str) -> list[tuple[Any, ...]]:
        with postgresql.connect(dbname=postgres_database) as connection:
            return connection.execute(f"SELECT {columns} FROM whole.item ORDER BY 1").fetchall()

    return Target({"name": "copy", "url": postgresql.url(postgres_database)}, select)


@pytest.fixture
def mysql(mysql97: MySql, mysql_database: str) -> Target:
    def select(columns: str) -> list[tuple[Any, ...]]:
        return mysql97.execute(f"SELECT {columns} FROM item ORDER BY 1", database=mysql_database)

    return Target({"name": "copy", "url": mysql97.url(), "schema": mysql_database}, select)


@pytest.mark.parametrize(
    ("target", "mode"),
    [("sqlite", "pessimistic"), ("postgres", "pessimistic"), ("mysql", "optimistic")],
)
def test_shards_of_mariadb_and_mysql_are_merged(mixed, target, mode, request):
    copy: Target = request.getfixturevalue(target)
    mixed.sink = copy.sink
    mixed.sharding = {"mode": mode, "max_held_rows": 3}
    mixed.run()
    assert copy.select("id, v") == mixed.union()
    text = "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"  # the servers' defaults differ
    changes = f"ADD COLUMN c {text} DEFAULT 'five'", "MODIFY v BIGINT"
    for name in mixed.servers:
        for table in TABLES:
            mixed.execute(
                name,
                f"ALTER TABLE {table} {changes[0]}",
                f"UPDATE {table} SET c = '{name}' WHERE id % 2 = 0",
                f"ALTER TABLE {table} {changes[1]}",
                f"UPDATE {table} SET v = 1099511627776 WHERE id % 4 = 1",
                f"DELETE FROM {table} WHERE id % 4 = 3",
            )
        (lock,) = mixed.run().status().locks if name == "north" else (None,)
        assert lock is None or len(copy.select("id")) >= 10
    assert mixed.run().status().locks == []
    assert copy.select("id, v, c") == mixed.union("id, v, c")
