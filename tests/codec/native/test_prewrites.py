"""The native table of prewrites beside a model: what it stores, what it matches, what blocks keep of it."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from tidemill.codec.blocks import BlockBuilder, block_of
from tidemill.codec.native import library
from tidemill.codec.plain_blocks import PlainBlock, PlainBuilder
from tidemill.codec.prewrites import PlainTable, PrewriteTable
from tidemill.codec.proto import cdcpb
from tidemill.events import DELETE, PUT, Block

pytestmark = pytest.mark.skipif(library.native is None, reason="the native decoder isn't built")

PREWRITE, COMMIT, ROLLBACK, COMMITTED = 1, 2, 3, 4
OPS = {1: PUT, 2: DELETE}


def match(
    table: PlainTable, rows: Any, first: int, builder: PlainBuilder, region_id: int, start_ts: int,
    resolved_ts: int, is_initialised: bool, bounds: Any,
) -> int:  # fmt: skip
    """See `PrewriteTable.match`."""
    for at in range(first, len(rows)):
        kind, op, start, commit, key, value, old, generation = rows[at]
        if not PREWRITE <= kind <= COMMITTED:
            return at
        if bounds is not None and not bounds[0] <= key < bounds[1]:
            continue
        is_old = commit <= start_ts
        is_wrong = op not in OPS or start_ts < commit <= resolved_ts
        if kind == PREWRITE:
            table.put(start, key, value, old, generation, op == 1 and not value)
        elif kind == COMMITTED:
            if is_old:
                continue
            if is_wrong:
                return at
            builder.add(commit, start, OPS[op], key, value, old, region_id)
        elif not is_initialised or (kind == COMMIT and is_wrong):
            return at
        elif (found := table.take(start, key)) is None:
            if kind == COMMIT:
                return at
        elif kind == COMMIT and not is_old:
            builder.add(commit, start, OPS[op], key, *found[:2], region_id)
    return len(rows)


def random_rows(rng: random.Random, count: int, keys: int, room: int) -> Any:
    """An event's rows, as the native decoder gives them."""
    assert library.native is not None
    message = cdcpb.ChangeDataEvent()
    entries = message.events.add(region_id=1, request_id=1).entries.entries
    for _ in range(count):
        kind = rng.choice((1, 1, 1, 2, 2, 2, 2, 3, 4)) if rng.random() < 0.995 else rng.choice((5, 9))
        start_ts = rng.randrange(1, 6)
        entries.add(
            type=kind, op_type=rng.choice((1, 1, 1, 2)) if rng.random() < 0.995 else 0, start_ts=start_ts,
            commit_ts=rng.randrange(100, 1 << 40) if rng.random() < 0.99 else rng.randrange(30),
            key=b"k%0*d" % (rng.choice((1, 1, 1, 20)), rng.randrange(keys)),
            value=rng.randbytes(rng.randrange(room)) if kind in (1, 4) else b"",
            old_value=rng.choice((b"", b"old")), generation=rng.choice((0, 0, 0, 0, 2)),
        )  # fmt: skip
    if not entries:
        return []
    found = library.native.change_data(message.SerializeToString())
    assert found is not None
    return found[0][2]


def compare(seed: int, *, is_native: bool) -> int:
    """Compare a table with the model, and return the number of changes."""
    assert library.native is not None
    rng = random.Random(seed)
    keys, room, most = rng.choice((3, 50, 2_000)), rng.choice((2, 300, 9_000)), rng.choice((3, 40, 700))
    table: PrewriteTable = library.native.PrewriteTable() if is_native else PlainTable()
    builder: BlockBuilder = library.native.BlockBuilder() if is_native else PlainBuilder()
    from_bytes: Callable[[bytes], Block] = (
        library.native.block_from_bytes if is_native else PlainBlock.from_bytes
    )
    model, plain = PlainTable(), PlainBuilder()
    kept: list[tuple[Any, list[Any]]] = []
    spilled: list[tuple[Any, Any]] = []
    changes = 0
    for _ in range(rng.randrange(2, 30)):
        rows = random_rows(rng, rng.randrange(most), keys, room)
        bounds = rng.choice((None, None, (b"k1", b"k9"), (b"", b"k5"), (b"k7", b"k7")))
        rules = 7, rng.choice((0, 5, 20)), 25, rng.random() < 0.9, bounds
        at = 0
        while at < len(rows):
            wanted = match(model, rows, at, plain, *rules)
            assert table.match(rows, at, builder, *rules) == wanted, seed
            at = wanted + 1
        assert len(table) == len(model)
        assert bool(table.bytes) == bool(model)
        start_ts, key = rng.randrange(1, 6), b"k%d" % rng.randrange(keys)
        match rng.randrange(8):
            case 0:
                block, expected = builder.take(), [*plain.take()]
                changes += len(block)
                assert [*block] == expected, seed
                kept.append((block, expected))
            case 1:
                assert table.take(start_ts, key) == model.take(start_ts, key), seed
            case 2:
                value = rng.randbytes(rng.randrange(room))
                prewrite = start_ts, key, value, b"", rng.randrange(3), not value and rng.random() < 0.5
                table.put(*prewrite)
                model.put(*prewrite)
            case 3 if len(table):
                block, expected = table.sorted(), model.sorted()
                assert [*block] == [*expected], seed
                cut = rng.randrange(len(block) + 1)
                part, its = block.slice(0, cut), expected.slice(0, cut)
                table.remove(part)
                model.remove(its)
                spilled.append((part.to_bytes(), its))
            case 4 if spilled:
                data, its = spilled.pop()
                table.load(from_bytes(data))
                model.load(its)
        assert len(table) == len(model)
        assert table.get(start_ts, key) == model.get(start_ts, key), seed
    for block, expected in kept:
        assert [*block] == expected, "a block has its changes whatever becomes of the table"
    return changes


