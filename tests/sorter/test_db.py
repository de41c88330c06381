"""The db engine: what is in memory, what is on disk, and what happens when the disk fails."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tidemill.actors import ActorSystem
from tidemill.config import checked
from tidemill.errors import ConfigError, StoreError
from tidemill.events import DELETE, PUT, KvChange
from tidemill.sorter import SorterOptions
from tidemill.sorter.db.key import event_key, fnv1, store_of
from tidemill.sorter.keyspace import SortKeyspace
from tidemill.testing.disk import usage

from .rig import Rig, put

THROUGH_THE_DISK: dict[str, Any] = {"memory_bytes": 0, "stores": 1}
LAYOUTS = pytest.mark.parametrize("layout", ["block", "event"])


def flush(rig: Rig) -> None:
    """Have RocksDB write its buffers to files."""
    for store in rig.sorter._stores:
        store.end_window()
        for window in store.ended():
            window.family.flush()


# --- the memory tier ---------------------------------------------------------------------------------


def test_what_fits_in_memory_never_touches_the_disk(make_rig, tmp_path):
    rig = make_rig(memory_bytes=1 << 20)
    rig.add(1, 2)
    for n in range(1, 300):
        rig.tell(1 + n % 2, [put(n * 10 + i, "k", bytes(200)) for i in range(9)], resolved=n * 10 + 9)
        rig.run()
    rig.check()
    assert [path.name for path in rig.directory.iterdir()] == ["tidemill.lock"]
    assert rig.sorter.statistics().spilled_bytes == 0


def test_beyond_the_quota_the_newest_changes_go_to_disk(make_rig):
    rig = make_rig(memory_bytes=100_000)
    rig.add(1, 2)
    for n in range(1, 200):
        rig.tell(1, [put(n * 10 + i, "k", bytes(200)) for i in range(9)])
        rig.run()
        assert rig.sorter.statistics().memory_bytes <= 100_000
    assert rig.sorter.statistics().spilled_bytes > 300_000
    on_disk = rig.sorter._tier.stored_bytes
    for table in (1, 2):
        rig.tell(table, resolved=100)
    rig.run()
    rig.check()
    assert rig.changes
    assert rig.sorter._tier.stored_bytes == on_disk
    for table in (1, 2):
        rig.tell(table, resolved=5000)
    rig.run()
    rig.check()
    assert rig.sorter.statistics().memory_bytes == 0


def test_small_runs_of_a_table_are_one_block_on_disk(make_rig):
    rig = make_rig(memory_bytes=100_000, stores=1)
    rig.add(1)
    for n in range(600, 0, -1):
        rig.tell(1, [put(n, "k", bytes(200))])
        rig.run()
    (store,) = rig.sorter._stores
    blocks = [
        run for window in store.ended() or [store._current] for run, _ in rig.sorter._tier.runs_in(window)
    ]
    assert sum(run.count for run in blocks) / len(blocks) > 50
    rig.tell(1, resolved=1000)
    rig.run()
    rig.check()


@LAYOUTS
def test_tables_that_share_a_store_do_not_see_each_other(make_rig, layout):
    rig = make_rig(**THROUGH_THE_DISK, layout=layout)
    rig.add(*range(5))
    for table in range(5):
        rig.tell(table, [put(n, f"{table}", bytes([table])) for n in range(1, 50)], resolved=60)
    rig.run()
    rig.check()


@LAYOUTS
def test_a_table_removed_and_added_again_never_meets_its_old_changes(make_rig, layout):
    rig = make_rig(**THROUGH_THE_DISK, layout=layout)
    rig.add(1, 2)
    rig.tell(1, [put(n, "old") for n in range(1, 50)])
    rig.run()
    rig.remove(1)
    rig.add(1)
    rig.tell(1, [put(n, "new") for n in range(1, 50, 7)], resolved=60)
    rig.tell(2, resolved=60)
    rig.run()
    rig.check()


def test_a_large_transaction_is_ended_when_the_table_that_had_the_rest_is_removed(make_rig):
    rig = make_rig(**THROUGH_THE_DISK, block_changes=7, merge_bytes=1)
    rig.add(1, 2)
    rig.tell(1, [put(10, f"{n:03}", bytes(100)) for n in range(200)], resolved=20)
    rig.tell(2, resolved=20)
    while not rig.received:
        rig.system.step()
    assert rig.received[-1].continues
    rig.remove(1)
    rig.run()
    rig.check_form()
    last = rig.received[-1]
    assert ([*last.changes], last.resolved, last.continues) == ([], 20, False)


# --- space -------------------------------------------------------------------------------------------


@LAYOUTS
def test_space_comes_back_while_others_write(make_rig, layout):
    rig = make_rig(**THROUGH_THE_DISK, layout=layout)
    rig.add(1, 2)
    most = 0
    for second in range(1, 40):
        for table in (1, 2):
            changes = [put(second * 1000 + n, f"{table}", bytes(100)) for n in range(500)]
            rig.tell(table, changes, resolved=second * 1000 + 500)
        rig.run(1)
        rig.sorter.acknowledge(rig.sorter.statistics().sent)
        rig.run()
        most = max(most, rig.sorter.statistics().disk_bytes)
    rig.check()
    assert 0 < most < rig.sorter.statistics().spilled_bytes / 8


def rocks_counts(rig: Rig) -> dict[str, int]:
    """RocksDB's own counters."""
    text = rig.sorter._stores[0]._options.get_statistics()
    lines = [line.split() for line in text.splitlines()]
    return {words[0]: int(words[3]) for words in lines if words[1:3] == ["COUNT", ":"] and len(words) == 4}


