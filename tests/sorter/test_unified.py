"""The unified engine: heaps, back ends, files."""

from __future__ import annotations

import pytest

from tidemill.errors import StoreError
from tidemill.events import Ts
from tidemill.sorter.keyspace import SortKeyspace
from tidemill.sorter.tier import Tier
from tidemill.sorter.unified import pool as pools
from tidemill.sorter.unified.heap import ResolvedBarrier
from tidemill.sorter.unified.pool import BackEndPool
from tidemill.store.scratch import Scratch

from .rig import put

TO_FILES = {"engine": "unified", "memory_bytes": 0}


def test_what_fits_in_memory_touches_no_file(make_rig):
    rig = make_rig(engine="unified", memory_bytes=8 << 20)
    rig.add(1)
    rig.tell(1, [put(n, "k", bytes(100)) for n in range(1, 5000)], resolved=2500)
    rig.run()
    rig.check()
    assert [path.name for path in rig.directory.iterdir()] == ["tidemill.lock"]


def test_files_are_named_by_process_and_used_again_once_read(make_rig):
    rig = make_rig(**TO_FILES)
    rig.add(1)
    for step in range(1, 20):
        rig.tell(1, [put(step * 1000 + n, "k", bytes(9000)) for n in range(500)])
        rig.run()
        rig.tell(1, resolved=step * 1000 + 500)
        rig.run()
    rig.check()
    files = [path.name for path in rig.directory.glob("sort-*-*.tmp")]
    assert 0 < len(files) <= 4
    assert rig.sorter.statistics().disk_bytes <= 2 * (21 << 20)


def test_a_corrupted_block_is_named_and_nothing_is_skipped(make_rig):
    rig = make_rig(**TO_FILES)
    rig.add(7)
    rig.tell(7, [put(n, f"{n}", bytes(100)) for n in range(1, 3000)])
    rig.run()
    for path in rig.directory.glob("sort-*"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    rig.tell(7, resolved=5000)
    rig.run()
    (failed,) = rig.failures
    assert isinstance(failed.error, StoreError)
    assert "table 7: " in str(failed.error)
    assert "the checksum does not match" in str(failed.error)
    assert rig.changes == rig.expected(7)[: len(rig.changes)]


def test_without_a_word_about_memory_or_under_pressure_flushes_go_to_files(tmp_path):
    scratch = Scratch(tmp_path)
    meminfo = tmp_path / "meminfo"
    pool = BackEndPool(scratch, Tier(1 << 20), None, meminfo)
    assert not pool.has_memory_for(10)
    meminfo.write_text("MemTotal: 1000 kB\nMemAvailable: 200 kB\n")
    assert pool.has_memory_for(10)
    assert not pool.has_memory_for(2 << 20)
    meminfo.write_text("MemTotal: 1000 kB\nMemAvailable: 50 kB\n")
    assert not pool.has_memory_for(10)
    meminfo.write_text("nonsense")
    assert not pool.has_memory_for(10)
    scratch.close()


def test_no_more_files_are_kept_than_are_worth_it(tmp_path, monkeypatch):
    monkeypatch.setattr(pools, "CACHED_FILES", 3)
    scratch = Scratch(tmp_path)
    pool = BackEndPool(scratch, Tier(0), None)
    files = [pool.file() for _ in range(8)]
    for file in files:
        file.is_full = True
    pool.sweep()
    assert len(list(tmp_path.glob("sort-*"))) == 3
    pool.close()
    assert not list(tmp_path.glob("sort-*"))
    scratch.close()


def test_a_disk_nearly_full_is_refused_before_it_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(pools, "LEAST_FREE", 1.1)
    scratch = Scratch(tmp_path)
    with pytest.raises(StoreError, match="of its disk is free"):
        BackEndPool(scratch, Tier(0), None).file()
    scratch.close()


def test_files_left_by_a_crash_are_removed_at_the_start(tmp_path):
    Scratch(tmp_path).close()
    (tmp_path / "sort-123-4.tmp").write_text("left")
    scratch = Scratch(tmp_path)
    assert not list(tmp_path.glob("sort-*"))
    scratch.close()


def test_a_resolved_ts_counts_once_all_heaps_have_flushed():
    barrier = ResolvedBarrier(2)
    table = SortKeyspace(1, 1, 0)
    first: dict[SortKeyspace, Ts] = {table: 5}
    one, two = barrier.begin(first), barrier.begin({table: 7})
    assert barrier.pass_by(0, one.number) == {}
    assert barrier.pass_by(0, two.number) == {}
    assert barrier.pass_by(1, one.number) == {table: 5}
    assert barrier.pass_by(1, two.number) == {table: 7}
