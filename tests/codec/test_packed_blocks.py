"""Blocks, in C and in Python: one contract, the same bytes on disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tidemill.codec import blocks
from tidemill.codec.native import library
from tidemill.codec.plain_blocks import MAX_KEYSPACE
from tidemill.events import DELETE, PUT, Block, KvChange

ENTRY_BYTES = 48
MAX = (1 << 64) - 1


@pytest.fixture(params=["native", "python"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "native" and library.native is None:
        pytest.fail("the native module isn't built")
    monkeypatch.setattr(library, "in_use", request.param == "native")
    return str(request.param)


pytestmark = pytest.mark.usefixtures("kind")


def change(ts: int, key: str = "k", op: int = PUT, value: bytes = b"v", **more: Any) -> KvChange:
    return KvChange(ts, more.pop("start_ts", max(0, ts - 1)), op, key.encode(), value, **more)


def keys(block: Block) -> str:
    return "".join(each.key.decode() for each in block)


# --- what a builder makes ----------------------------------------------------------------------------


def test_changes_are_in_commit_order_with_all_they_have():
    later = change(9, "a", value=b"", old_value=b"old", region_id=MAX)
    block = blocks.block_of([later, change(5, "b"), change(5, "a", start_ts=2), change(5, "c", DELETE)])
    assert [*block] == sorted([later, change(5, "b"), change(5, "a", start_ts=2), change(5, "c", DELETE)])
    assert [block[n] for n in range(4)] == [*block]
    assert block[-1] == later
    assert (len(block), block.first_ts, block.last_ts) == (4, 5, 9)
    with pytest.raises(IndexError):
        block[4]


def test_a_change_that_came_twice_is_there_once_and_the_first_counts():
    first, again = change(5, value=b"1"), change(5, value=b"2")
    others = [change(5, op=DELETE), change(5, start_ts=3), change(6), change(5, "kk")]
    block = blocks.block_of([others[0], first, *others[1:], again, others[2]])
    assert [*block] == sorted([first, *others])


def test_nothing_is_a_block_too():
    for nothing in (blocks.new_builder().take(), blocks.merge([]), blocks.NOTHING):
        assert not nothing
        assert ([*nothing], nothing.first_ts, nothing.last_ts, nothing.bytes) == ([], 0, 0, 0)
        assert (nothing.by_prefix(9), nothing.keyspaces(), nothing.find(5)) == ({}, set(), 0)
    assert [*blocks.block_from_bytes(blocks.merge([]).to_bytes())] == []


def test_a_builder_is_empty_once_its_block_is_taken():
    builder = blocks.new_builder()
    builder.add(5, 4, PUT, b"key", b"value", b"old", 7)
    assert (len(builder), builder.bytes) == (1, ENTRY_BYTES + 11)
    first = builder.take()
    assert (len(builder), builder.bytes, len(builder.take())) == (0, 0, 0)
    builder.add(6, 5, DELETE, b"", b"")
    assert [*builder.take()] == [KvChange(6, 5, DELETE, b"", b"")]
    assert [*first] == [KvChange(5, 4, PUT, b"key", b"value", b"old", 7)]


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((-1, 0, PUT, b"", b""), OverflowError, "."),
        ((0, MAX + 1, PUT, b"", b""), OverflowError, "."),
        ((0, 0, PUT, b"", b"", b"", MAX + 1), OverflowError, "."),
        ((0, 0, 2, b"", b""), ValueError, r"op: 2 is neither DELETE \(0\) nor PUT \(1\)"),
        ((0, 0, PUT, "k", b""), TypeError, "key: bytes of less than 4 GiB"),
        ((0, 0, PUT, b"", None), TypeError, "value: bytes"),
        ((0, 0, PUT, b"", b"", 5), TypeError, "old value: bytes"),
        ((0, 0, PUT, b""), TypeError, "."),
    ],
)
def test_what_cannot_be_held_is_refused_and_nothing_is_lost(arguments, error, said):
    builder = blocks.new_builder()
    builder.add(5, 4, PUT, b"k", b"v")
    with pytest.raises(error, match=said):
        builder.add(*arguments)
    assert [*builder.take()] == [change(5)]


# --- parts -------------------------------------------------------------------------------------------


def test_find_gives_the_first_change_at_or_above_a_place():
    block = blocks.block_of([change(5, "b"), change(5, "d"), change(7, "a", DELETE), change(7, "c")])
    assert [block.find(ts) for ts in (0, 5, 6, 7, 8, MAX)] == [0, 0, 2, 2, 4, 4]
    assert [block.find(5, 4, PUT, key) for key in (b"a", b"b", b"bb", b"d", b"dd")] == [0, 0, 1, 1, 2]
    assert (block.find(5, 3, PUT, b"z"), block.find(5, 5, DELETE, b""), block.find(7, 6, PUT, b"")) == (
        0,
        2,
        3,
    )


def test_a_slice_has_its_part_alone():
    block = blocks.block_of([change(ts, str(ts)) for ts in range(10)])
    part = block.slice(3, 7)
    assert (keys(part), part.first_ts, part.last_ts) == ("3456", 3, 6)
    assert part.bytes == 4 * (ENTRY_BYTES + 2)
    assert (keys(part.slice(1, 3)), len(part.slice(2, 2))) == ("45", 0)
    assert [*blocks.block_from_bytes(part.to_bytes())] == [*part]
    for start, stop in ((-1, 2), (3, 2), (0, 5)):
        with pytest.raises(IndexError, match=f"no part from {start} to {stop}: the block has 4 changes"):
            part.slice(start, stop)


def test_rows_are_added_as_they_were_at_a_ts():
    builder = blocks.new_builder()
    builder.add_rows(7, [b"b", b"a"], [b"1", b""])
    assert (len(builder), builder.bytes) == (2, 2 * ENTRY_BYTES + 3)
    assert [*builder.take()] == [KvChange(7, 7, PUT, b"a", b""), KvChange(7, 7, PUT, b"b", b"1")]
    with pytest.raises(ValueError, match=r"value for each key|argument 2 is shorter"):
        builder.add_rows(7, [b"b", b"a"], [b"1"])
    with pytest.raises(TypeError, match="value: bytes"):
        builder.add_rows(7, [b"b"], ["1"])


# --- merging -----------------------------------------------------------------------------------------


def test_a_merge_has_all_in_order_by_keyspace_last():
    one, other = (
        blocks.block_of([change(5, "a"), change(7, "c")]),
        blocks.block_of([change(5, "a"), change(6)]),
    )
    assert keys(blocks.merge([one, other])) == "akc"
    both = blocks.merge([other, one], [2, 1])
    assert (keys(both), both.keyspaces()) == ("aakc", {1, 2})
    assert (keys(both.without({1})), keys(both.without({2})), keys(both.without({1, 2, 3}))) == (
        "ak",
        "ac",
        "",
    )
    assert blocks.merge([both, both]).keyspaces() == {1, 2}
    assert blocks.merge([both.slice(0, 1)]).keyspaces() == {1}


def test_keyspaces_are_numbers_one_a_block():
    block = blocks.block_of([change(5)])
    assert blocks.merge([block], [MAX_KEYSPACE]).keyspaces() == {MAX_KEYSPACE}
    for number in (-1, MAX_KEYSPACE + 1):
        with pytest.raises(ValueError, match=f"keyspace: {number} isn't from 0 to {MAX_KEYSPACE}"):
            blocks.merge([block], [number])
    with pytest.raises(ValueError, match="each block has one keyspace"):
        blocks.merge([block], [1, 2])
    with pytest.raises(TypeError, match="only blocks can be merged"):
        blocks.merge([block, [change(5)]])  # type: ignore[list-item]


def test_what_a_part_of_a_large_block_holds_is_bounded():
    block = blocks.block_of([change(ts, value=bytes(1000)) for ts in range(2000)])
    part = block.slice(5, 15)
    assert part.compact().held_bytes < 2 * part.bytes + (1 << 17)
    assert [*part.compact()] == [*part]
    merged = blocks.merge([part, blocks.block_of([change(3000)])])
    assert merged.held_bytes < 2 * merged.bytes + (1 << 17)
    assert block.compact() is block
    kept = blocks.merge([block.slice(0, 1500), block.slice(500, 2000)])
    assert [*kept] == [*block]
    assert kept.held_bytes < 2 * kept.bytes + (1 << 17)


def test_small_blocks_become_one_piece():
    parts = [blocks.block_of([change(ts)]) for ts in range(5000)]
    merged = blocks.merge(parts)
    assert [each.commit_ts for each in merged] == [*range(5000)]
    assert merged.held_bytes < 1.4 * merged.bytes


# --- on disk -----------------------------------------------------------------------------------------


def test_both_kinds_write_the_same_bytes(monkeypatch):
    written = []
    for in_use in (True, False):
        monkeypatch.setattr(library, "in_use", in_use)
        made = blocks.merge(
            [blocks.block_of(random_changes(Random(3), 200)), blocks.block_of([change(5)])], [4, 9]
        )
        written.append(made.to_bytes())
        assert blocks.block_from_bytes(written[0]).to_bytes() == written[0]
    assert written[0] == written[1]


def test_both_kinds_have_the_same_checksum_for_every_size(monkeypatch):
    for size in range(150):
        written = []
        for in_use in (True, False):
            monkeypatch.setattr(library, "in_use", in_use)
            written.append(blocks.block_of([change(5, value=Random(size).randbytes(size))]).to_bytes())
        assert written[0] == written[1]


def test_damaged_bytes_are_refused_with_the_reason():
    data = blocks.merge([blocks.block_of([change(5, "a"), change(6, "b")])], [1]).to_bytes()
    reasons = set()
    for at in range(len(data)):
        damaged = data[:at] + bytes([data[at] ^ 64]) + data[at + 1 :]
        with pytest.raises(ValueError, match="a block can't be read: ") as refused:
            blocks.block_from_bytes(damaged)
        reasons.add(str(refused.value).partition(": ")[2])
    assert reasons == {"it is no block of this version", "the checksum does not match"}
    for cut in range(len(data)):
        with pytest.raises(ValueError, match="a block can't be read: "):
            blocks.block_from_bytes(data[:cut])


@pytest.mark.parametrize("field", [16, 20, 24, 28, 32])
def test_a_whole_block_that_points_outside_is_refused(field):
    """With a CRC that fits: chunk, place, and the three sizes."""
    data = bytearray(blocks.block_of([change(5, "a")]).to_bytes())
    data[24 + 8 + field : 24 + 12 + field] = b"\xff\xff\xff\xff"
    with pytest.raises(ValueError, match="a change lies outside of it"):
        blocks.block_from_bytes(sealed(data))


def test_a_whole_block_of_other_sizes_or_order_is_refused():
    one, two = (
        blocks.block_of([change(5, "a")]).to_bytes(),
        blocks.block_of([change(5), change(6)]).to_bytes(),
    )
    many = bytearray(one)
    many[8:16] = (1 << 60).to_bytes(8, "little")
    with pytest.raises(ValueError, match="its sizes don't fit"):
        blocks.block_from_bytes(sealed(many))
    turned = bytearray(two)
    turned[24:72], turned[72:120] = two[72:120], two[24:72]
    with pytest.raises(ValueError, match="its changes aren't in order"):
        blocks.block_from_bytes(sealed(turned))


def sealed(data: bytearray) -> bytes:
    """With the CRC of what it has now."""
    from zlib import crc32

    data[4:8] = crc32(data[8:]).to_bytes(4, "little")
    return bytes(data)


# --- against a model ---------------------------------------------------------------------------------


def random_changes(random: Random, count: int) -> Iterator[KvChange]:
    """Some twice; many of one ts, or of few keys; now and then large."""
    spread = random.choice([1, 3, 1000, 1 << 40])
    for _ in range(count):
        ts = random.randrange(spread)
        size = random.choice([0, 1, 20, 300]) if random.random() < 0.99 else 5000
        yield KvChange(
            ts,
            random.randrange(3),
            random.randrange(2),
            random.randbytes(random.randrange(3)),
            bytes(size),
            bytes(random.randrange(2)),
            random.randrange(5),
        )


def place(each: KvChange) -> tuple[int, int, int, bytes]:
    return each.commit_ts, each.start_ts, each.op, each.key


@pytest.mark.parametrize("seed", range(30))
def test_histories_of_blocks_are_as_lists_would_be(seed):
    compare(seed)


def compare(seed: int) -> None:
    """Cut, merge, filter, write and read blocks at random, beside lists of changes with their keyspaces."""
    random = Random(seed)
    made: list[tuple[Block, dict[tuple[Any, ...], KvChange]]] = []
    for _ in range(60):
        what = random.randrange(6)
        if what == 0 or not made:
            given = [*random_changes(random, random.choice([1, 5, 100, 1500]))]
            model: dict[tuple[Any, ...], KvChange] = {}
            for each in given:
                model.setdefault((*place(each), 0), each)
            made.append((blocks.block_of(given), model))
        elif what in (1, 2):
            parts = [random.choice(made) for _ in range(random.randrange(1, 5))]
            numbers = [random.randrange(4) for _ in parts] if what == 1 else None
            model = {}
            for n, (_, its) in enumerate(parts):
                for key, each in sorted(its.items(), key=lambda item: item[0]):
                    model.setdefault((*key[:4], numbers[n]) if numbers else key, each)
            made.append((blocks.merge([part for part, _ in parts], numbers), model))
        elif what == 3:
            block, model = random.choice(made)
            start = random.randrange(len(block) + 1)
            stop = random.randrange(start, len(block) + 1)
            made.append((block.slice(start, stop), dict(sorted(model.items())[start:stop])))
        elif what == 4:
            block, model = random.choice(made)
            gone = {random.randrange(4)}
            made.append(
                (block.without(gone), {key: each for key, each in model.items() if key[4] not in gone})
            )
        else:
            block, model = made.pop(random.randrange(len(made)))
            read = blocks.block_from_bytes(block.to_bytes())
            made.append((read.compact(), model))
        block, model = made[-1]
        _expect(block, model, random)


def _expect(block: Block, model: dict[tuple[Any, ...], KvChange], random: Random) -> None:
    wanted = [each for _, each in sorted(model.items(), key=lambda item: item[0])]
    assert [*block] == wanted
    assert block.keyspaces() == {key[4] for key in model}
    sizes = sum(len(each.key) + len(each.value) + len(each.old_value) for each in wanted)
    assert block.bytes == ENTRY_BYTES * len(wanted) + sizes
    if wanted:
        bound = place(random.choice(wanted))
        assert block.find(*bound) == sum(place(each) < bound for each in wanted)
        size = random.randrange(4)
        parts = block.by_prefix(size)
        by_prefix: dict[bytes, list[KvChange]] = defaultdict(list)
        for each in wanted:
            by_prefix[each.key[:size]].append(each)
        assert [*parts] == sorted(by_prefix)
        assert {prefix: [*part] for prefix, part in parts.items()} == by_prefix


@pytest.mark.parametrize("seed", range(10))
def test_hostile_bytes_are_refused_or_read(seed):
    damage(seed)


def damage(seed: int) -> None:
    """Change bytes of a block and seal it again: what is read can be used, the rest is refused."""
    random = Random(seed)
    data = blocks.block_of(random_changes(random, 20)).to_bytes()
    for _ in range(100):
        damaged = bytearray(data[: random.choice([len(data), random.randrange(len(data))])].ljust(24, b"\0"))
        for _ in range(random.randrange(1, 4)):
            damaged[random.randrange(4, len(damaged))] = random.randrange(256)
        try:
            block = blocks.block_from_bytes(sealed(damaged))
        except ValueError:
            continue
        assert [*blocks.merge([block, block])] == [*block]
        assert blocks.block_from_bytes(block.slice(0, len(block) // 2).to_bytes()).bytes <= block.bytes
