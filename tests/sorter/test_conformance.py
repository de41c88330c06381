"""The contract of every engine."""

from __future__ import annotations

import random

import pytest

from tidemill.errors import InvariantViolated
from tidemill.events import DELETE, KvChange

from .rig import put


@pytest.fixture
def rig(make_rig, engine):
    return make_rig(**engine)


def test_changes_leave_in_commit_order_up_to_the_least_resolved_ts(rig):
    rig.add(1, 2)
    rig.tell(1, [put(30, "c"), put(10, "a"), put(20, "b")], resolved=25)
    rig.tell(2, [put(15, "x"), put(22, "y")], resolved=20)
    rig.run()
    assert [(c.commit_ts, c.region_id) for c in rig.changes] == [(10, 1), (15, 2), (20, 1)]
    rig.check()
    rig.tell(2, resolved=40)
    rig.run()
    rig.check()
    rig.tell(1, resolved=40)
    rig.run()
    assert [(c.commit_ts, c.region_id) for c in rig.changes][3:] == [(22, 2), (30, 1)]
    rig.check()


def test_within_a_transaction_deletes_come_before_puts_then_keys_ascend(rig):
    rig.add(1)
    changes = [
        KvChange(9, 5, op, key, b"")
        for op, key in [(1, b"b"), (0, b"c"), (1, b"a"), (0, b"a"), (1, b""), (1, b"\xff")]
    ]
    rig.tell(1, changes, resolved=9)
    rig.run()
    (whole,) = rig.parts
    assert [(c.op, c.key) for c in whole.changes] == [
        (0, b"a"), (0, b"c"), (1, b""), (1, b"a"), (1, b"b"), (1, b"\xff"),
    ]  # fmt: skip
    rig.check()


def test_transactions_of_one_commit_ts_leave_by_start_ts(rig):
    rig.add(1, 2)
    rig.tell(1, [put(9, "a", start_ts=7), put(9, "b", start_ts=3)], resolved=9)
    rig.tell(2, [put(9, "c", start_ts=5), put(9, "d", start_ts=3)], resolved=9)
    rig.run()
    assert [(p.start_ts, p.tables) for p in rig.parts] == [(3, [1, 2]), (5, [2]), (7, [1])]
    rig.check()


def test_a_transaction_over_several_tables_leaves_as_one(rig):
    rig.add(1, 2, 3)
    for table in (1, 2, 3):
        rig.tell(table, [put(9, f"{table}.{n}") for n in range(3)] + [put(8, "x"), put(10, "y")], resolved=10)
    rig.run()
    assert [p.tables for p in rig.parts] == [[1, 2, 3], [1, 1, 1, 2, 2, 2, 3, 3, 3], [1, 2, 3]]
    rig.check()


def test_a_change_that_comes_twice_leaves_once(rig):
    rig.add(1)
    rig.tell(1, [put(5, "a"), put(6, "a"), put(6, "b")])
    rig.run()
    rig.tell(1, [put(6, "b"), put(5, "a"), put(7, "c")], resolved=7)
    rig.run()
    assert [c.key for c in rig.delivered(1)] == [b"a", b"a", b"b", b"c"]
    rig.check()


def test_without_changes_the_resolved_ts_moves_on(rig):
    rig.add(1, 2)
    rig.tell(1, resolved=50)
    rig.run()
    assert rig.received == []
    rig.tell(2, resolved=40)
    rig.run()
    assert [([*m.changes], m.resolved) for m in rig.received] == [([], 40)]
    rig.tell(2, resolved=40)
    rig.tell(2, resolved=30)
    rig.run()
    assert len(rig.received) == 1


def test_the_fields_of_a_change_come_out_as_they_went_in(rig):
    rig.add(7)
    change = KvChange((1 << 63) - 1, (1 << 63) - 2, DELETE, b"\0k\xff", b"\0" * 999, b"old\xff", 7)
    rig.tell(7, [change, put(5, "before" * 1000)], resolved=(1 << 63) - 1)
    rig.run()
    assert rig.delivered(7)[1] == change
    rig.check()


