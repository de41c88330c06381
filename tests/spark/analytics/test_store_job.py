from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random

import pytest

from tidemill.codec.blocks import block_of
from tidemill.codec.tidb.key import record_key
from tidemill.errors import ConfigError, StoreError
from tidemill.events import DELETE, PUT, KvChange, compose_ts
from tidemill.sorter.db.layout import LAYOUTS, read_block
from tidemill.sorter.keyspace import SortKeyspace
from tidemill.sorter.run import SortRun
from tidemill.spark.analytics import store_job
from tidemill.spark.analytics.facts import BusyKeys
from tidemill.spark.analytics.report import StoreReport
from tidemill.spark.analytics.store_job import analyze_store
from tidemill.store.batch import PairBatch
from tidemill.store.plan import Kept, apply_plan, decode_plan, encode_plan
from tidemill.store.store import Store

MINUTE = 60_000
NOON = 1_700_000_040_000  # a full minute


def table(number: int, uid: int = 1) -> SortKeyspace:
    return SortKeyspace(number, uid, 0)


class Disk:
    """Stores as a sorter leaves them when its process dies, with what was put there."""

    def __init__(self, directory, layout: str = "block"):
        self.directory = directory
        self.layout = LAYOUTS[layout]
        self.stores = [
            Store(directory / f"store-{number}", window_bytes=26_000, buffer_bytes=200_000)
            for number in (1, 2)
        ]
        self.changes: list[tuple[int, KvChange]] = []
        self.keys: Counter[tuple[int, bytes]] = Counter()

    def put(self, store: int, tables: list[int], minute: int, count: int, rng: Random) -> None:
        """One run of changes in a minute, of one table or of several."""
        owned = []
        for number in range(count):
            owner = rng.randrange(len(tables))
            handle = rng.choice([1, *range(10, 1000)])
            key = record_key(tables[owner], handle if number % 5 else 1)
            ts = compose_ts(NOON + minute * MINUTE + rng.randrange(MINUTE))
            op = DELETE if rng.random() < 0.2 else PUT
            owned.append((KvChange(ts, ts - 1, op, key, rng.randbytes(50)), owner))
        owned = [*{(c.commit_ts, c.op, c.key): (c, owner) for c, owner in owned}.values()]
        self.changes += [(tables[owner], change) for change, owner in owned]
        self.keys.update((tables[owner], change.key) for change, owner in owned)
        block = block_of(change for change, _ in owned)
        batch = PairBatch()
        self.layout.put(batch, SortRun([table(one) for one in tables], block), block)
        self.stores[store].write(batch)

    def flush(self) -> None:
        for store in self.stores:
            for window in store._windows:
                window.family.flush(True)

    def close(self) -> None:
        for store in self.stores:
            store.close()


def filled(directory, layout: str = "block") -> Disk:
    disk = Disk(directory, layout)
    rng = Random(3)
    for minute in range(6):
        disk.put(0, [7], minute, 100, rng)
        disk.put(0, [7], minute, 30, rng)
        disk.put(1, [8], minute, 100 - 10 * minute, rng)
        if layout == "block":
            disk.put(1, [8, 9], minute, 40, rng)
    disk.flush()
    return disk


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """For tests that leave it as it is."""
    disk = filled(tmp_path_factory.mktemp("disk"))
    yield disk
    disk.close()


@pytest.fixture
def own_disk(tmp_path):
    disk = filled(tmp_path)
    yield disk
    disk.close()


@pytest.fixture(scope="module")
def report(spark, disk):
    return analyze_store(spark, disk.directory, ACKNOWLEDGED, {7: "shop.orders"})


ACKNOWLEDGED = compose_ts(NOON + 4 * MINUTE) - 1


