"""A source whose transactions are in commit order, as a binlog's."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.actors import SeededSystem
from tidemill.events import PUT, KvChange

from .rig import Rig, put
from .test_model import engines


@pytest.fixture
def rig(make_rig, engine):
    return make_rig(**engine)


def changes_of(commit_ts: int, numbers: range, size: int = 50) -> list[KvChange]:
    """Changes of a binlog's transaction, with their numbers as keys."""
    return [KvChange(commit_ts, commit_ts, PUT, number.to_bytes(8), bytes(size)) for number in numbers]


def test_an_open_transaction_waits_for_its_end(rig):
    rig.add(1)
    rig.tell(1, [*changes_of(5, range(3)), *changes_of(6, range(40))], resolved=5)
    rig.run()
    assert {change.commit_ts for change in rig.changes} == {5}
    rig.tell(1, changes_of(6, range(40, 80)), resolved=5)
    rig.run()
    rig.check()
    rig.tell(1, [*changes_of(6, range(80, 90)), *changes_of(7, range(2))], resolved=7)
    rig.run()
    rig.check()
    assert len(rig.changes) == 3 + 90 + 2


def test_a_change_before_those_of_the_open_transaction_leaves_before_them(rig):
    """A rollback is found out after parts of its transaction were told."""
    rig.add(1)
    for first in range(1, 400, 20):
        rig.tell(1, changes_of(6, range(first, first + 20)))
        rig.run()
    rig.tell(1, [*changes_of(6, range(1)), *changes_of(6, range(500, 501)), *changes_of(7, range(3))], 7)
    rig.run()
    rig.check()
    assert rig.changes[0].key == bytes(8)


def test_a_transaction_larger_than_memory_leaves_in_pieces(make_rig, engine):
    if engine["engine"] != "memory":
        engine = {**engine, "block_changes": 100, "merge_bytes": 1 << 20}
    rig = make_rig(**engine)
    rig.add(1)
    for first in range(0, 3000, 50):
        rig.tell(1, changes_of(10, range(first, first + 50), size=4000), resolved=9)
        rig.run()
        if "memory_bytes" in engine:
            assert rig.sorter.statistics().memory_bytes <= engine["memory_bytes"] + 250_000
    rig.tell(1, changes_of(11, range(1)), resolved=11)
    rig.run()
    rig.check()
    assert len(rig.received) > 12
    assert max(sum(len(change.value) for change in message.changes) for message in rig.received) <= 1.1 * (
        1 << 20
    )


def test_several_ordered_tables_are_merged_and_a_plain_one_among_them(rig):
    rig.add(1, 2)
    rig.add(3)
    for ts in range(10, 400, 10):
        rig.tell(1, changes_of(ts, range(3)), resolved=ts)
        rig.tell(2, [*changes_of(ts, range(2)), *changes_of(ts + 1, range(4))], resolved=ts + 1)
        rig.tell(3, [put(ts + 5, "b"), put(ts + 3, "a"), put(ts + 5, "b")], resolved=ts + 5)
        if not ts % 70:
            rig.run()
            rig.check()
    rig.run()
    rig.check()


steps = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), st.lists(st.integers(1, 6), max_size=5), st.integers(0, 6)),
        st.tuples(st.just("roll back")),
        st.tuples(st.just("run"), st.integers(0, 40)),
        st.tuples(st.just("run")),
        st.tuples(st.just("acknowledge")),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(steps, engines, st.integers(0, 2**16))
def test_any_history_leaves_as_from_a_list(history, engine, seed):
    with TemporaryDirectory() as name, Rig(Path(name, "scratch"), SeededSystem(seed), **engine) as rig:
        play(rig, history)


def play(rig: Rig, history: list[tuple[Any, ...]]) -> None:
    """Tell whole transactions, and the begin of one more, which goes on with the next step or is ended."""
    rig.add(1)
    ts, numbers = 10, 0  # of the open transaction
    for step in history:
        match step:
            case ("tell", sizes, open_size):
                told: list[KvChange] = []
                for size in sizes:
                    told += changes_of(ts, range(numbers + 1, numbers + 1 + size))
                    ts, numbers = ts + 1 + size % 2, 0
                told += changes_of(ts, range(numbers + 1, numbers + 1 + open_size))
                numbers += open_size
                rig.tell(1, told, ts - 1)
            case ("roll back",):
                told = changes_of(ts, range(1)) if numbers else []
                told += changes_of(ts, range(numbers + 1, numbers + 2))
                ts, numbers = ts + 1, 0
                rig.tell(1, told, ts - 1)
            case ("run",):
                rig.run()
                rig.check()
            case ("run", turns):
                for _ in range(turns):
                    rig.system.step()
                rig.check_form()
            case ("acknowledge",):
                rig.sorter.acknowledge(rig.sorter.statistics().sent)
    rig.tell(1, resolved=ts)
    rig.run(5)
    rig.check()
    assert rig.sorter.statistics().memory_bytes == 0
