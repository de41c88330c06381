"""A stream with the columns of its table, and a table that is changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.errors import ConfigError, SourceError
from tidemill.events import Column, Table
from tidemill.spark.data_source import TidemillSource
from tidemill.spark.read.schema_changes import difference
from tidemill.spark.read.stream_reader import StreamReader
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client

from .job import Job, completed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Bed(NamedTuple):
    """A source with a table item (id, note)."""

    url: str
    table: str
    alter: Callable[[str], object]
    insert: Callable[[dict[str, Any]], object]

    @property
    def options(self) -> dict[str, str]:
        return {"source": self.url, "table": self.table}


@pytest.fixture(params=["tikv", "mariadb"])
def bed(request: pytest.FixtureRequest) -> Bed:
    if request.param == "tikv":
        tidb: Tidb = request.getfixturevalue("tidb")
        tidb.execute("create table shop.item (id int primary key, note varchar(9))")

        def insert(row: dict[str, Any]) -> None:
            with tidb.transaction() as txn:
                txn.insert("shop.item", row)

        url = f"tikv://{tidb.pd_address}"
        return Bed(url, "shop.item", lambda what: tidb.execute(f"alter table shop.item {what}"), insert)
    sql: Client = request.getfixturevalue("sql")
    server: MariaDb = request.getfixturevalue("mariadb")
    sql("CREATE TABLE item (id INT PRIMARY KEY, note VARCHAR(9))")

    def add(row: dict[str, Any]) -> None:
        sql(f"INSERT INTO item ({', '.join(row)}) VALUES ({', '.join(map(repr, row.values()))})")

    return Bed(server.url(), f"{sql.database}.item", lambda what: sql(f"ALTER TABLE item {what}"), add)


ROW = {"id": 1, "note": "a"}


class TypedJob(Job):
    """Keeps the rows as they are after a change."""

    def load(self) -> DataFrame:
        return self.spark.readStream.format("tidemill").options(**self.options).load()

    def run_on(self, frame: DataFrame) -> str:
        """Process all available changes; return the error that stopped the query."""
        writer = frame.writeStream.foreachBatch(self._keep)
        writer = writer.option("checkpointLocation", str(self.directory / "checkpoint"))
        try:
            completed(writer.trigger(availableNow=True).start)
        except Exception as error:
            return str(error)
        return ""

    def _keep(self, frame: DataFrame, number: int) -> None:
        self.batches[number] = frame.toArrow()["after"].to_pylist()


def test_a_query_stops_before_the_first_row_of_a_changed_table(
    spark: SparkSession, bed: Bed, tmp_path: Path
) -> None:
    job = TypedJob(spark, tmp_path, bed.url, table=bed.table)
    frame = job.load()
    assert job.run_on(frame) == ""
    bed.insert(ROW)
    assert job.run_on(frame) == ""
    bed.alter("add column tag varchar(9)")
    bed.insert({"id": 2, "note": "b", "tag": "new"})
    assert "column tag was added; load() again" in job.run_on(frame)
    assert job.found == [ROW]
    assert job.run_on(job.load()) == ""
    assert job.found == [ROW, {"id": 2, "note": "b", "tag": "new"}]


class Query:
    """A reader, called as Spark calls it; each start of a query has its own, of the same frame."""

    def __init__(self, frame: TidemillSource) -> None:
        self.reader = frame.streamReader(frame.schema())
        assert isinstance(self.reader, StreamReader)

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.reader.stop()

    def end(self, start: dict[str, Any]) -> dict[str, Any]:
        found = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
        assert found != start
        return found

    def rows(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
        batches = [batch for one in self.reader.partitions(start, end) for batch in self.reader.read(one)]
        found = pa.Table.from_batches(batches, self.reader.output.schema)
        return list(found["after"].to_pylist())


def load(bed: Bed) -> TidemillSource:
    frame = TidemillSource(bed.options)
    frame.schema()
    return frame


CHANGES = {
    "added": ("add column tag varchar(9)", {"id": 2, "note": "b", "tag": "new"}, "column tag was added"),
    "dropped": ("drop column note", {"id": 2}, "column note is gone"),
    "renamed": (
        "rename column note to text",
        {"id": 2, "text": "b"},
        "column text was added, column note is gone",
    ),
    "retyped": (
        "modify column id bigint",
        {"id": 2, "note": "b"},
        "column id was int and is bigint",
    ),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_row_of_a_changed_table_stops_the_query_and_a_new_load_goes_on(bed: Bed, kind: str) -> None:
    statement, row, sentence = CHANGES[kind]
    # Without schema changes, a query of rows passes over those that a local feed can't follow.
    frame = TidemillSource({**bed.options, "operations": "insert,update,delete"})
    frame.schema()
    with Query(frame) as query:
        first = query.reader.initialOffset()
        bed.insert(ROW)
        middle = query.end(first)
        assert query.rows(first, middle) == [ROW]
        bed.alter(statement)
        bed.insert(row)
        last = query.end(middle)
        with pytest.raises(
            SourceError, match=rf"was changed while .*: {sentence}; .* load\(\) again and start"
        ):
            query.rows(middle, last)
    with (
        Query(frame) as query,
        pytest.raises(
            ConfigError, match=rf"was changed after load\(\).*: {sentence}; load\(\) again and start"
        ),
    ):
        query.rows(middle, last)
    frame = TidemillSource({**bed.options, "operations": "insert,update,delete"})
    with Query(frame) as query:
        assert query.rows(middle, last) == [row]


def test_rows_from_before_a_column_was_added_have_null_there(bed: Bed) -> None:
    with Query(load(bed)) as query:
        first = query.reader.initialOffset()
    bed.insert(ROW)
    bed.alter("add column tag varchar(9)")
    bed.insert({"id": 2, "note": "b", "tag": "new"})
    with Query(load(bed)) as query:
        middle = query.end(first)
        bed.alter("drop column tag")
        bed.insert({"id": 3, "note": "c"})
        last = query.end(middle)
        assert query.rows(first, middle) == [{**ROW, "tag": None}, {"id": 2, "note": "b", "tag": "new"}]
        with pytest.raises(SourceError, match="column tag is gone"):
            query.rows(middle, last)


def test_a_row_with_a_column_that_is_gone_is_not_cut(bed: Bed) -> None:
    with Query(load(bed)) as query:
        first = query.reader.initialOffset()
    bed.insert(ROW)
    bed.alter("drop column note")
    with Query(load(bed)) as query:
        end = query.end(first)
        with pytest.raises(SourceError, match=r"have the column note, .* the raw envelope holds it"):
            query.rows(first, end)


def test_there_are_two_values(bed: Bed) -> None:
    with pytest.raises(ConfigError, match=r"option schemaChanges = 'drop': .* none of 'fail', 'evolve'"):
        TidemillSource({**bed.options, "schemaChanges": "drop"}).schema()


def test_only_what_spark_can_see_of_a_column_is_a_change() -> None:
    before = Table("s", "t", (Column("id", "int"), Column("note", "varchar", length=9)))
    after = Table("s", "t", (Column("note", "text"), Column("id", "int", nullable=True)))
    assert difference(before, after) == ""