def check(disk: Disk, report: StoreReport) -> None:
    dead = [pair for pair in disk.changes if pair[1].commit_ts <= ACKNOWLEDGED]
    tables = {one.table: one for one in report.tables}
    assert set(tables) == {number for number, _ in disk.changes}
    for number, found in tables.items():
        own = [change for other, change in disk.changes if other == number]
        assert (found.changes, found.deletes) == (len(own), sum(change.op == DELETE for change in own))
        share = sum(other == number for other, _ in dead) / len(own)
        assert abs(found.dead_bytes / found.bytes - share) < 0.01
        assert found.name == ("shop.orders" if number == 7 else f"table {number}")
    assert sum(one.bytes for one in report.tables) == pytest.approx(sum(s.bytes for s in disk.stores), abs=50)
    assert {(one.table, one.minute - NOON // MINUTE) for one in report.cells} == {
        (number, minute) for number in tables for minute in range(6)
    }
    assert [one.store for one in report.stores] == ["store-1", "store-2"]
    assert [one.bytes for one in report.stores] == pytest.approx([s.bytes for s in disk.stores], abs=50)
    assert 1.0 < report.skew < 2.0
    assert all(0.7 < one.write_amplification < 1.3 for one in report.stores)
    assert sum(one.files for one in report.windows) == sum(one.files for one in report.levels) > 4


def test_a_store_in_use_is_analyzed(disk, report):
    check(disk, report)


def test_the_layout_with_an_entry_for_each_change_is_analyzed_too(spark, tmp_path):
    disk = filled(tmp_path, "event")
    report = analyze_store(spark, disk.directory, ACKNOWLEDGED, {7: "shop.orders"})
    check(disk, report)
    assert [one.overlap for one in report.tables] == [130, 100]
    disk.close()


def test_blocks_of_several_tables_are_read_more_than_is_wanted_of_them(report):
    tables = {one.table: one for one in report.tables}
    assert tables[7].read_amplification == 1.0
    assert tables[7].overlap == tables[8].overlap == 2
    assert tables[9].read_amplification > 1.5 > tables[8].read_amplification > 1.0


def test_the_keys_that_come_most_often_are_told(disk, report):
    busiest = {(number, key.hex()): count for (number, key), count in disk.keys.most_common(3)}
    assert {(one.table, one.key): one.changes for one in report.hot_keys[:3]} == busiest


def test_counting_keys_in_little_memory_keeps_the_busy_ones():
    keys = BusyKeys(most=50)
    rng = Random(5)
    for _ in range(100):
        changes = [KvChange(1, 1, PUT, record_key(1, rng.randrange(10_000)), b"") for _ in range(20)]
        keys.add(b"\0\0\0\1" + (1).to_bytes(8), [*changes, *[KvChange(1, 1, PUT, record_key(1, 5), b"")] * 5])
    first = next(keys.rows())
    assert first["key"] == record_key(1, 5)
    assert 500 - 2500 // 50 <= first["changes"] <= 500 + 1


# --- the plan


def needed(disk: Disk, store: Store, window):
    """Yield the changes above the acknowledged ts, as the index of a sorter would."""
    for key, value in store.iterate(window, b"", b"\xff" * 40):
        newest = max(change.commit_ts for change in read_block(value))
        if newest > ACKNOWLEDGED:
            yield Kept(key, key, len(key) + len(value), newest, lambda _: None)


def test_carrying_out_the_plan_frees_what_it_said_and_keeps_what_is_needed(spark, report, own_disk):
    disk = own_disk  # the same as that of the report
    assert report.plan.steps
    gains = [step.dead_bytes / max(1, step.live_bytes) for step in report.plan.steps]
    assert gains == sorted(gains, reverse=True)
    plan = decode_plan(encode_plan(report.plan), "plan.json")
    assert plan == report.plan
    before = sum(store.bytes for store in disk.stores)
    outcomes = [one for store in disk.stores for one in apply_plan(plan, store, partial(needed, disk, store))]
    freed = sum(one.bytes_before - one.bytes_after for one in outcomes)
    assert freed == pytest.approx(sum(step.dead_bytes for step in plan.steps), abs=50)
    assert sum(store.bytes for store in disk.stores) == before - freed
    disk.flush()
    after = analyze_store(spark, disk.directory, ACKNOWLEDGED)
    live = Counter(number for number, change in disk.changes if change.commit_ts > ACKNOWLEDGED)
    assert live == {
        one.table: sum(cell.changes for cell in after.cells if cell.table == one.table
                       and cell.minute >= NOON // MINUTE + 4)
        for one in after.tables
    }  # fmt: skip
    expected = {one.table: one.bytes_after for one in report.tables if one.bytes_after}
    assert {one.table: one.bytes for one in after.tables} == pytest.approx(expected, abs=50)
    assert after.read_amplification == pytest.approx(report.read_amplification_after, rel=0.01)
    assert sum(one.free_bytes for one in after.windows) < sum(one.free_bytes for one in report.windows) / 5


def test_an_old_plan_wastes_nothing(report, own_disk):
    [first, second] = [
        [
            one
            for store in own_disk.stores
            for one in apply_plan(report.plan, store, partial(needed, own_disk, store))
        ]
        for _ in range(2)
    ]
    assert {one.left for one in first} == {""}
    assert {one.left for one in second} == {"it is gone, or still written to"}


def test_a_window_in_which_everything_is_needed_is_left(report, own_disk):
    def everything(window):
        return [Kept(b"", b"\xff", window.bytes, 1, lambda _: None)]

    before = own_disk.stores[0].bytes
    assert {one.left for one in apply_plan(report.plan, own_disk.stores[0], everything)} == {
        "nothing in it is dead"
    }
    assert own_disk.stores[0].bytes == before


# --- what isn't right


def test_a_directory_without_a_store_is_said(spark, tmp_path):
    with pytest.raises(StoreError, match="has no store in it: a feed that never needed its disk makes none"):
        analyze_store(spark, tmp_path, 0)


def test_a_damaged_block_is_an_error(spark, tmp_path):
    disk = Disk(tmp_path)
    batch = PairBatch()
    block = block_of([KvChange(5, 4, PUT, b"k", b"value")]).to_bytes()
    batch.put(b"\0\0\0\1" + bytes(32), block[:-1] + b"?", 1)
    disk.stores[0].write(batch)
    disk.flush()
    with pytest.raises(StoreError, match="the checksum does not match"):
        analyze_store(spark, tmp_path, 0)
    disk.close()


def test_a_window_that_is_dropped_meanwhile_is_left_out(spark, own_disk):
    disk = own_disk
    facts = store_job.store_facts(spark, disk.directory, 0)
    window = disk.stores[0].ended()[0]
    disk.stores[0].drop(window)
    assert window.name not in {row.window for row in facts.filter("store = 'store-1'").collect()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "x.json is no compaction plan: "),
        ('{"version": 2, "acknowledged": 1, "steps": []}', "version 2; accepted: 1"),
        (
            '{"version": 1, "acknowledged": 1, "steps": [{"store": 1}]}',
            r"Expected `str`, got `int` - at `\$.steps",
        ),
        ('{"version": 1, "acknowledged": 1, "steps": [], "more": 1}', "unknown field `more`"),
    ],
)
def test_what_is_no_plan_is_said(text, message):
    with pytest.raises(ConfigError, match=message):
        decode_plan(text, "x.json")
