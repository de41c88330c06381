"""Large tables of TiKV that several partitions share."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.functions import spark_partition_id
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tidemill.actors import SystemClock
from tidemill.codec.tidb.key import record_key, record_prefix
from tidemill.emulator.sql.sql import Tidb
from tidemill.errors import CheckpointError, ConfigError, SinkError
from tidemill.events import Ddl
from tidemill.puller.tikv.client import TikvClient
from tidemill.puller.tikv.kv.region_bounds import region_bounds
from tidemill.puller.tikv.options import TikvOptions, endpoints
from tidemill.puller.tikv.span import table_span
from tidemill.spark.capture.ticket import Ticket
from tidemill.spark.data_source import TidemillSource
from tidemill.spark.envelope import Decoder, EnvelopeEncoder
from tidemill.spark.offsets.offset import ts_offset
from tidemill.spark.read.batch_reader import BatchReader
from tidemill.spark.read.partition import TaskPartition
from tidemill.spark.read.parts import WHOLE, Part
from tidemill.spark.read.ranges import RangePiece, even
from tidemill.spark.read.stream_reader import BOUNDS, StreamReader
from tidemill.spark.run.source import RunSource
from tidemill.spark.write.order import Ordered

from . import history
from .job import Job
from .test_writer import copy_locally, follow, read, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 300
UNREACHABLE = "127.0.0.1:1"


@pytest.fixture
def shop(tidb: Tidb) -> Tidb:
    """`big` has its rows in three regions, `words` those of its string keys in two."""
    tidb.execute("create table shop.big (id bigint primary key, n int)")
    tidb.execute("create table shop.words (word varchar(20) primary key, n int)")
    for number in (100, 200):
        split(tidb, number)
    tidb.split(record_prefix(id_of(tidb, "words")) + b"\x01k150")
    return tidb


def id_of(tidb: Tidb, table: str) -> int:
    return tidb.schema.table(f"shop.{table}").info.id


def split(tidb: Tidb, number: int) -> None:
    tidb.split(record_key(id_of(tidb, "big"), number))


def merge_all(tidb: Tidb) -> None:
    """Merge every region into the first."""
    first = tidb.region_of(b"")
    for _ in range(len(tidb.keyspace) - 1):
        tidb.merge(first)


def fill(tidb: Tidb) -> None:
    for first in range(0, ROWS, 20):
        with tidb.transaction() as txn:
            for number in range(first, first + 20):
                txn.insert("shop.big", {"id": number, "n": number})
                txn.insert("shop.words", {"word": f"k{number:03}", "n": number})


def work(tidb: Tidb) -> None:
    """Change every tenth row three times."""
    for change in (1, 2):
        with tidb.transaction() as txn:
            for number in range(0, ROWS, 10):
                txn.update("shop.big", number, {"n": -change})
                txn.update("shop.words", f"k{number:03}", {"n": -change})
    with tidb.transaction() as txn:
        for number in range(0, ROWS, 10):
            txn.delete("shop.big", number)
            txn.delete("shop.words", f"k{number:03}")


def source(tidb: Tidb, kind: type[TidemillSource] = TidemillSource, **options: Any) -> TidemillSource:
    given = {"source": f"tikv://{tidb.pd_address}", "partitions": "3", **options}
    return kind({name: str(value) for name, value in given.items()})


class Stream:
    """A reader in the place of Spark's: what a driver and its tasks do."""

    def __init__(self, tidb: Tidb, kind: type[TidemillSource] = TidemillSource, **options: Any) -> None:
        made = source(tidb, kind, **options)
        reader = made.streamReader(made.schema())
        assert isinstance(reader, StreamReader)
        self.reader = reader
        self.at: dict[str, Any] = reader.initialOffset()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.stop()

    def next(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start and end of a batch."""
        start, self.at = self.at, self.reader.latestOffset(self.at, ReadAllAvailable())
        return start, self.at

    def plan(self, start: dict[str, Any], end: dict[str, Any]) -> list[TaskPartition]:
        return [part for part in self.reader.partitions(start, end) if isinstance(part, TaskPartition)]

    def rows(self, partition: TaskPartition) -> pa.Table:
        return pa.Table.from_batches(self.reader.read(partition), self.reader.output.schema)


def lines(table: pa.Table) -> list[Any]:
    decoder = Decoder()
    return history.lines(item for batch in table.to_batches() for item in decoder.decode(batch))


def key_of(row: Any) -> tuple[str, Any]:
    return row.table.name, (row.after or row.before)[0]


def check_shared(parts: Sequence[Iterable[Any]]) -> None:
    """Each key is in one part, its changes in their order."""
    seen: dict[Any, int] = {}
    for number, rows in enumerate(parts):
        last: dict[Any, int] = {}
        for row in rows:
            assert seen.setdefault(key_of(row), number) == number
            assert last.get(key_of(row), 0) < row.commit_ts
            last[key_of(row)] = row.commit_ts


def of_all(found: Iterable[Sequence[Any]]) -> list[str]:
    return sorted(repr(row) for rows in found for row in rows)


def wanted(tidb: Tidb, start: dict[str, Any], end: dict[str, Any], directory: Path) -> list[str]:
    """Return the lines of a local feed."""
    offsets = [ts_offset(offset["ts"], offset["source"]) for offset in (start, end)]
    items = history.local(f"tikv://{tidb.pd_address}", ["shop.*"], offsets[0], offsets[1], directory)
    return sorted(map(repr, history.lines(items)))


# --- streams


def test_a_large_table_is_shared_by_the_partitions(shop: Tidb, tmp_path: Path) -> None:
    with Stream(shop, tables="shop.*") as stream:
        fill(shop)
        work(shop)
        start, end = stream.next()
        found = [lines(stream.rows(part)) for part in stream.plan(start, end)]
    check_shared(found)
    assert of_all(found) == wanted(shop, start, end, tmp_path)
    assert len(found) == 3
    assert all(len(rows) > 2 * ROWS / 5 for rows in found)
    tables = [{row.table.name for row in rows} for rows in found]
    assert [tables.count({"big"}), sum("words" in names for names in tables)] == [1, 2]


def test_a_batch_that_is_planned_again_has_the_same_rows_in_each_partition(shop: Tidb) -> None:
    with Stream(shop, tables="shop.*") as stream:
        fill(shop)
        start, end = stream.next()
        before = stream.plan(start, end)
        rows = [stream.rows(part) for part in before]
        stream.next()
        assert stream.at[BOUNDS] == end[BOUNDS]  # nothing happened to the regions
    merge_all(shop)
    split(shop, 17)
    with Stream(shop, tables="shop.*") as again:
        after = again.plan(start, end)
        assert [part.part for part in after] == [part.part for part in before]
        for part, had in zip(after, rows, strict=True):
            assert again.rows(part).equals(had)
        again.at = end
        fresh_start, fresh_end = again.next()
        assert fresh_start[BOUNDS] == end[BOUNDS] != fresh_end[BOUNDS]


def test_a_batch_with_a_schema_change_keeps_its_tables_whole(shop: Tidb, tmp_path: Path) -> None:
    with Stream(shop, tables="shop.*") as stream:
        fill(shop)
        shop.execute("alter table shop.big add column more int default 7")
        work(shop)
        start, end = stream.next()
        assert BOUNDS not in end
        parts = stream.plan(start, end)
        assert [(part.part.number, part.part.of) for part in parts] == [(0, 3), (1, 3), (2, 3)]
        found = [lines(stream.rows(part)) for part in parts]
        assert of_all(found) == wanted(shop, start, end, tmp_path)
        with shop.transaction() as txn:
            txn.insert("shop.big", {"id": ROWS, "n": 0, "more": 1})
        start, end = stream.next()
        assert len(end[BOUNDS]) == 2
        found = [lines(stream.rows(part)) for part in stream.plan(start, end)]
        assert [row.after for rows in found for row in rows] == [(ROWS, 0, 1)]


def test_dropped_emptied_and_converted_tables_are_rows_that_writers_refuse(shop: Tidb) -> None:
    with Stream(shop, tables="shop.*") as stream:
        fill(shop)
        shop.execute("truncate table shop.big")
        shop.execute("alter table shop.words modify column n bigint")
        shop.execute("drop table shop.words")
        with shop.transaction() as txn:
            txn.insert("shop.big", {"id": 1, "n": 1})
        start, end = stream.next()
        decoder, found = Decoder(), []
        for part in stream.plan(start, end):
            for batch in stream.rows(part).to_batches():
                found += [item for item in decoder.decode(batch) if isinstance(item, Ddl)]
    actions = sorted(type(ddl.actions[0]).__name__ for ddl in found)
    assert actions == ["ChangeColumn", "DropTable", "TruncateTable"]
    for ddl in found:
        with pytest.raises(SinkError, match="Spark's tasks only create tables, add columns and drop columns"):
            list(Ordered("end").items([EnvelopeEncoder().encode([ddl])]))


def test_a_table_that_came_has_its_ranges(shop: Tidb) -> None:
    with Stream(shop, tables="shop.*") as stream:
        stream.next()
        shop.execute("create table shop.large (id bigint primary key)")
        prefix = record_prefix(id_of(shop, "large"))
        for number in range(20):
            shop.split(record_key(id_of(shop, "large"), number))
        assert BOUNDS not in stream.next()[1]
        _, end = stream.next()
    assert all(bytes.fromhex(key).startswith(prefix) for key in end[BOUNDS])
    assert len(end[BOUNDS]) == 2


@pytest.mark.parametrize(
    ("definition", "bounds"),
    [
        ("id bigint primary key, n int", 2),
        ("id bigint, n int", 2),
        ("id varchar(20) primary key, n int", 2),
        ("id bigint primary key, n int, unique key (n)", 0),
        ("id bigint primary key nonclustered, n int", 0),
        ("id bigint primary key, n int, key (n)", 2),
    ],
)
def test_a_table_is_cut_only_where_rows_are_told_apart_by_their_keys(
    tidb: Tidb, definition: str, bounds: int
) -> None:
    tidb.execute(f"create table shop.big ({definition})")
    for number in (100, 200):
        split(tidb, number)
    with Stream(tidb, tables="shop.*") as stream:
        _, end = stream.next()
    assert len(end[BOUNDS]) == bounds


def test_partitions_of_a_table_are_cut_as_tables_are(tidb: Tidb, tmp_path: Path) -> None:
    tidb.execute(
        "create table shop.big (id bigint primary key, n int) partition by range (id) "
        "(partition p0 values less than (150), partition p1 values less than maxvalue)"
    )
    tidb.execute("create table shop.words (word varchar(20) primary key, n int)")
    with Stream(tidb, tables="shop.*") as stream:
        fill(tidb)
        start, end = stream.next()
        found = [lines(stream.rows(part)) for part in stream.plan(start, end)]
    assert sorted(len(rows) for rows in found) == [150, 150, 300]
    check_shared(found)
    assert of_all(found) == wanted(tidb, start, end, tmp_path)


def test_small_tables_are_packed(tidb: Tidb) -> None:
    for number in range(12):
        tidb.execute(f"create table shop.t{number} (id bigint primary key)")
    with Stream(tidb, tables="shop.*") as stream:
        for number in range(12):
            with tidb.transaction() as txn:
                txn.insert(f"shop.t{number}", {"id": 1})
        start, end = stream.next()
        parts = stream.plan(start, end)
        assert [stream.rows(part).num_rows for part in parts] == [4, 4, 4]


def test_whoever_needs_whole_tables_has_them(shop: Tidb) -> None:
    none: dict[str, Any] = {}
    for options, kind in (
        ({"splitTables": "false"}, TidemillSource),
        ({"partitions": 1}, TidemillSource),
        ({"capture": UNREACHABLE}, TidemillSource),
        (none, RunSource),  # whose targets outlive Spark's checkpoint
    ):
        with Stream(shop, kind, tables="shop.*", **options) as stream:
            start, end = stream.next()
            assert BOUNDS not in end
            assert not any(part.part.is_range for part in stream.plan(start, end))


def test_a_capture_is_not_asked_for_a_range(shop: Tidb, caplog: pytest.LogCaptureFixture) -> None:
    """A batch may have been planned with bounds before captures were added."""
    with Stream(shop, tables="shop.*") as stream:
        fill(shop)
        start, end = stream.next()
    with Stream(shop, tables="shop.*", capture=UNREACHABLE) as stream:
        found = [stream.rows(part).num_rows for part in stream.plan(start, end)]
        assert sum(found) == 2 * ROWS
        assert "read from the source" not in caplog.text
    part = Part(start=b"t")
    with pytest.raises(ConfigError, match="whole tables"):
        Ticket(ts_offset(1, "s"), ts_offset(2, "s"), ("shop.*",), part).check()


def test_bounds_that_are_no_keys_are_refused(shop: Tidb) -> None:
    with Stream(shop, tables="shop.*") as stream:
        start, end = stream.next()
        for bounds in (["xyz"], 7, [1]):
            with pytest.raises(CheckpointError, match="aren't keys in hex"):
                stream.plan(start, {**end, BOUNDS: bounds})


class PartsJob(Job):
    """Collects rows with the number of their partition."""

    def _keep(self, frame: DataFrame, number: int) -> None:
        columns = ["commit_ts", "table", "before", "after", spark_partition_id().alias("part")]
        self.batches[number] = sorted(map(tuple, frame.select(*columns).collect()), key=repr)


@pytest.mark.soak
def test_a_query_whose_driver_dies_in_a_batch_repeats_it_partition_by_partition(
    spark: SparkSession, shop: Tidb, tmp_path: Path
) -> None:
    options = {"tables": "shop.*", "partitions": 3, "startingTs": shop.tso()}
    job = PartsJob(spark, tmp_path, f"tikv://{shop.pd_address}", **options)
    fill(shop)
    job.run()
    split(shop, 250)
    work(shop)
    job.run()
    number = max(job.batches)
    before = job.batches.pop(number)
    assert len(before) == 2 * 3 * ROWS / 10
    assert {row[-1] for row in before} == {0, 1, 2}
    commits = tmp_path / "checkpoint" / "commits"
    for file in (commits / str(number), commits / f".{number}.crc"):
        file.unlink()  # as if the driver hadn't lived to write it
    merge_all(shop)
    split(shop, 20)
    job.run()
    assert job.batches[number] == before
    rows = [row for batch in job.batches.values() for row in batch]
    assert len(rows) == len(set(rows)) == 2 * ROWS + 2 * 3 * ROWS / 10


def test_a_sink_has_every_row_of_a_table_that_its_tasks_share(
    spark: SparkSession, shop: Tidb, tmp_path: Path
) -> None:
    url, sink = f"tikv://{shop.pd_address}", f"sqlite:///{tmp_path}/spark.db"
    fill(shop)
    at = shop.tso()
    write(read(spark, url, tables="shop.*", ts=at, partitions=3), sink)
    work(shop)
    options = {"tables": "shop.*", "startingTs": at, "partitions": 3}
    follow(spark, url, sink, tmp_path / "query", **options)
    split(shop, 50)
    shop.execute("alter table shop.big add column more int default 7")
    with shop.transaction() as txn:
        for number in range(ROWS, ROWS + 50):
            txn.insert("shop.big", {"id": number, "n": 1, "more": number})
    follow(spark, url, sink, tmp_path / "query", **options)
    copy_locally(url, "shop.*", f"sqlite:///{tmp_path}/local.db", tmp_path)
    for table, rows in (("big", 270 + 50), ("words", 270)):
        found = copied(tmp_path / "spark.db", table)
        assert found == copied(tmp_path / "local.db", table)
        assert len(found) == rows


def copied(path: Path, table: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return sorted(connection.execute(f'SELECT * FROM "shop.{table}"'))


# --- batches


def batch(tidb: Tidb, **options: Any) -> BatchReader:
    made = source(tidb, **options)
    reader = made.reader(made.schema())
    assert isinstance(reader, BatchReader)
    return reader


def sizes(reader: BatchReader) -> list[int]:
    return [sum(found.num_rows for found in reader.read(part)) for part in reader.partitions()]


def test_a_snapshot_of_a_large_table_is_shared(shop: Tidb) -> None:
    fill(shop)
    assert sizes(batch(shop, table="shop.big")) == [100, 100, 100]
    assert sum(sizes(batch(shop, table="shop.words"))) == ROWS
    assert len(sizes(batch(shop, table="shop.words"))) == 2
    reader = batch(shop, tables="shop.*", operations="insert")
    found = [
        [row for some in reader.read(part) for row in lines(pa.table(some))] for part in reader.partitions()
    ]
    check_shared(found)
    assert sum(map(len, found)) == 2 * ROWS
    assert all(found)


def test_a_snapshot_with_the_definitions_of_tables_keeps_them_whole(shop: Tidb) -> None:
    """A sink makes a table before it fills it."""
    fill(shop)
    reader = batch(shop, tables="shop.*")
    parts = reader.partitions()
    assert [part.part.of for part in parts if isinstance(part, TaskPartition)] == [3, 3, 3]
    assert sum(sizes(reader)) == 2 * (1 + ROWS)


def test_changes_between_two_timestamps_are_shared(shop: Tidb) -> None:
    before = shop.tso()
    fill(shop)
    assert sizes(batch(shop, table="shop.big", fromTs=before)) == [100, 100, 100]
    reader = batch(shop, tables="shop.*", fromTs=before)
    assert sum(sizes(reader)) == 2 * ROWS
    assert min(sizes(reader)) > 0
    shop.execute("create table shop.later (id bigint primary key)")
    assert sum(sizes(batch(shop, tables="shop.*", fromTs=before))) == 2 * ROWS + 1


# --- how ranges are found


@pytest.mark.parametrize("seed", range(50))
def test_ranges_are_even(seed: int) -> None:
    chance = random.Random(seed)
    weights = [chance.randint(1, chance.choice([1, 3, 20])) for _ in range(chance.randint(1, 40))]
    count = chance.randint(1, 12)
    bounds = even([RangePiece(b"%03d" % at, weight) for at, weight in enumerate(weights)], count)
    assert len(bounds) < count
    edges = [0, *map(int, bounds), len(weights)]
    sums = [sum(weights[first:last]) for first, last in pairwise(edges)]
    assert min(sums) > 0
    assert max(sums) < sum(weights) / count + max(weights)


def test_no_pieces_are_one_range() -> None:
    assert even([], 3) == []


def test_parts_of_ranges_meet() -> None:
    parts = WHOLE.divided(5, [b"b", b"c"])
    assert [(part.start, part.end) for part in parts] == [(b"", b"b"), (b"b", b"c"), (b"c", b"")]
    assert [part.has_ddl for part in parts] == [True, False, False]
    assert WHOLE.divided(5, []) == [WHOLE]


@pytest.mark.parametrize("seed", range(5))
def test_bounds_of_regions_are_found_wherever_spans_begin_and_end(tidb: Tidb, seed: int) -> None:
    chance = random.Random(seed)
    tables = sorted(chance.sample(range(1000, 1030), 8))
    keys = sorted({record_key(chance.randint(1000, 1030), chance.randint(0, 3)) for _ in range(20)})
    for key in keys:
        tidb.split(key)
    client = TikvClient(TikvOptions(pd=endpoints(tidb.pd_address)), SystemClock(), random.Random(seed))
    client.start()
    try:
        found = client.run(region_bounds(client.cache, [table_span(table) for table in tables]))
    finally:
        client.stop()
    assert found == [[key for key in keys if key.startswith(record_prefix(table))] for table in tables]
    assert any(found)
