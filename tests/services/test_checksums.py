"""Checksums of rows, as a real MariaDB and a real MySQL compute them."""

from __future__ import annotations

import pytest

from tidemill.dialects.mysql.server_rows import SESSION, ServerRows
from tidemill.dialects.read import Checksum, Range
from tidemill.events import Column, Table
from tidemill.puller.mysql.options import MysqlOptions

ALL = Range(None, None)
PAIRS = Table(
    "shop",
    "pairs",
    (
        Column("a", "varchar", length=20, charset="utf8mb4"),
        Column("b", "varchar", length=20, charset="utf8mb4"),
        Column("c", "varbinary", length=20),
        Column("d", "varbinary", length=20),
        Column("e", "text", length=2, charset="utf8mb4"),
        Column("f", "int"),
    ),
)
ROWS = [
    "'a', 'b', NULL, NULL, NULL, NULL",
    "NULL, 'a', NULL, NULL, 'b', NULL",
    "'a', NULL, 'b', NULL, NULL, NULL",
    "'a', '', NULL, NULL, 'b', NULL",
    "'a,b', 'c', NULL, NULL, NULL, NULL",
    "'a', 'b,c', NULL, NULL, NULL, NULL",
    "'a ', 'b', NULL, NULL, NULL, NULL",
    "'A', 'b', NULL, NULL, NULL, NULL",
    "NULL, NULL, x'31ff31', x'32', NULL, NULL",
    "NULL, NULL, x'31', x'31ff32', NULL, NULL",
    "NULL, NULL, NULL, NULL, '1', NULL",
    "NULL, NULL, NULL, NULL, NULL, 1",
    "'', NULL, NULL, NULL, NULL, NULL",
    "NULL, NULL, NULL, NULL, NULL, NULL",
]
"""Rows that look alike if their values are joined without care."""
FLAGS = Table("shop", "flags", tuple(Column(f"c{number}", "tinyint") for number in range(130)))


class Side:
    """A server's checksums of tables in a database of the test's own."""

    def __init__(self, server, database):
        self.connection, reading = server.connect(database=database), server.connect()
        self.cursor = self.connection.cursor()
        self.reading = reading
        reading.cursor().execute(SESSION)
        options = MysqlOptions(host=server.host, port=server.port)
        self.reader = ServerRows(reading, options, lambda table: f"{database}.{table.name}")

    def close(self):
        self.connection.close()
        self.reading.close()

    def of(self, table, *rows):
        self.cursor.execute(f"DELETE FROM {table.name}")
        for row in rows:
            self.cursor.execute(f"INSERT INTO {table.name} VALUES ({row})")
        return self.reader.checksum(table, ALL)


@pytest.fixture
def sides(mariadb, database, mysql97, mysql_database):
    made = [Side(mariadb, database), Side(mysql97, mysql_database)]
    columns = ", ".join(f"{column.name} TINYINT" for column in FLAGS.columns)
    for side in made:
        side.cursor.execute(f"CREATE TABLE flags ({columns})")
        side.cursor.execute(
            "CREATE TABLE pairs (a VARCHAR(20), b VARCHAR(20), c VARBINARY(20), d VARBINARY(20), e TEXT, "
            "f INT) CHARSET utf8mb4"
        )
    yield made
    for side in made:
        side.close()


def test_rows_that_look_alike_have_checksums_of_their_own_on_every_server(sides):
    found = [[side.of(PAIRS, row) for row in ROWS] for side in sides]
    assert found[0] == found[1]
    assert len(set(found[0])) == len(ROWS)


def test_each_of_many_columns_that_are_null_counts(sides):
    nulls = ["NULL"] * len(FLAGS.columns)
    rows = [", ".join([*nulls[:at], "1", *nulls[at + 1 :]]) for at in range(0, len(nulls), 7)]
    for side in sides:
        assert len({side.of(FLAGS, row) for row in rows}) == len(rows)


def test_values_that_two_rows_exchange_change_the_checksum(sides):
    for side in sides:
        before = side.of(PAIRS, "'a', 'b', x'01', NULL, 'x', 1", "'c', 'd', x'02', NULL, 'y', 2")
        after = side.of(PAIRS, "'a', 'd', x'01', NULL, 'x', 1", "'c', 'b', x'02', NULL, 'y', 2")
        assert (before.rows, after.rows) == (2, 2)
        assert before.bits != after.bits


def test_no_rows_have_a_checksum_too(sides):
    assert [side.of(PAIRS) for side in sides] == [Checksum(0, (0, 0, 0, 0))] * 2
