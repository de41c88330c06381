"""A table of TiKV, read by several tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, LessThan

from tidemill.codec.tidb.key import record_key
from tidemill.emulator.sql.sql import Tidb
from tidemill.errors import ConfigError, Retryable, SourceError
from tidemill.puller.tikv.client import TikvClient, connected, held
from tidemill.puller.tikv.options import TikvOptions
from tidemill.spark.snapshot import tikv_task
from tidemill.testing.progress import eventually

from ..tikv_life import KEYS, TABLES, TikvLife
from .tikv_snapshot import Snapshot, ordered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID, BIG, CODE = ("after", "id"), ("after", "big"), ("after", "code")
SPLITS = (20, 40, 60, 80)
COLUMNS = "id bigint primary key, note varchar(100), price decimal(6,2)"


def made(
    tidb: Tidb, rows: int = 100, splits: Sequence[int] = (20, 40, 60, 80), columns: str = COLUMNS
) -> str:
    """Make a table in some regions; return the URL."""
    tidb.execute(f"create table shop.item ({columns})")
    table_id = tidb.schema.table("shop.item").info.id
    for at in splits:
        tidb.split(record_key(table_id, at))
    with tidb.transaction() as txn:
        for number in range(rows):
            txn.insert("shop.item", (number, f"note {number}", Decimal(number) / 4))
    return f"tikv://{tidb.pd_address}"


def numbers(found: Snapshot) -> list[int]:
    return sorted(line["after"]["id"] for line in found.lines())


@pytest.mark.parametrize(("partitions", "regions"), [(1, [1]), (2, [2, 3]), (3, [1, 2, 2]), (9, [1] * 5)])
def test_tasks_share_the_regions(tidb: Tidb, partitions: int, regions: list[int]) -> None:
    found = Snapshot(made(tidb), "shop.item", partitions=partitions)
    assert [len(part.ranges) for part in found.parts] == regions
    assert found.rows() == ordered(tidb.rows("shop.item")) == found.by_feed()


def test_a_table_that_is_not_to_be_split_is_read_by_one_task(tidb: Tidb) -> None:
    found = Snapshot(made(tidb), "shop.item", partitions=3, splitTables="false")
    assert len(found.parts) == 1
    assert numbers(found) == [*range(100)]


def test_each_row_has_the_snapshots_ts_and_a_number_of_its_own(tidb: Tidb) -> None:
    url = made(tidb)
    ts = tidb.tso()
    lines = Snapshot(url, "shop.item", partitions=2, ts=ts).lines()
    assert {(line["commit_ts"], line["start_ts"], line["op"], line["before"]) for line in lines} == {
        (ts, ts, "insert", None)
    }
    assert len({line["sequence"] for line in lines}) == 100


def test_all_tasks_read_as_of_one_ts(tidb: Tidb) -> None:
    found = Snapshot(made(tidb), "shop.item", partitions=2)
    wanted = ordered(tidb.rows("shop.item"))
    with tidb.transaction() as txn:
        txn.update("shop.item", 5, {"note": "later"})
        txn.delete("shop.item", 70)
        txn.insert("shop.item", (500, "new", Decimal(1)))
    assert ordered(tidb.rows("shop.item")) != wanted
    assert found.rows() == wanted
    assert found.rows() == wanted  # tasks that are repeated


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=pytest.mark.soak) for n in range(3, 40))]
)
def test_a_seeded_history_is_read_as_by_a_feed_while_regions_and_stores_change(seed: int) -> None:
    with TikvLife(seed) as life:
        life.live(lambda _: None)
        random = life.random
        ts = random.choice((life.end.ts, random.randrange(life.start.ts, life.end.ts)))
        for name in TABLES:
            options = {"ts": ts, "partitions": 3, "invalidDates": "null"}
            low, high = sorted(random.sample(range(KEYS), 2))
            some = [GreaterThanOrEqual(ID, low), LessThan(ID, high)]
            found = Snapshot(life.url, f"shop.{name}", **options)
            part = Snapshot(life.url, f"shop.{name}", filters=some, **options)
            with life.turmoil():
                rows, narrowed = found.rows(), part.rows()
            assert rows == found.by_feed(), name
            assert [row for row in narrowed if low <= row[0] < high] == [
                row for row in rows if low <= row[0] < high
            ]
            if name in ("plain", "part"):
                assert all(low <= row[0] < high for row in narrowed)


def test_a_store_is_waited_for_up_to_the_timeout(tidb: Tidb) -> None:
    url = made(tidb)
    region = tidb.region_of(record_key(tidb.schema.table("shop.item").info.id, 50))
    found = Snapshot(url, "shop.item", **{"source.store_retry_seconds": 0.01})
    tidb.fail_next(region, "server_is_busy", times=8)
    assert numbers(found) == [*range(100)]
    impatient = Snapshot(url, "shop.item", sourceTimeout=0.5)
    tidb.fail_next(region, "server_is_busy", times=10_000)
    with pytest.raises(Retryable, match=r"KvScan: .*server_is_busy"):
        impatient.rows()


def test_regions_that_split_merge_and_move_while_a_task_reads_are_followed(
    tidb: Tidb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tikv_task, "_BATCH_ROWS", 5)
    url = made(tidb)
    table_id = tidb.schema.table("shop.item").info.id

    def key(number: int) -> bytes:
        return record_key(table_id, number)

    moves = {
        1: lambda: tidb.split(key(30)),
        2: lambda: tidb.transfer_leader(tidb.region_of(key(45))),
        3: lambda: tidb.merge(tidb.region_of(key(65))),
        4: lambda: tidb.split(key(95)),
    }
    found = Snapshot(url, "shop.item")
    rows: list[int] = []
    for count, batch in enumerate(found.reader.read(found.parts[0])):
        rows += [row["after"]["id"] for row in batch.to_pylist()]
        moves.pop(count, lambda: None)()
    assert rows == [*range(100)]
    assert moves == {}


def test_locks_in_the_way_are_resolved(tidb: Tidb) -> None:
    url = made(tidb)
    table_id = tidb.schema.table("shop.item").info.id
    keys = [record_key(table_id, number) for number in (3, 39, 40, 99)]
    _, value = tidb.schema.table("shop.item").encoder.encode((3, "committed", Decimal(0)))
    abandoned = tidb.tso()
    tidb.prewrite(abandoned, [("put", keys[0], value), ("put", keys[1], value)], primary=keys[0], ttl_ms=1)
    tidb.commit(abandoned, keys[:1])  # its second key stays locked
    dead = tidb.tso()
    tidb.prewrite(dead, [("put", keys[2], b"never")], primary=keys[2], ttl_ms=0)
    alive = tidb.tso()
    later = [("put", keys[3], b"later")]
    tidb.prewrite(alive, later, primary=keys[3], ttl_ms=3_600_000, min_commit_ts=alive + 1)
    found = Snapshot(url, "shop.item", partitions=2)
    notes = {line["after"]["id"]: line["after"]["note"] for line in found.lines()}
    assert len(notes) == 100
    assert [notes[number] for number in (3, 39, 40, 99)] == ["committed", "committed", "note 40", "note 99"]


# --- conditions and columns


def test_one_key_is_read_alone(tidb: Tidb) -> None:
    url = made(tidb)
    table_id = tidb.schema.table("shop.item").info.id
    found = Snapshot(url, "shop.item", partitions=3, filters=[EqualTo(ID, 5)])
    key = record_key(table_id, 5)
    assert [part.ranges for part in found.parts] == [((key, key + b"\xff"),)]
    assert numbers(found) == [5]
    assert Snapshot(url, "shop.item", filters=[EqualTo(ID, 5), LessThan(ID, 5)]).parts == []


def test_conditions_on_the_key_narrow_the_ranges(tidb: Tidb) -> None:
    url = made(tidb)
    found = Snapshot(url, "shop.item", partitions=9, filters=[GreaterThanOrEqual(ID, 35), LessThan(ID, 61)])
    assert len(found.parts) == 3
    assert numbers(found) == [*range(35, 61)]
    found = Snapshot(url, "shop.item", partitions=9, filters=[In(ID, (0, 3, 99, 1 << 62))])
    assert len(found.parts) == 2
    assert numbers(found) == [0, 1, 2, 3, 99]  # those between are read, too, and dropped by Spark
    assert numbers(Snapshot(url, "shop.item", filters=[EqualTo(("after", "note"), "note 1")])) == [
        *range(100)
    ]


def test_the_keys_of_partitions_are_narrowed_in_each(tidb: Tidb) -> None:
    columns = f"{COLUMNS}) partition by range (id) (partition p0 values less than (50), partition p1 values"
    url = made(tidb, splits=(), columns=f"{columns} less than (1000)")
    found = Snapshot(url, "shop.item", partitions=2)
    assert found.rows() == ordered(tidb.rows("shop.item")) == found.by_feed()
    found = Snapshot(url, "shop.item", filters=[GreaterThanOrEqual(ID, 48), LessThan(ID, 52)])
    assert numbers(found) == [48, 49, 50, 51]
    assert len(found.parts[0].ranges) == 2


def test_unsigned_keys_and_clustered_keys_of_several_columns_are_narrowed(tidb: Tidb) -> None:
    tidb.execute("create table shop.wide (big bigint unsigned primary key)")
    tidb.execute(
        "create table shop.pair (code varchar(9), id int, note varchar(9), primary key (code, id) clustered)"
    )
    bigs = [0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
    with tidb.transaction() as txn:
        for big in bigs:
            txn.insert("shop.wide", (big,))
        for code in ("a", "b", "ü"):
            for number in (-1, 0, 1):
                txn.insert("shop.pair", (code, number, "x"))
    url = f"tikv://{tidb.pd_address}"

    def wide(*filters: Any) -> list[int]:
        found = Snapshot(url, "shop.wide", filters=filters)
        return sorted(int(line["after"]["big"]) for line in found.lines())

    assert wide() == bigs
    assert wide(GreaterThanOrEqual(BIG, Decimal((1 << 63) - 1))) == bigs[2:]
    assert wide(LessThan(BIG, Decimal(1 << 63))) == bigs[:3]
    assert wide(In(BIG, (Decimal(1), Decimal((1 << 64) - 1)))) == [1, bigs[4]]

    def pairs(*filters: Any) -> list[tuple[str, int]]:
        return [row[:2] for row in Snapshot(url, "shop.pair", filters=filters).rows()]

    assert len(pairs()) == 9
    assert pairs(EqualTo(CODE, "ü")) == [("ü", -1), ("ü", 0), ("ü", 1)]
    assert pairs(In(CODE, ("a", "ü", "no")), EqualTo(ID, 1)) == [("a", 1), ("ü", 1)]
    assert pairs(EqualTo(CODE, "b"), LessThan(ID, 1)) == [("b", -1), ("b", 0)]
    assert len(pairs(EqualTo(ID, 1))) == 9


def test_only_the_columns_of_the_schema_are_decoded(tidb: Tidb) -> None:
    tidb.execute("create table shop.item (id bigint primary key, day date, note text)")
    with tidb.transaction() as txn:
        txn.insert("shop.item", (1, "0000-00-00", "a"))
        txn.insert("shop.item", (2, "2026-01-01", "b"))
    url = f"tikv://{tidb.pd_address}"
    with pytest.raises(SourceError, match=r"column day of .* holds '0000-00-00'"):
        Snapshot(url, "shop.item").rows()
    assert Snapshot(url, "shop.item", columns=["note"]).rows() == [("a",), ("b",)]
    found = Snapshot(url, "shop.item", columns=["day"], invalidDates="null")
    assert found.rows() == [(None,), (date(2026, 1, 1),)] == found.by_feed()
    assert len(Snapshot(url, "shop.item", columns=["none"]).lines()) == 2


# --- the schema at the snapshot's ts


def test_the_table_is_as_of_the_snapshot(tidb: Tidb) -> None:
    url = made(tidb, 3, ())
    then = tidb.tso()
    planned = Snapshot(url, "shop.item")
    tidb.execute("alter table shop.item add column more int default 7")
    tidb.execute("alter table shop.item drop column price")
    assert [row[1] for row in planned.rows()] == ["note 0", "note 1", "note 2"]
    assert [row[2] for row in planned.rows()] == [0, Decimal("0.25"), Decimal("0.5")]
    found = Snapshot(url, "shop.item", ts=then)
    assert found.rows() == [(0, "note 0", None), (1, "note 1", None), (2, "note 2", None)] == found.by_feed()
    assert Snapshot(url, "shop.item").rows()[1] == (1, "note 1", 7)


def test_a_table_that_is_dropped_after_the_plan_is_read(tidb: Tidb) -> None:
    found = Snapshot(made(tidb), "shop.item", partitions=2)
    tidb.execute("drop table shop.item")
    assert numbers(found) == [*range(100)]


def test_a_table_that_was_not_there_yet_has_no_rows(tidb: Tidb) -> None:
    before = tidb.tso()
    assert Snapshot(made(tidb), "shop.item", ts=before).parts == []


def test_a_view_has_no_rows_and_an_unknown_table_is_an_error(tidb: Tidb) -> None:
    with pytest.raises(ConfigError, match=r"no table matches 'shop\.item'"):
        Snapshot(f"tikv://{tidb.pd_address}", "shop.item")
    with pytest.raises(ConfigError, match=r"ts \d+ is yet to come"):
        Snapshot(made(tidb), "shop.item", ts=1 << 62)


def test_a_column_that_was_of_another_type_is_an_error(tidb: Tidb) -> None:
    url = made(tidb, 3, ())
    then = tidb.tso()
    tidb.execute("alter table shop.item modify column note text")
    tidb.execute("alter table shop.item drop column price")
    tidb.execute("alter table shop.item add column price bigint")
    with pytest.raises(SourceError, match=r"column price of shop\.item was decimal and is bigint now"):
        Snapshot(url, "shop.item", ts=then).rows()


# --- old versions


def test_the_cluster_keeps_the_versions_of_the_snapshot(tidb: Tidb) -> None:
    found = Snapshot(made(tidb), "shop.item")
    (hold,) = [
        hold for name, hold in tidb.pd.safe_points.holds.items() if name.startswith(b"tidemill-spark-")
    ]
    assert hold.safe_point == found.parts[0].at.ts - 1
    assert numbers(found) == [*range(100)]
    tidb.pd.safe_points.gc = tidb.tso()
    with pytest.raises(SourceError, match="is below the GC safe point"):
        found.rows()


def test_versions_that_are_lost_while_they_are_read_are_an_error(tidb: Tidb) -> None:
    options = TikvOptions(pd=(tidb.pd_address,), gc_interval_seconds=0.01)

    def holds(client: TikvClient) -> bool:
        return any("SafePoint.run" in str(task.get_coro()) for task in asyncio.all_tasks(client.loop.loop))

    def lose(client: TikvClient) -> None:
        with held(client, "reader", tidb.tso()):
            eventually(lambda: holds(client))
            tidb.pd.safe_points.gc = tidb.tso()
            eventually(lambda: not holds(client))

    with connected(options) as client, pytest.raises(SourceError, match="in between may be gone"):
        lose(client)


# --- Spark


def test_spark_pushes_conditions_and_stops_early(spark: SparkSession, tidb: Tidb) -> None:
    reader = spark.read.format("tidemill").options(source=made(tidb), table="shop.item", partitions="2")
    reader = reader.option("filterPushdown", "true")
    assert reader.load().rdd.getNumPartitions() == 2
    assert reader.load().where("after.id = 7 and op = 'insert'").rdd.getNumPartitions() == 1
    rows = reader.load().where("after.id in (7, 9) and after.note != 'note 9'").select("after.*").collect()
    assert [tuple(row) for row in rows] == [(7, "note 7", Decimal("1.75"))]
    assert len(reader.load().limit(3).collect()) == 3
    assert reader.load().where("after.id < 0").count() == 0
    threads = spark.range(4, numPartitions=2).mapInArrow(_threads, "name string").collect()
    assert {row.name for row in threads} == {"MainThread"}


def _threads(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"name": [thread.name for thread in threading.enumerate()]})


def test_closing_a_read_ends_its_scan(tidb: Tidb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tikv_task, "_BATCH_ROWS", 5)
    found = Snapshot(made(tidb), "shop.item")
    before = threading.active_count()
    reading = found.reader.read(found.parts[0])
    next(reading)
    assert threading.active_count() > before
    reading.close()
    eventually(lambda: threading.active_count() <= before)
