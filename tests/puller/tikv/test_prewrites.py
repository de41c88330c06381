"""Prewrites beyond their bound go to disk and come back: nobody can tell, but by the memory."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidemill.codec.blocks import new_builder
from tidemill.codec.native import library
from tidemill.codec.proto.change_data import read
from tidemill.errors import StoreError
from tidemill.events import DELETE, PUT
from tidemill.puller.tikv.match.matcher import Matcher, PrewriteNotMatch
from tidemill.puller.tikv.match.prewrites import Prewrites
from tidemill.puller.tikv.match.spill import PrewriteMemory
from tidemill.puller.tikv.region import RegionState
from tidemill.puller.tikv.span import UPPER_BOUND, Span
from tidemill.store.scratch import Scratch
from tidemill.store.store import Store

from .rows import change_data, fed, row

pytestmark = pytest.mark.usefixtures("decoder")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    scratch = Scratch(tmp_path_factory.mktemp("scratch"))
    yield scratch
    scratch.close()


@pytest.fixture
def open_store(scratch):
    """Stores that are closed behind the test."""
    stores = []

    def open_store(**options):
        stores.append(Store(scratch.new_store(), **options))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


def region(region_id: int) -> RegionState:
    return RegionState(region_id, Span(b"", UPPER_BOUND), 1, 1, 1)


# --- against a model -----------------------------------------------------------------------------


class Model:
    """A region as two dicts, row by row."""

    def __init__(self) -> None:
        self.prewrites = {}
        self.early = []
        self.initialised = False

    def feed(self, rows):
        return [change for r in rows for change in self.row(r)]

    def row(self, r):
        key = (r.start_ts, r.key)
        there = self.prewrites.get(key)
        if r.type == 1:
            fake = r.op_type == 1 and not r.value
            stronger = (
                not fake and (r.generation, bool(r.value)) >= (there.generation, True) if there else True
            )
            if stronger:
                self.prewrites[key] = r
        elif r.type == 2:
            if there is None and self.initialised:
                raise KeyError(key)
            if there is None or (not self.initialised and (not there.value or there.generation)):
                self.early.append(r)
            else:
                yield self.match(r)
        elif r.type == 3:
            if self.initialised:
                self.prewrites.pop(key, None)
            else:
                self.early.append(r)
        elif r.type == 4:
            yield (r.commit_ts, r.start_ts, r.op_type, r.key, r.value, r.old_value)
        else:
            self.initialised = True
            for e in self.early:
                if e.type == 2 and (e.start_ts, e.key) in self.prewrites:
                    yield self.match(e)
            for e in self.early:
                if e.type == 3:
                    self.prewrites.pop((e.start_ts, e.key), None)
            self.early = []

    def match(self, r):
        p = self.prewrites.pop((r.start_ts, r.key))
        return (r.commit_ts, r.start_ts, r.op_type, r.key, p.value, p.old_value)


def history(rng: random.Random, pipelined: bool):
    """The rows of one region: each key of each transaction is prewritten, perhaps beaten, then ended.

    Before INITIALIZED the two streams, of the scan and of what happens, are mixed.
    """
    lives = []
    for start_ts in range(10, 10 + rng.randrange(1, 6)):
        for key in rng.sample("abcdefghijklmnopqrstuvwxyz", rng.randrange(1, 20)):
            lives.append([*life(rng, start_ts, key, pipelined)])
    rng.shuffle(lives)
    before, after = [], []
    for rows in lives:
        cut = rng.randrange(len(rows) + 1)
        if rng.random() < 0.3 and cut == len(rows) and rows[-1].type == 2:
            rng.shuffle(rows)  # the scan's prewrite comes behind the commit
        before.append(rows[:cut])
        after.append(rows[cut:])
    return [*mixed(rng, before), row("initialized"), *mixed(rng, after)]


def ordered_history(rng: random.Random):
    """The rows of a region whose transactions are committed in the order of their prewrites, but for some."""
    keys = [
        (start_ts, key)
        for start_ts in range(10, 10 + rng.randrange(1, 30))
        for key in sorted(rng.sample("abcdefghijklmnopqrstuvwxyz", rng.randrange(1, 20)))
    ]
    ended = keys.copy()
    for _ in range(rng.choice([0, 0, 1, 4])):
        at = rng.randrange(len(keys))
        ended[at - 1], ended[at] = ended[at], ended[at - 1]
    yield row("initialized")
    at = done = 0
    while done < len(keys):
        at, last = min(len(keys), at + rng.randrange(40)), at
        for start_ts, key in keys[last:at]:
            value = f"{start_ts}-{key}" * rng.choice([1, 9])
            yield row("prewrite", key, "put", start_ts=start_ts, value=value)
        there = set(keys[:at])
        for start_ts, key in ended[done : done + rng.randrange(40)]:
            if (start_ts, key) not in there:
                break
            done += 1
            if rng.random() < 0.01:
                yield row("rollback", key, start_ts=start_ts)
            else:
                yield row("commit", key, "put", start_ts=start_ts, commit_ts=start_ts + 100)


def life(rng, start_ts, key, pipelined):
    op = rng.choice(["put", "put", "put", "delete"])
    old = rng.choice(["", f"old-{key}"])
    highest = rng.randrange(1, 4) if pipelined and rng.random() < 0.5 else 0
    for generation in range(min(1, highest), highest + 1):
        value = f"{start_ts}-{key}-{generation}-" + "x" * rng.randrange(300) if op == "put" else ""
        more = {"start_ts": start_ts, "generation": generation, "old_value": old}
        yield row("prewrite", key, op, value=value, **more)
        if op == "put" and rng.random() < 0.2:
            yield row("prewrite", key, op, **more)  # a heartbeat
        if rng.random() < 0.1:
            yield row("prewrite", key, op, value=value, **more)
    if rng.random() < 0.8:
        yield row("commit", key, op, start_ts=start_ts, commit_ts=start_ts + 100)
    elif rng.random() < 0.8:
        yield row("rollback", key, start_ts=start_ts)


def mixed(rng, lives):
    lives = [list(rows) for rows in lives if rows]
    while lives:
        rows = rng.choice(lives[:12])
        yield rows.pop(0)
        lives = [rows for rows in lives if rows]


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    seed=st.integers(0, 2**32),
    max_bytes=st.sampled_from([0, 5_000, 20_000, 1 << 30]),
    regions=st.integers(1, 3),
    kind=st.sampled_from(["mixed", "pipelined", "ordered"]),
)
def test_the_matcher_does_as_two_dicts_do_whatever_is_spilled(
    open_store, seed, max_bytes, regions, kind, monkeypatch
):
    monkeypatch.setattr("tidemill.puller.tikv.match.spill.LEAST_BYTES", 0)
    monkeypatch.setattr("tidemill.puller.tikv.match.spill.BLOCK_BYTES", 2_000)
    rng = random.Random(seed)
    shared = PrewriteMemory(open_store(window_bytes=4_000), max_bytes)
    quota = shared.quota()
    histories = [
        [*(ordered_history(rng) if kind == "ordered" else history(rng, kind == "pipelined"))]
        for _ in range(regions)
    ]
    matchers = [Matcher(region(number), quota) for number in range(regions)]
    models = [Model() for _ in range(regions)]
    found = [[] for _ in range(regions)]
    wanted = [[] for _ in range(regions)]
    while any(histories):
        number = rng.choice([number for number, rows in enumerate(histories) if rows])
        size = rng.choice([1, 2, 5, 30])
        batch, histories[number] = histories[number][:size], histories[number][size:]
        found[number] += fed(matchers[number], batch)
        wanted[number] += models[number].feed(batch)
        if models[number].initialised:  # before, a prewrite of the same batch may be taken before its commit
            assert sorted(map(fields, found[number])) == sorted(wanted[number])
        assert quota.bytes <= max_bytes
    for matcher in matchers:
        matcher.close()
    assert not quota.bytes
    assert not shared.blocks


def fields(c):
    return c.commit_ts, c.start_ts, {PUT: 1, DELETE: 2}[c.op], c.key, c.value, c.old_value


# --- memory and disk -----------------------------------------------------------------------------


def rows_of_transaction(start_ts, numbers, kind="prewrite"):
    for number in numbers:
        if kind == "prewrite":
            yield row("prewrite", f"key{number:08}", "put", start_ts=start_ts, value="v" * 150)
        else:
            yield row(kind, f"key{number:08}", "put", start_ts=start_ts, commit_ts=start_ts + 1)


def batches(numbers, size=1000):
    return [numbers[at : at + size] for at in range(0, len(numbers), size)]


def test_a_transaction_larger_than_the_bound_passes_with_an_index_entry_per_block(open_store):
    shared = PrewriteMemory(open_store(), max_bytes=1 << 20)
    quota = shared.quota()
    matcher = Matcher(region(1), quota)
    matcher.region.initialised = True
    numbers = range(20_000)
    for part in batches(numbers):
        fed(matcher, rows_of_transaction(5, part))
        assert quota.bytes <= 1 << 20
    assert matcher.waiting < 5_300
    assert 50 < shared.blocks < 150
    found = []
    for part in batches(numbers):
        found += fed(matcher, rows_of_transaction(5, part, "commit"))
        assert quota.bytes <= 1 << 20
    assert [change.key for change in found] == [f"key{number:08}".encode() for number in numbers]
    assert all(change.value == b"v" * 150 for change in found)
    assert not quota.bytes
    assert not shared.blocks


def test_the_disk_comes_back_when_transactions_end(open_store):
    store = open_store(window_bytes=1 << 20)
    shared = PrewriteMemory(store, max_bytes=1 << 18)
    matcher = Matcher(region(1), shared.quota())
    matcher.region.initialised = True
    for start_ts in range(10, 20):
        for part in batches(range(5_000)):
            fed(matcher, rows_of_transaction(start_ts, part))
        for part in batches(range(5_000)):
            fed(matcher, rows_of_transaction(start_ts, part, "rollback"))
        assert not shared.blocks
        assert store.bytes == 0


def test_the_disk_comes_back_when_a_region_is_dropped(open_store):
    store = open_store()
    shared = PrewriteMemory(store, max_bytes=1 << 18)
    quota = shared.quota()
    matcher = Matcher(region(1), quota)
    matcher.region.initialised = True
    for part in batches(range(5_000)):
        fed(matcher, rows_of_transaction(5, part))
    assert shared.blocks
    matcher.close()
    matcher.close()
    assert (quota.bytes, shared.blocks, store.bytes) == (0, 0, 0)


def test_of_a_region_the_oldest_transactions_are_spilled_and_the_others_stay(open_store):
    shared = PrewriteMemory(open_store())
    quota = shared.quota()
    prewrites = Prewrites(quota)
    for start_ts in (7, 5, 6):
        for number in range(600):
            prewrites.put((start_ts, b"%04d" % number), b"v" * 600, b"")
    shared.max_bytes = quota.bytes
    quota.fit()
    assert shared.blocks == 0
    for number in range(600):
        prewrites.put((8, b"%04d" % number), b"v" * 600, b"")
    quota.fit()
    blocks = shared.blocks
    assert blocks
    for key in ((7, b"0599"), (8, b"0000")):
        assert prewrites.get(key) is not None
    assert shared.blocks == blocks, "they were in memory"
    assert prewrites.get((5, b"0000")) is not None
    assert shared.blocks == blocks - 1
    prewrites.clear()


def test_an_asked_for_block_is_read_once(open_store):
    shared = PrewriteMemory(open_store(), max_bytes=0)
    quota = shared.quota()
    prewrites = Prewrites(quota)
    for number in range(1_000):
        prewrites.put((5, b"%04d" % number), b"v" * 150, b"")
    quota.fit()
    assert len(prewrites) == 0
    before = shared.blocks
    for number in range(100):
        assert prewrites.take((5, b"%04d" % number)) is not None
    assert shared.blocks == before - 1
    prewrites.clear()


def test_commits_that_come_early_are_spilled_too(open_store):
    shared = PrewriteMemory(open_store(), max_bytes=1 << 18)
    quota = shared.quota()
    matcher = Matcher(region(1), quota)
    numbers = range(5_000)
    for part in batches(numbers):
        fed(matcher, rows_of_transaction(5, part, "commit"))
        assert quota.bytes <= 1 << 18
    for part in batches(numbers):
        fed(matcher, rows_of_transaction(5, part))
    found = fed(matcher, [row("initialized")])
    assert [change.key for change in found] == [f"key{number:08}".encode() for number in numbers]
    assert (quota.bytes, shared.blocks) == (0, 0)


def test_an_idle_worker_leaves_its_memory_to_others_at_its_next_turn(open_store):
    shared = PrewriteMemory(open_store(), max_bytes=1 << 20)
    first, second = shared.quota(), shared.quota()
    held = [Prewrites(first), Prewrites(second)]
    for number in range(1_500):
        held[0].put((5, b"%04d" % number), b"v" * 350, b"")
    first.fit()
    assert first.bytes > shared.limit(), "all the room, while nobody else wants it"
    for number in range(1_500):
        held[1].put((5, b"%04d" % number), b"v" * 350, b"")
        second.fit()
    assert second.bytes <= shared.limit()
    assert shared.memory_bytes < 2 << 20
    first.fit()
    assert shared.memory_bytes <= 1 << 20
    for prewrites in held:
        prewrites.clear()
    first.close()
    assert shared.limit() == 1 << 20


def test_a_worker_with_little_is_left_alone_when_another_has_much(open_store):
    shared = PrewriteMemory(open_store(), max_bytes=1 << 20)
    much, little = shared.quota(), shared.quota()
    held = [Prewrites(much), Prewrites(little)]
    for number in range(3_000):
        held[0].put((5, b"%04d" % number), b"v" * 250, b"")
    for number in range(900):
        held[1].put((5, b"%04d" % number), b"v" * 250, b"")
    assert shared.limit() // 2 < little.bytes < shared.limit()
    little.fit()
    assert shared.blocks == 0
    much.fit()
    assert shared.memory_bytes <= 1 << 20
    for prewrites in held:
        prewrites.clear()


def test_a_heartbeat_never_replaces_what_is_on_disk(open_store):
    shared = PrewriteMemory(open_store(), max_bytes=0)
    quota = shared.quota()
    prewrites = Prewrites(quota)
    for number in range(100):
        prewrites.put((5, b"%04d" % number), b"v" * 150, b"", 1)
    quota.fit()
    assert len(prewrites) == 0
    prewrites.put((5, b"0007"), b"", b"", 2, fake=True)
    assert prewrites.take((5, b"0007"))[0] == b"v" * 150
    prewrites.clear()


def test_a_disk_that_fails_stops_the_feed_and_nothing_is_lost(open_store):
    store = open_store()
    shared = PrewriteMemory(store, max_bytes=1 << 18)
    quota = shared.quota()
    prewrites = Prewrites(quota)
    for number in range(2_000):
        prewrites.put((5, b"%04d" % number), b"v" * 150, b"")
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        quota.fit()
    assert len(prewrites) == 2_000


def test_a_block_that_cannot_be_read_stops_the_feed(open_store):
    shared = PrewriteMemory(open_store(), max_bytes=0)
    quota = shared.quota()
    prewrites = Prewrites(quota)
    for number in range(100):
        prewrites.put((5, b"%04d" % number), b"v" * 150, b"")
    quota.fit()
    for place in [*prewrites._runs[0].places]:
        place.generation.family.delete(place.key)
    with pytest.raises(StoreError, match="has lost block"):
        prewrites.take((5, b"0000"))


def test_a_missing_prewrite_among_many_is_named(open_store):
    quota = PrewriteMemory(open_store()).quota()
    matcher = Matcher(region(9), quota)
    matcher.region.initialised = True
    fed(matcher, rows_of_transaction(5, range(10)))
    with pytest.raises(PrewriteNotMatch) as caught:
        fed(matcher, rows_of_transaction(5, range(11), "commit"))
    assert (caught.value.region_id, caught.value.key) == (9, b"key00000010")
    matcher.close()
    assert not quota.bytes


def test_prewrites_that_come_again_are_counted_once(open_store):
    quota = PrewriteMemory(open_store()).quota()
    matcher = Matcher(region(1), quota)
    matcher.region.initialised = True
    fed(matcher, rows_of_transaction(5, range(10)))
    fed(matcher, rows_of_transaction(5, range(5)))
    counted = quota.bytes
    fed(matcher, rows_of_transaction(5, range(5, 10)))
    assert quota.bytes == counted
    assert matcher.waiting == 10
    fed(matcher, rows_of_transaction(5, range(10), "commit"))
    assert not quota.bytes


@pytest.mark.parametrize("backwards", [False, True])
def test_what_is_counted_covers_what_is_taken(open_store, backwards):
    """Distinct transactions, keys, values: the dearest prewrites."""
    quota = PrewriteMemory(open_store()).quota()
    matcher = Matcher(region(1), quota)
    matcher.region.initialised = True
    data = [
        change_data(
            (
                1,
                1,
                [
                    row(
                        "prewrite",
                        f"key{n:08}",
                        "put",
                        start_ts=2**58 + n,
                        value=f"{n:050}",
                        old_value=f"{n:040}",
                    )
                    for n in part
                ],
            )
        )
        for part in batches(range(30_000))
    ]
    if backwards:
        data.reverse()
    builder = new_builder()
    gc.collect()
    tracemalloc.start()
    for message in data:
        for _, _, rows in read(message).events:
            matcher.feed(rows, builder)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert matcher.waiting == 30_000
    assert 0.8 * quota.bytes < taken < 1.1 * quota.bytes
    matcher.close()


@pytest.mark.soak
def test_four_million_rows_in_one_transaction_pass_in_little_memory(scratch, decoder):
    """In a process of its own, to know its memory."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("large_transaction.py"), scratch.directory, "4000000"],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        env={**os.environ, library.SWITCH: str(int(decoder == "native"))},
    )
    changes, peak_mib = map(int, done.stdout.split())
    assert changes == 4_000_000
    assert peak_mib < 600