@pytest.mark.parametrize("seed", range(5))
def test_many_tables_are_advanced_at_once_behind_what_they_were_told(make_rig, engine, seed):
    rig = make_rig(seed=seed, **engine)
    tables = range(1, 40)
    rig.add(*tables)
    for ts in (10, 20, 30):
        for table in tables[ts // 10 :]:
            rig.tell(table, [put(ts, f"{n}") for n in range(5)])
        rig.advance(**{f"_{table}": ts for table in tables})
        rig.system.step()
    rig.sorter.advance({999: 50})
    rig.run()
    rig.check()
    assert rig.sorter.statistics().sent == 30


def test_a_table_added_later_holds_everything_back_until_it_is_resolved(rig):
    rig.add(1)
    rig.tell(1, [put(5, "a")], resolved=10)
    rig.run()
    rig.add(2, resolved=10)
    rig.tell(1, [put(15, "b")], resolved=20)
    rig.run()
    rig.check()
    assert len(rig.changes) == 1
    rig.tell(2, [put(12, "x")], resolved=20)
    rig.run()
    assert [c.commit_ts for c in rig.changes] == [5, 12, 15]
    rig.check()


def test_a_removed_table_holds_nothing_back_and_sends_nothing_more(rig):
    rig.add(1, 2)
    rig.tell(1, [put(n, "a", bytes(500)) for n in range(5, 15)], resolved=20)
    for n in (7, 8, 9, 15, 1000, 10_000):
        rig.tell(2, [put(n, "x", bytes(500))], resolved=3)
        rig.run()
    rig.remove(2)
    rig.run()
    assert {c.region_id for c in rig.changes} == {1}
    rig.check()
    assert rig.sorter.statistics().memory_bytes == 0
    rig.add(2, resolved=20)
    rig.tell(2, [put(21, "y")], resolved=30)
    rig.tell(1, resolved=30)
    rig.run()
    assert rig.delivered(2) == rig.expected(2)


def test_a_table_is_added_once_and_removed_once(rig):
    rig.add(1)
    with pytest.raises(ValueError, match="table 1 is in the sorter already"):
        rig.sorter.add_table(1)
    rig.remove(1)
    with pytest.raises(KeyError):
        rig.sorter.remove_table(1)


def test_a_change_at_or_below_its_tables_resolved_ts_is_a_bug_of_its_source(rig):
    rig.add(1)
    rig.tell(1, resolved=10)
    rig.run()
    rig.tell(1, [put(10, "late")], resolved=20)
    rig.run()
    (failed,) = rig.failures
    assert isinstance(failed.error, InvariantViolated)
    assert "table 1: a change of commit ts 10 came after everything up to 10" in str(failed.error)


def test_a_full_downstream_stops_the_sorter_and_loses_nothing(make_rig, engine):
    rig = make_rig(seed=3, capacity=1, **engine)
    rig.add(1, 2)
    rng = random.Random(1)
    for step in range(1, 30):
        for table in (1, 2):
            changes = [put(rng.randrange(step * 100 - 99, step * 100), f"{n}") for n in range(20)]
            rig.tell(table, changes, resolved=step * 100)
    rig.run()
    rig.check()


def test_tables_that_lag_and_overlap_with_acknowledgements_in_between(make_rig, engine):
    rng = random.Random(5)
    rig = make_rig(seed=5, **engine)
    tables = range(1, 9)
    rig.add(*tables)
    for n in range(300):
        table = rng.choice(tables)
        resolved = rig.resolved[table]
        changes = [
            put(resolved + rng.randrange(1, 400), f"{n}.{i}", rng.randbytes(9))
            for i in range(rng.randrange(30))
        ]
        rig.tell(table, changes, resolved=resolved + rng.randrange(200))
        if rng.random() < 0.3:
            rig.run()
            rig.check()
            rig.sorter.acknowledge(rig.sorter.statistics().sent)
    for table in tables:
        rig.tell(table, resolved=10**6)
    rig.run()
    rig.check()
    assert rig.sorter.statistics().memory_bytes == 0
    if "memory_bytes" in engine:
        assert rig.sorter.statistics().spilled_bytes > 4 * engine["memory_bytes"]


def test_a_transaction_larger_than_everything_leaves_in_pieces(make_rig, engine):
    """Told in any order, between two small ones; the engine's quotas are far below its 12 MB."""
    engine = (
        engine if engine["engine"] == "memory" else {**engine, "block_changes": 100, "merge_bytes": 1 << 20}
    )
    rig = make_rig(**engine)
    rig.add(1, 2)
    rig.tell(2, [put(9, "before")], resolved=99)
    keys = list(range(3000))
    random.Random(2).shuffle(keys)
    for n in range(0, len(keys), 50):
        rig.tell(1, [put(10, b"%06d" % key, bytes(4000)) for key in keys[n : n + 50]])
        rig.run()
        if "memory_bytes" in engine:
            assert rig.sorter.statistics().memory_bytes <= engine["memory_bytes"] + 250_000
    rig.tell(1, [put(11, "after")], resolved=99)
    rig.run()
    rig.check()
    sizes = [sum(len(change.value) for change in message.changes) for message in rig.received]
    assert max(sizes) <= 1.1 * (1 << 20)
    assert len(rig.received) > 12


def test_transactions_of_one_commit_ts_are_not_torn_apart_without_saying_so(make_rig, engine):
    """A checkpoint between them would lose the second; here they are larger than one Sorted."""
    rig = make_rig(**{**engine, "merge_bytes": 2 << 20})
    rig.add(1)
    rig.tell(1, [put(ts, f"{n:02}", bytes(50_000), start_ts=n) for ts in (90, 91) for n in range(60)])
    rig.tell(1, resolved=99)
    rig.run()
    rig.check()
    assert any(message.continues for message in rig.received)


def test_a_transaction_that_fits_in_memory_leaves_whole(make_rig, engine):
    """However it was told, and however it lies in blocks."""
    rig = make_rig(**{**engine, "merge_bytes": 1 << 20})
    rig.add(1, 2)
    rng = random.Random(3)
    changes = [put(ts, f"{n}", bytes(50)) for ts in range(1, 30) for n in range(40)]
    for table in (1, 2):
        rng.shuffle(changes)
        for n in range(0, len(changes), 30):
            rig.tell(table, changes[n : n + 30])
            rig.run()
        rig.tell(table, resolved=100)
    rig.run()
    rig.check()
    assert [len(part.changes) for part in rig.parts] == [80] * 29


@pytest.mark.parametrize("other", [1, 2])
def test_a_table_removed_in_the_middle_of_a_large_transaction_ends_it(make_rig, engine, other):
    rig = make_rig(seed=other, **{**engine, "merge_bytes": 3000})
    rig.add(1, 2)
    for table in (1, 2):
        rig.tell(table, [put(10, f"{n:03}", bytes(100)) for n in range(200)], resolved=20)
    while not rig.received:
        rig.system.step()
    rig.remove(other)
    rig.run()
    rig.check_form()
    assert not rig.received[-1].continues
    assert rig.delivered(3 - other) == rig.expected(3 - other)


def test_a_table_that_is_added_again_is_not_resolved_by_what_its_first_life_was_told(rig):
    """The resolved ts of the first life wait for the Intake while the table is removed and added again."""
    rig.add(1, 2)
    rig.run()
    rig.advance(_1=50, _2=50)
    rig.remove(1)
    rig.add(1, resolved=10)
    rig.run(2)
    assert rig.sorter.statistics().sent <= 10
    rig.tell(1, [put(20, "new")], resolved=50)
    rig.run(2)
    rig.check()
    assert rig.sorter.statistics().sent == 50


def test_a_table_that_is_added_again_is_resolved_beside_what_its_first_life_left(rig):
    rig.add(1, 2)
    rig.tell(1, [put(7, "old")])
    rig.remove(1)
    rig.add(1, resolved=5)
    rig.advance(_1=20, _2=20)
    rig.run(2)
    rig.check()
    assert rig.sorter.statistics().sent >= 20
