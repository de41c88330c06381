"""Backfills of a MySQL that is written to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tidemill.spark.backfill.backfill import backfill
from tidemill.spark.backfill.options import BackfillOptions
from tidemill.testing.mariadb_client import Client

from .world import Writer, eventually, go_on, into_copy, load, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = 12_000


@pytest.fixture
def copy(mysql_sql: Client) -> Iterator[str]:
    """A schema that doesn't exist yet."""
    name = f"{mysql_sql.database}_copy"
    yield name
    mysql_sql(f"DROP DATABASE IF EXISTS {name}")


def insert(sql: Client, table: str, tuples: Iterable[tuple[Any, ...]]) -> None:
    sql(f"INSERT IGNORE INTO {table} VALUES {', '.join(map(repr, tuples))}")


def create_tables(sql: Client) -> None:
    """`a` has a key of integers, `w` of strings, `k` of both."""
    sql(
        "CREATE TABLE a (id BIGINT UNSIGNED PRIMARY KEY, n INT, s VARCHAR(40), p DECIMAL(10,2),"
        " d DATETIME(3), f FLOAT, t TIME(2), b VARBINARY(9))",
        "CREATE TABLE w (s VARCHAR(20) PRIMARY KEY, n INT)",
        "CREATE TABLE k (s VARCHAR(20), n INT, PRIMARY KEY (s, n))",
    )
    moment = "2024-02-03 04:05:06.789"
    numbers = range(1, ROWS + 1)
    insert(sql, "a", ((3 * n, n, f"row {n}", n / 7, moment, n / 3, "-11:12:13.45", f"{n}") for n in numbers))
    insert(sql, "w", ((f"k{n}", n) for n in range(1000)))
    insert(sql, "k", ((f"k{n % 100}", n % 50) for n in range(1000)))


def test_rows_that_change_meanwhile_are_the_same_at_the_end(
    spark: SparkSession, mysql_sql: Client, copy: str, tmp_path: Path
) -> None:
    sql = mysql_sql
    create_tables(sql)
    server, tables = sql.server, f"{sql.database}.*"
    options = into_copy(server.url(), server, tables, copy, tmp_path / "state")
    with Writer(server, sql.database, ROWS) as writer:
        before = writer.transactions
        done = backfill(
            spark,
            {"source": server.url(), "tables": tables},
            tmp_path / "bf",
            BackfillOptions(chunk_rows=2_000),
        )
        meanwhile = writer.transactions - before
        load(done, options)
        eventually(lambda: writer.transactions >= before + meanwhile + 100)
    go_on(options)
    assert meanwhile > 100
    assert done.chunks >= 5
    for table in ("a", "w", "k"):
        assert rows(server, copy, table) == rows(server, sql.database, table)