def sst_bytes(rig: Rig) -> int:
    """Return the size of RocksDB's files, as reported by itself."""
    store = rig.sorter._stores[0]
    windows = [*store.ended(), *([store._current] if store._current else [])]
    return sum(w.family.property_int_value("rocksdb.live-sst-files-size") for w in windows)


@LAYOUTS
def test_by_rocksdbs_own_statistics_space_comes_back_and_reading_stays_as_cheap(make_rig, layout):
    """Others keep writing what isn't resolved: no tombstone is written or stepped over."""
    rig = make_rig(**THROUGH_THE_DISK, layout=layout)
    rig.sorter._stores[0]._options.enable_statistics()
    rig.add(1, 2)
    on_disk, read = [], []
    for second in range(1, 60):
        for table in (1, 2):
            changes = [put(second * 1000 + n, f"{table}", bytes(200)) for n in range(300)]
            rig.tell(table, changes, resolved=second * 1000 if table == 1 else second * 1000 - 500)
        rig.run(1)
        flush(rig)
        rig.sorter.acknowledge(rig.sorter.statistics().sent)
        rig.run(1)
        on_disk.append(sst_bytes(rig))
        counts = rocks_counts(rig)
        read.append(counts["rocksdb.bytes.read"] + counts["rocksdb.db.iter.bytes.read"])
    rig.check()
    assert counts["rocksdb.bytes.written"] > 5_000_000
    assert max(on_disk) < 6 * 2 * 300 * 300
    assert on_disk[-1] <= 2 * max(on_disk[5:10])
    assert counts["rocksdb.number.iter.skip"] == 0
    steps = [after - before for before, after in pairwise(read[5:])]
    assert max(steps) <= 2 * max(steps[:5])
    for table in (1, 2):
        rig.tell(table, resolved=100_000)
    rig.run()
    rig.sorter.acknowledge(100_000)
    rig.run(3)
    assert (sst_bytes(rig), rig.sorter.statistics().disk_bytes) == (0, 0)


def test_a_window_is_dropped_once_all_of_it_is_acknowledged(make_rig):
    rig = make_rig(**THROUGH_THE_DISK)
    rig.add(1)
    rig.tell(1, [put(n, "k", bytes(300)) for n in range(1, 400)])
    rig.run()
    flush(rig)
    assert usage(rig.directory) > 100_000
    rig.tell(1, resolved=500)
    rig.run()
    rig.sorter.acknowledge(500)
    rig.run(2)
    statistics = rig.sorter.statistics()
    assert (statistics.disk_bytes, statistics.memory_bytes) == (0, 0)


def test_a_window_with_much_left_to_read_stays(make_rig):
    rig = make_rig(**THROUGH_THE_DISK, block_changes=20)
    rig.add(1, 2)
    for start in range(1, 500, 20):
        for table in (1, 2):
            rig.tell(table, [put(start + n, "k", bytes(300)) for n in range(20)])
        rig.run()
    rig.tell(1, resolved=600)
    rig.tell(2, resolved=200)
    rig.run()
    before = rig.sorter.statistics().disk_bytes
    rig.sorter.acknowledge(200)
    rig.run(2)
    assert rig.sorter.statistics().disk_bytes == before
    rig.tell(2, resolved=600)
    rig.run()
    rig.check()


