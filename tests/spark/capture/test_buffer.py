"""The buffer of a capture: reads of any range, within its quotas."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from threading import Event, Thread

import pytest

from tidemill.actors import ManualClock
from tidemill.errors import StoreError
from tidemill.events import Transaction
from tidemill.spark.capture.buffer import Closed, RangeUnavailable
from tidemill.testing.changes import MemoryStore
from tidemill.testing.progress import changed_to, joined

from .history import BASE, SOURCE, Keeping, expected, heartbeat, history, position, rank_of, row

COUNT = 40


@contextmanager
def in_a_thread(work) -> Iterator[Event]:
    done = Event()

    def run() -> None:
        work()
        done.set()

    thread = Thread(target=run, daemon=True)
    thread.start()
    yield done
    joined(thread)


def until(keeping: Keeping, condition) -> None:
    """Wait for the other thread."""
    with keeping.held.changed:
        changed_to(keeping.held.changed, condition)


def big(number: int, rows: int, *, last: bool = True) -> Transaction:
    ts = BASE + number
    changes = [row(Random(n), ts) for n in range(rows)]
    return Transaction(ts, ts, SOURCE, changes, position(number) if last else "", last)


@pytest.mark.parametrize("memory", [1 << 11, 1 << 13, 1 << 20])
@pytest.mark.parametrize("max_rows", [1, 3, 7, 10_000])
@pytest.mark.parametrize("seed", range(4))
def test_every_range_is_as_if_it_were_read_by_itself(tmp_path, seed, max_rows, memory):
    items = history(seed, COUNT)
    keeping = Keeping(tmp_path, memory=memory, max_rows=max_rows)
    random = Random(seed)
    rest = list(items)
    while rest:  # items that wait while the sink is busy make a batch
        size = random.choice([1, 2, 5, 20])
        keeping.take(rest[:size])
        del rest[:size]
    assert bool(keeping.files) == (memory < 1 << 20)
    for _ in range(30):
        after, upto = sorted(random.sample(range(COUNT + 1), 2))
        assert keeping.read(after, upto) == expected(items, after, upto)
    assert keeping.read(0, COUNT) == expected(items, 0, COUNT)


def test_a_query_that_is_behind_makes_the_base_durable(tmp_path):
    """Else each restart would begin later than the one before, and the query never caught up."""
    items, store = history(1, COUNT), MemoryStore()
    keeping = Keeping(tmp_path, store=store)
    keeping.take([item for item in items if item.commit_ts >= BASE + 10])
    assert keeping.sink.flush() is None
    base = keeping.held.statistics().base
    assert base is not None
    keeping.held.acknowledge(rank_of(position(3)))
    saved = keeping.sink.flush()
    assert saved is not None
    assert (saved.ts, saved.position) == (base.ts, base.position)
    again = Keeping(tmp_path, store=store)
    assert again.held.statistics().base == base


def test_what_is_acknowledged_is_freed_and_its_files_vanish(tmp_path):
    items = history(1, COUNT)
    keeping = Keeping(tmp_path, memory=1 << 11, max_rows=2)
    keeping.take(items)
    before = keeping.held.statistics()
    assert before.disk_bytes == sum(file.stat().st_size for file in keeping.files) > 0
    keeping.held.acknowledge(rank_of(position(25)))
    assert keeping.read(25, COUNT) == expected(items, 25, COUNT)
    with pytest.raises(RangeUnavailable, match=r"starts after log\.000001:1250"):
        keeping.read(24, COUNT)
    assert 0 < keeping.held.statistics().rows < before.rows
    keeping.held.acknowledge(rank_of(position(COUNT)))
    after = keeping.held.statistics()
    assert (after.rows, after.memory_bytes, after.disk_bytes) == (0, 0, 0)
    assert keeping.files == []


def test_the_checkpoint_is_what_was_acknowledged(tmp_path):
    items = history(2, COUNT)
    keeping = Keeping(tmp_path, max_rows=4)
    keeping.take(items)
    assert keeping.sink.flush() is None
    keeping.held.acknowledge(rank_of(position(30)))
    checkpoint = keeping.sink.flush()
    assert checkpoint is not None
    # The place may be a transaction earlier: one without rows leaves no trace.
    assert rank_of(position(25)) < rank_of(checkpoint.position) <= rank_of(position(30))
    assert (checkpoint.source, checkpoint.loading) == (SOURCE, None)
    assert position(checkpoint.ts - BASE) == checkpoint.position


def test_a_restart_goes_on_at_the_checkpoint(tmp_path):
    items, store = history(3, COUNT), MemoryStore()
    first = Keeping(tmp_path / "no", store=store)
    first.take(items[:-5])
    first.held.acknowledge(rank_of(position(20)))
    checkpoint = first.sink.flush()
    again = Keeping(tmp_path / "no", store=store)
    assert again.sink.open() == checkpoint
    again.take(items)  # the gate drops what is at or below the checkpoint
    assert again.read(20, COUNT) == expected(items, 20, COUNT)
    with pytest.raises(RangeUnavailable, match="starts after"):
        again.read(5, COUNT)


def test_without_acknowledgements_a_restart_keeps_nothing_of_before(tmp_path):
    keeping = Keeping(tmp_path)
    keeping.take(history(3, COUNT))
    assert keeping.sink.open() is None
    assert keeping.held.statistics().rows == 0
    assert not keeping.held.begun


def test_the_feed_waits_while_the_quota_is_full_and_goes_on_with_room(tmp_path):
    items = [heartbeat(0), *(big(number, 20) for number in range(1, 31))]
    keeping = Keeping(tmp_path, memory=1 << 14, disk=1 << 14, max_rows=1)
    with in_a_thread(lambda: keeping.take(items)) as done:
        until(keeping, lambda: keeping.held.statistics().blocked_since is not None)
        full = keeping.held.statistics()
        assert full.memory_bytes <= 1 << 14
        assert full.disk_bytes <= 2 * (1 << 14)
        assert not done.is_set()
        with pytest.raises(RangeUnavailable, match=r"the quota is full at log\.000001:"):
            keeping.read(0, 30)
        for number in range(1, 31):
            until(keeping, lambda number=number: _reached(keeping, number))
            assert keeping.read(number - 1, number) == expected(items, number - 1, number)
            keeping.held.acknowledge(rank_of(position(number)))
    assert done.is_set()


def _reached(keeping: Keeping, number: int) -> bool:
    reached = keeping.held.statistics().reached
    return reached is not None and rank_of(reached.position) >= rank_of(position(number))


def test_a_transaction_larger_than_the_quota_is_not_kept_and_blocks_nobody(tmp_path):
    giant = [big(2, 400, last=False), big(2, 400, last=False), big(2, 3)]
    items = [heartbeat(0), big(1, 5), *giant, big(3, 5)]
    keeping = Keeping(tmp_path, memory=1 << 13, disk=1 << 13, max_rows=1)
    with in_a_thread(lambda: keeping.take(items)):
        until(keeping, lambda: keeping.held.statistics().blocked_since is not None)
        # Earlier changes are not dropped for it.
        assert keeping.read(0, 1) == expected(items, 0, 1)
        keeping.held.acknowledge(rank_of(position(1)))
    assert keeping.read(2, 3) == expected(items, 2, 3)
    with pytest.raises(RangeUnavailable, match=r"starts after log\.000001:1020"):
        keeping.read(1, 3)
    assert keeping.files == []


def test_a_batch_that_fits_nowhere_passes_when_nothing_else_is_held(tmp_path):
    items = [heartbeat(0), big(1, 300), big(2, 30)]
    keeping = Keeping(tmp_path, memory=1 << 11, disk=1 << 11, max_rows=1)
    with in_a_thread(lambda: keeping.take(items)):
        until(keeping, lambda: keeping.held.statistics().blocked_since is not None)
        assert keeping.read(0, 1) == expected(items, 0, 1)
        keeping.held.acknowledge(rank_of(position(1)))
    assert keeping.read(1, 2) == expected(items, 1, 2)


def test_acknowledged_before_it_came_it_is_dropped_as_it_comes(tmp_path):
    items = history(5, COUNT)
    keeping = Keeping(tmp_path, max_rows=1)
    keeping.held.acknowledge(rank_of(position(35)))
    keeping.take(items)
    assert keeping.held.statistics().rows == len(expected(items, 35, COUNT))
    assert keeping.read(35, COUNT) == expected(items, 35, COUNT)


def test_one_who_waits_gets_what_comes(tmp_path):
    items = history(6, COUNT)
    keeping = Keeping(tmp_path)
    keeping.take(items[:10])
    found = []

    def read() -> None:
        ends = rank_of(position(0)), rank_of(position(COUNT))
        keeping.held.wait(*ends, 30.0, lambda: True)
        found.append(keeping.read(0, COUNT))

    with in_a_thread(read) as done:
        assert not done.wait(0.02)
        keeping.take(items[10:])
    assert found == [expected(items, 0, COUNT)]


def test_what_does_not_come_in_time_is_said(tmp_path):
    keeping = Keeping(tmp_path, clock=ManualClock())
    with pytest.raises(RangeUnavailable, match="the feed has come to nothing only, after 0 s"):
        keeping.read(0, 1)
    keeping.take([heartbeat(0), big(1, 1)])
    with pytest.raises(RangeUnavailable, match=r"the feed has come to log.000001:1010 \(ts \d+\) only"):
        keeping.read(0, 2)


def test_nobody_waits_for_one_who_went_away(tmp_path):
    keeping = Keeping(tmp_path)
    with pytest.raises(RangeUnavailable, match="the client has disconnected"):
        keeping.held.wait((1, 0), (1, 9), 30.0, lambda: False)


def test_what_is_acknowledged_while_it_is_read_is_refused_not_left_out(tmp_path):
    items = [heartbeat(0), *(big(number, 2) for number in range(1, 10))]
    keeping = Keeping(tmp_path, max_rows=1)
    keeping.take(items)
    found = keeping.held.read(rank_of(position(0)), rank_of(position(9)))
    next(found)
    keeping.held.acknowledge(rank_of(position(5)))
    with pytest.raises(RangeUnavailable, match="acknowledged meanwhile"):
        list(found)


def test_at_its_end_all_who_wait_go_on(tmp_path):
    items = [heartbeat(0), big(1, 20), big(2, 20), big(3, 20)]
    keeping = Keeping(tmp_path, memory=1 << 11, disk=0, max_rows=1)
    raised = []

    def take() -> None:
        with pytest.raises(Closed, match="it is over"):
            keeping.take(items)
        raised.append(True)

    with in_a_thread(take):
        until(keeping, lambda: keeping.held.statistics().blocked_since is not None)
        keeping.held.close("it is over")
    assert raised
    with pytest.raises(RangeUnavailable, match="it is over"):
        keeping.read(0, 1)


def test_a_disk_that_fails_is_an_error_of_the_store(tmp_path):
    keeping = Keeping(tmp_path / "there is no such directory", memory=1 << 11, max_rows=1)
    with pytest.raises(StoreError, match="can't write"):
        keeping.take([heartbeat(0), *(big(number, 20) for number in range(1, 9))])
