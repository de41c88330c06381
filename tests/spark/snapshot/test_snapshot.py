"""A table of MariaDB or MySQL, read by several tasks."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

import pytest
from pyspark.sql import types as t
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, InputPartition

from tidemill.errors import ConfigError, SourceError
from tidemill.spark.data_source import PushingSource, TidemillSource
from tidemill.spark.read.batch_reader import PushingReader
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import eventually, joined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Snapshot:
    """A read, called as Spark calls it."""

    def __init__(
        self,
        sql: Client,
        *,
        partitions: int = 1,
        filters: Sequence[Filter] = (),
        row: t.StructType | None = None,
    ) -> None:
        options = {
            "source": sql.server.url(),
            "table": f"{sql.database}.item",
            "partitions": str(partitions),
            "filterPushdown": "true",
        }
        source = PushingSource(options)
        schema = source.schema() if row is None else t.StructType([t.StructField("after", row)])
        reader = source.reader(schema)
        assert isinstance(reader, PushingReader)
        assert list(reader.pushFilters([*filters])) == [*filters]
        self.reader = reader
        self.parts: Sequence[InputPartition] = reader.partitions()

    def rows(self) -> list[tuple[Any, ...]]:
        found = [row for part in self.parts for batch in self.reader.read(part) for row in batch.to_pylist()]
        return sorted(tuple(row["after"].values()) for row in found)


def present(sql: Client) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in sql("SELECT * FROM item"))


def made(sql: Client, rows: int = 8000) -> None:
    sql("CREATE TABLE item (a INT, b INT, note VARCHAR(40), PRIMARY KEY (a, b))")
    values = ", ".join(f"({number // 2}, {number}, '{'x' * 20}')" for number in range(1, rows + 1))
    sql(f"INSERT INTO item VALUES {values}")


@pytest.fixture(params=["sql", "mysql_sql"])
def either_sql(request: pytest.FixtureRequest) -> Client:
    """A session on MariaDB, and one on MySQL."""
    client: Client = request.getfixturevalue(request.param)
    return client


def test_all_tasks_read_the_rows_of_one_position(either_sql: Client) -> None:
    sql = either_sql
    made(sql)
    found = Snapshot(sql, partitions=3)
    assert len(found.parts) == 3
    wanted, random = present(sql), Random(7)
    for number in range(60):
        a = random.randrange(4000)
        sql(
            random.choice(
                (
                    f"UPDATE item SET note = 'later {number}' WHERE a = {a}",
                    f"DELETE FROM item WHERE a BETWEEN {a} AND {a + 3}",
                    f"INSERT INTO item VALUES ({a}, {20_000 + number}, 'new')",
                    f"UPDATE item SET a = {5000 + number} WHERE a = {a}",
                    f"UPDATE item SET a = -{number} WHERE a = {5000 + number - 1}",
                )
            )
        )
    assert present(sql) != wanted
    assert found.rows() == wanted
    sql("DELETE FROM item WHERE a > 1000")
    assert found.rows() == wanted  # a task that is repeated


class Mover(Thread):
    """Moves amounts from row to row, each in a transaction, until the end of the `with` block."""

    def __init__(self, sql: Client, rows: int, seed: int) -> None:
        super().__init__()
        self._sql = Client(sql.server, sql.database)
        self._rows = rows
        self._random = Random(seed)
        self._stop_now = Event()
        self.moves = 0

    def run(self) -> None:
        while not self._stop_now.is_set():
            amount, (less, more) = self._random.randrange(9), self._random.sample(range(self._rows), 2)
            self._sql(
                "BEGIN",
                f"UPDATE item SET amount = amount - {amount} WHERE id = {min(less, more)}",
                f"UPDATE item SET amount = amount + {amount} WHERE id = {max(less, more)}",
                "COMMIT",
            )
            self.moves += 1

    def move_on(self) -> None:
        """Wait for ten more moves."""
        wanted = self.moves + 10
        eventually(lambda: self.moves >= wanted, sign=lambda: (self.moves, self.is_alive()))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop_now.set()
        joined(self)
        self._sql.close()


def test_rows_that_change_together_are_read_together(either_sql: Client) -> None:
    """Amounts move between the ranges of the tasks: the sum stays the same."""
    sql = either_sql
    sql("CREATE TABLE item (id INT PRIMARY KEY, amount BIGINT)")
    sql(f"INSERT INTO item VALUES {', '.join(f'({number}, 100)' for number in range(6000))}")
    with Mover(sql, 6000, 1) as one, Mover(sql, 6000, 2):
        for _ in range(8):
            one.move_on()
            found = Snapshot(sql, partitions=3)
            assert len(found.parts) == 3
            one.move_on()
            rows = found.rows()
            assert (len(rows), sum(amount for _, amount in rows)) == (6000, 600_000)


def test_one_key_of_mysql_is_read_without_a_lock(mysql_sql: Client) -> None:
    sql = mysql_sql
    made(sql)
    locks = "SELECT variable_value FROM performance_schema.global_status WHERE variable_name = 'Com_flush'"
    before = sql(locks)
    found = Snapshot(sql, partitions=3, filters=[EqualTo(("after", "a"), 7)])
    assert [row[:2] for row in found.rows()] == [(7, 14), (7, 15)]
    assert sql(locks) == before


def test_each_row_has_its_ts_and_a_number_of_its_own(sql: Client, mariadb: MariaDb) -> None:
    made(sql)
    found = Snapshot(sql, partitions=2)
    rows = [row for part in found.parts for batch in found.reader.read(part) for row in batch.to_pylist()]
    assert len({row["sequence"] for row in rows}) == len(rows) == 8000
    (at,) = {(row["commit_ts"], row["start_ts"], row["op"], row["before"]) for row in rows}
    assert at[2:] == ("insert", None)


def rows_read(sql: Client) -> int:
    """Return how many rows of the table have been read since the last call."""
    sql("SET GLOBAL userstat = 1")
    where = f"table_schema = '{sql.database}' AND table_name = 'item'"
    found = sql(f"SELECT rows_read FROM information_schema.table_statistics WHERE {where}")
    sql("FLUSH TABLE_STATISTICS")
    return int(found[0][0]) if found else 0


def test_one_key_is_read_alone(sql: Client, mariadb: MariaDb) -> None:
    made(sql)
    rows_read(sql)
    found = Snapshot(sql, partitions=3, filters=[EqualTo(("after", "a"), 7)])
    assert len(found.parts) == 1
    assert [row[:2] for row in found.rows()] == [(7, 14), (7, 15)]
    assert 2 <= rows_read(sql) < 100
    assert Snapshot(sql, filters=[GreaterThan(("after", "a"), 9), EqualTo(("after", "a"), 7)]).parts == []


def test_rows_that_change_their_filtered_columns_are_as_before(sql: Client, mariadb: MariaDb) -> None:
    made(sql, 10)
    sql("UPDATE item SET note = 'mine' WHERE a IN (1, 2)")
    found = Snapshot(sql, filters=[EqualTo(("after", "note"), "mine")])
    sql("UPDATE item SET note = 'other' WHERE a = 1", "UPDATE item SET note = 'mine' WHERE a = 4")
    mine = [row for row in found.rows() if row[2] == "mine"]
    assert [row[0] for row in mine] == [1, 1, 2, 2]


def test_only_the_columns_of_the_schema_are_read(sql: Client, mariadb: MariaDb) -> None:
    sql("CREATE TABLE item (id INT PRIMARY KEY, day DATE, note TEXT)")
    sql("SET sql_mode = ''", "INSERT INTO item VALUES (1, '0000-00-00', 'a'), (2, '2026-01-01', 'b')")
    with pytest.raises(SourceError, match=r"column day of .* holds '0000-00-00'"):
        Snapshot(sql).rows()
    found = Snapshot(sql, row=t.StructType([t.StructField("note", t.StringType())]))
    sql("UPDATE item SET note = 'later' WHERE id = 1")
    assert found.rows() == [("a",), ("b",)]
    with pytest.raises(ConfigError, match=r"schema: .*item has no column tag; it has id, day, note"):
        Snapshot(sql, row=t.StructType([t.StructField("tag", t.StringType())]))
    with pytest.raises(ConfigError, match="schema: column id is int, not string; name columns as they are"):
        Snapshot(sql, row=t.StructType([t.StructField("id", t.StringType())]))


@pytest.mark.parametrize("statement", ["ADD COLUMN more INT", "ADD COLUMN more INT, ALGORITHM=COPY"])
def test_a_table_that_is_altered_before_it_is_read_is_an_error(
    sql: Client, mariadb: MariaDb, statement: str
) -> None:
    made(sql, 10)
    found = Snapshot(sql)
    sql(f"ALTER TABLE item {statement}")
    with pytest.raises(SourceError, match=r"item was altered .*: load\(\) again"):
        found.rows()
    sql("ALTER TABLE item DROP COLUMN more")
    with pytest.raises(SourceError, match=r"item was altered while it was read: ALTER .*; load\(\) again"):
        found.rows()


def test_a_table_whose_keys_have_no_order_here_is_read_by_one_task(sql: Client, mariadb: MariaDb) -> None:
    column = "VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
    sql(f"CREATE TABLE item (id {column} PRIMARY KEY)", "INSERT INTO item VALUES ('a'), ('B')")
    found = Snapshot(sql, partitions=3, filters=[EqualTo(("after", "id"), "b")])
    assert len(found.parts) == 1
    assert found.rows() == [("B",)]


def test_a_table_without_views_is_read_by_a_feed(sql: Client, mariadb: MariaDb) -> None:
    sql("CREATE TABLE item (id INT PRIMARY KEY) ENGINE=MyISAM", "INSERT INTO item VALUES (1), (2)")
    assert Snapshot(sql, partitions=3).rows() == [(1,), (2,)]


def test_spark_pushes_conditions_on_columns(spark: SparkSession, sql: Client, mariadb: MariaDb) -> None:
    made(sql)
    reader = spark.read.format("tidemill").options(source=mariadb.url(), table=f"{sql.database}.item")
    reader = reader.option("partitions", 2).option("filterPushdown", "true")
    assert reader.load().rdd.getNumPartitions() == 2
    frame = reader.load()
    rows_read(sql)
    rows = frame.where("after.a = 7 and op = 'insert'").select("after.*").collect()
    assert sorted(map(tuple, rows)) == [(7, 14, "x" * 20), (7, 15, "x" * 20)]
    assert 2 <= rows_read(sql) < 100


def test_a_frame_has_all_rows_after_a_query_with_conditions(
    spark: SparkSession, sql: Client, mariadb: MariaDb
) -> None:
    made(sql, 10)
    reader = spark.read.format("tidemill").options(source=mariadb.url(), table=f"{sql.database}.item")
    frame = reader.load()
    few, other = frame.where("after.a = 2"), frame.where("after.a = 3")
    assert (few.count(), frame.count(), few.union(other).count()) == (2, 10, 4)
    assert few.alias("few").join(frame.alias("all"), "op").count() == 2 * 10


def test_the_option_for_filters_needs_a_session_that_pushes_them(sql: Client, mariadb: MariaDb) -> None:
    made(sql, 1)
    source = TidemillSource(
        {"source": mariadb.url(), "table": f"{sql.database}.item", "filterPushdown": "true"}
    )
    with pytest.raises(
        ConfigError, match="option filterPushdown: Spark pushes no filters in this session: set"
    ):
        source.reader(source.schema())