def test_a_window_with_little_left_to_read_is_compacted(make_rig):
    rig = make_rig(**THROUGH_THE_DISK)
    rig.add(1, 2)
    rig.tell(1, [put(n, "soon", bytes(3000)) for n in range(1, 500)])
    rig.tell(2, [put(10_000 + n, "late", bytes(3000)) for n in range(20)])
    rig.run()
    for table in (1, 2):
        rig.tell(table, resolved=500)
    rig.run()
    flush(rig)
    before = usage(rig.directory)
    rig.sorter.acknowledge(400)
    rig.run(2)
    flush(rig)
    assert usage(rig.directory) < before / 4
    for table in (1, 2):
        rig.tell(table, resolved=20_000)
    rig.run()
    rig.check()


def test_the_disk_quota_stops_the_feed_with_the_reason(make_rig):
    rig = make_rig(**THROUGH_THE_DISK, max_disk_bytes=1 << 20)
    rig.add(1)
    rig.tell(1, [put(n, "k", bytes(3000)) for n in range(1, 1000)])
    rig.run()
    assert isinstance(rig.failures[0].error, StoreError)
    assert "disk quota is used up" in str(rig.failures[0].error)
    assert "max_disk_bytes" in str(rig.failures[0].error)
    assert rig.sorter.statistics().disk_bytes <= 1 << 20


# --- faults ------------------------------------------------------------------------------------------