@pytest.fixture(autouse=True)
def plain_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "in_use", False)


@pytest.mark.parametrize("is_native", [True, False])
def test_the_table_matches_as_the_model_does(is_native: bool) -> None:
    assert sum(compare(seed, is_native=is_native) for seed in range(40)) > 500


@pytest.mark.soak
def test_the_table_matches_as_the_model_does_in_many_histories() -> None:
    for seed in range(60, 2_000):
        compare(seed, is_native=seed % 10 > 0)


def prewrites(count: int, first: int = 0, size: int = 100) -> Any:
    assert library.native is not None
    message = cdcpb.ChangeDataEvent()
    message.events.add(region_id=1, request_id=1).entries.entries.extend(
        [
            cdcpb.Event.Row(type=1, op_type=1, start_ts=5, key=b"%08d" % n, value=b"v" * size)
            for n in range(first, first + count)
        ]
    )
    ((_, _, rows),) = library.native.change_data(message.SerializeToString()) or ()
    return rows


def commits(numbers: range) -> Any:
    assert library.native is not None
    message = cdcpb.ChangeDataEvent()
    message.events.add(region_id=1, request_id=1).entries.entries.extend(
        [
            cdcpb.Event.Row(type=2, op_type=1, start_ts=5, commit_ts=9, key=b"%08d" % number)
            for number in numbers
        ]
    )
    ((_, _, rows),) = library.native.change_data(message.SerializeToString()) or ()
    return rows


RULES = 7, 0, 0, True, None


def test_few_changes_of_a_large_transaction_keep_no_more_than_themselves() -> None:
    assert library.native is not None
    table, builder = library.native.PrewriteTable(), library.native.BlockBuilder()
    for first in range(0, 20_000, 1_000):
        assert table.match(prewrites(1_000, first), 0, builder, *RULES) == 1_000
    assert table.match(commits(range(0, 20_000, 1_000)), 0, builder, *RULES) == 20
    block: Any = builder.take()
    assert len(block) == 20
    assert block.held_bytes < 10_000


def test_few_prewrites_that_are_left_keep_no_more_than_twice_themselves() -> None:
    assert library.native is not None
    table, builder = library.native.PrewriteTable(), library.native.BlockBuilder()
    for first in range(0, 20_000, 1_000):
        table.match(prewrites(1_000, first), 0, builder, *RULES)
    before = table.bytes
    for number in range(100):
        rows = commits(range(number, 20_000, 100))
        if number != 50:
            assert table.match(rows, 0, builder, *RULES) == len(rows)
            builder.take()
    assert len(table) == 200
    assert 20_000 * 156 < before < 20_000 * 156 * 1.6
    assert table.bytes < 2 * 200 * 108 + (1 << 16) + (1 << 15)
    assert table.match(commits(range(50, 20_000, 100)), 0, builder, *RULES) == 200
    assert table.bytes == 0


def test_changes_share_the_memory_of_their_prewrites() -> None:
    assert library.native is not None
    table, builder = library.native.PrewriteTable(), library.native.BlockBuilder()
    table.match(prewrites(1_000, size=1_000), 0, builder, *RULES)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        table.match(commits(range(1_000)), 0, builder, *RULES)
        block = builder.take()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(block) == 1_000
    assert after - before < 200_000, "a copy would be a million"


def test_what_is_none_of_its_arguments_is_refused() -> None:
    assert library.native is not None
    table, builder = library.native.PrewriteTable(), library.native.BlockBuilder()
    rows = prewrites(3)
    assert table.match([*rows], 1, builder, *RULES) == 1, "rows of the decoder in Python"
    with pytest.raises(IndexError, match="no such row"):
        table.match(rows, 4, builder, *RULES)
    with pytest.raises(TypeError, match="a builder"):
        table.match(rows, 0, PlainBuilder(), *RULES)
    with pytest.raises(TypeError, match="bounds"):
        table.match(rows, 0, builder, *RULES[:-1], (b"",))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bytes"):
        table.put(5, "key", b"", b"", 0, False)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        table.get(1 << 64, b"")
    with pytest.raises(TypeError, match="block"):
        table.load(block_of([]))
    assert len(table) == 0


def test_nothing_is_kept_of_tables() -> None:
    assert library.native is not None
    many, few = prewrites(500), commits(range(0, 500, 3))

    def work() -> None:
        table, builder = library.native.PrewriteTable(), library.native.BlockBuilder()
        table.match(many, 0, builder, *RULES)
        table.match(few, 0, builder, *RULES)
        block = table.sorted()
        table.remove(block.slice(0, 200))
        table.load(library.native.block_from_bytes(block.to_bytes()))
        table.put(5, b"", b"v", b"old", 3, False)
        table.take(5, b"")
        builder.take()

    work()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(50):
            work()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 10_000