@LAYOUTS
def test_a_corrupted_block_stops_the_feed_and_no_change_is_skipped(make_rig, layout):
    rig = make_rig(**THROUGH_THE_DISK, layout=layout, block_changes=50)
    rig.add(1, 2)
    for n in range(1, 1000, 10):
        rig.tell(1 + n // 10 % 2, [put(n + i, f"{n + i:04}", bytes(200)) for i in range(10)])
    rig.run()
    flush(rig)
    for path in rig.directory.glob("*/*.sst"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    for table in (1, 2):
        rig.tell(table, resolved=1000)
    rig.run()
    (failed,) = rig.failures
    assert isinstance(failed.error, StoreError)
    assert any(f"{tables}: " in str(failed.error) for tables in ("table 1", "table 2", "tables 1, 2"))
    assert "of commit ts" in str(failed.error)
    rig.check_form()
    left = rig.changes
    everything = sorted(rig.expected(1) + rig.expected(2))
    assert left == everything[: len(left)]
    assert len(left) < len(everything)


@LAYOUTS
def test_a_value_that_is_not_what_was_written_is_found_by_its_checksum(make_rig, layout, monkeypatch):
    rig = make_rig(**THROUGH_THE_DISK, layout=layout)
    rig.add(1)
    rig.tell(1, [put(n, "k", b"same length") for n in range(1, 9)])
    rig.run()
    (store,) = rig.sorter._stores
    honest_get, honest_iterate = store.get, store.iterate

    def bent(value: bytes) -> bytes:
        return value.replace(b"same", b"some")

    monkeypatch.setattr(store, "get", lambda *key: bent(honest_get(*key)))
    monkeypatch.setattr(store, "iterate", lambda *keys: ((k, bent(v)) for k, v in honest_iterate(*keys)))
    rig.tell(1, resolved=9)
    rig.run()
    (failed,) = rig.failures
    assert "table 1: 8 changes of commit ts 1 to 8 can't be read back" in str(failed.error)
    assert "checksum" in str(failed.error)
    assert rig.changes == []


@LAYOUTS
def test_a_block_that_is_gone_is_an_error(make_rig, layout, monkeypatch):
    rig = make_rig(**THROUGH_THE_DISK, layout=layout)
    rig.add(1)
    rig.tell(1, [put(n, "k") for n in range(1, 9)])
    rig.run()
    (store,) = rig.sorter._stores
    honest_iterate = store.iterate
    monkeypatch.setattr(store, "get", lambda *key: None)
    monkeypatch.setattr(store, "iterate", lambda *keys: list(honest_iterate(*keys))[:-1])
    rig.tell(1, resolved=9)
    rig.run()
    (failed,) = rig.failures
    assert "table 1: 8 changes" in str(failed.error)
    assert "missing" in str(failed.error)


def test_a_full_disk_stops_the_feed_with_a_clear_error(small_disk, make_rig):
    with ActorSystem("test") as system, Rig(small_disk / "scratch", system, **THROUGH_THE_DISK) as rig:
        rig.add(1)
        for n in range(1, 2000):
            if rig.failures:
                break
            rig.tell(1, [put(n * 10 + i, "k", bytes(20_000)) for i in range(5)])
        rig.writers[1].stop()
        rig.sorter.close()
        (failed,) = rig.failures
        assert isinstance(failed.error, StoreError)
        assert "no space left on its disk" in str(failed.error)


def test_after_a_failure_no_source_is_kept_waiting(make_rig):
    rig = make_rig(**THROUGH_THE_DISK, max_disk_bytes=1 << 20)
    rig.add(1)
    for n in range(1, 500):
        rig.tell(1, [put(n * 100 + i, "k", bytes(3000)) for i in range(50)])
    rig.run()
    assert len(rig.failures) == 1


def test_a_directory_in_use_is_refused_with_its_name_and_holder(make_rig, tmp_path):
    make_rig()
    with pytest.raises(StoreError, match=r"scratch directory .*scratch is in use by pid"):
        make_rig()


def test_an_earlier_runs_store_is_wiped(tmp_path):
    for _ in range(2):
        with Rig(tmp_path, **THROUGH_THE_DISK) as rig:
            rig.add(1)
            rig.tell(1, [put(n, "k") for n in range(1, 50)], resolved=60)
            rig.run()
            rig.check()
            (tmp_path / "store-0").mkdir(exist_ok=True)
    assert [path.name for path in tmp_path.iterdir()] == ["tidemill.lock"]


def test_options_say_what_is_accepted(tmp_path):
    for options, message in [
        ({"engine": "redis"}, "sorter.engine: 'redis' is none of 'db', 'memory', 'unified'"),
        ({"layout": "rows"}, "sorter.layout: 'rows' is none of 'block', 'event'"),
        ({"memory_bytes": -1}, "sorter.memory_bytes: -1 is not a size"),
        ({"stores": 0}, "sorter.stores: expected `int` >= 1"),
        ({"max_disk_bytes": 5}, "sorter.max_disk_bytes: expected `int` >= 1048576"),
    ]:
        with pytest.raises(ConfigError) as raised:
            checked(SorterOptions(**{"directory": tmp_path, **options}), "sorter")
        assert message in str(raised.value)


# --- keys --------------------------------------------------------------------------------------------


def test_the_event_layout_has_the_keys_of_the_original():
    table = SortKeyspace(0x0102030405060708, 0x0A0B0C0D, 0)
    ts = 0x1112131415161718, 0x2122232425262728
    head = bytes.fromhex("0a0b0c0d 0102030405060708 1112131415161718 2122232425262728")
    assert event_key(table, KvChange(*ts, PUT, b"key", b"")) == head + b"\xff\xfe" + b"key"
    assert event_key(table, KvChange(*ts, DELETE, b"key", b"")) == head + b"\xff\xfd" + b"key"


def test_the_event_layout_writes_these_keys_and_nothing_else(make_rig):
    rig = make_rig(**THROUGH_THE_DISK, layout="event")
    rig.add(9)
    changes = [KvChange(5, 4, DELETE, b"a", b""), put(6, "b"), put(6, "c", start_ts=2)]
    rig.tell(9, changes)
    rig.run()
    (store,) = rig.sorter._stores
    store.end_window()
    (window,) = store.ended()
    uid = rig.sorter._tables[9].table.uid
    keys = [key for key, _ in store.iterate(window, b"\0", b"\xff")]
    assert keys == sorted(event_key(SortKeyspace(9, uid, 0), change) for change in changes)


def test_the_hash_is_fnv_1_of_64_bits():
    """The first and the last are published test vectors; FNV-1a would swap the steps."""
    assert fnv1(b"") == 0xCBF29CE484222325
    assert fnv1(b"a") == 0xAF63BD4C8601B7BE
    assert fnv1(b"foobar") == 0x340D8765A4DDA9C2


def test_a_table_belongs_to_the_same_store_in_every_run():
    assert [store_of(table, 8) for table in range(10)] == [5, 2, 7, 4, 1, 6, 3, 0, 5, 2]
    used = [store_of(table, 16) for table in range(1000)]
    assert all(40 < used.count(store) < 90 for store in range(16))
