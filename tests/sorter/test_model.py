"""Any history gives what a sorted list gives, whatever the engine, its quotas and the interleaving."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.actors import SeededSystem
from tidemill.events import DELETE, PUT, KvChange

from .rig import Rig

TABLES = (1, 2, 3)
slots = st.integers(0, len(TABLES) - 1)

changes = st.lists(
    st.tuples(
        st.integers(1, 12),  # commit ts above the table's resolved ts
        st.integers(0, 2),  # start ts
        st.sampled_from((DELETE, PUT)),
        st.binary(max_size=2),
    ),
    max_size=12,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), slots, changes, st.integers(0, 8)),
        st.tuples(st.just("large"), slots, st.integers(1, 12), st.integers(1, 120)),
        st.tuples(st.just("run"), st.integers(0, 40)),
        st.tuples(
            st.just("advance"), st.lists(st.integers(0, 8), min_size=len(TABLES), max_size=len(TABLES))
        ),
        st.tuples(st.just("run")),
        st.tuples(st.just("acknowledge")),
        st.tuples(st.just("replace"), slots),
    ),
    max_size=40,
)
databases = st.fixed_dictionaries(
    {
        "memory_bytes": st.sampled_from((0, 3000, 12000, 1 << 20)),
        "layout": st.sampled_from(("block", "block", "event")),
        "block_changes": st.sampled_from((1, 3, 1000)),
        "block_bytes": st.sampled_from((1, 2000, 1 << 20)),
        "merge_bytes": st.sampled_from((1, 2000, 1 << 20)),
        "stores": st.just(1),
    }
)
files = st.fixed_dictionaries(
    {
        "engine": st.just("unified"),
        "memory_bytes": st.sampled_from((0, 3000, 12000, 1 << 20)),
        "block_changes": st.sampled_from((1, 3, 1000)),
        "merge_bytes": st.sampled_from((1, 2000, 1 << 20)),
    }
)
engines = st.one_of(st.just({"engine": "memory"}), files, databases, databases)


def play(rig: Rig, history: list[tuple[Any, ...]]) -> None:
    tables = list(TABLES)
    fresh = count(100)
    rig.add(*tables, resolved=10)
    for step in history:
        match step:
            case ("tell", slot, drawn, advance):
                resolved = rig.resolved[tables[slot]]
                told = [change(resolved + above, earlier, op, key) for above, earlier, op, key in drawn]
                rig.tell(tables[slot], told, resolved + advance if advance else 0)
            case ("large", slot, above, size):
                ts = rig.resolved[tables[slot]] + above
                rig.tell(tables[slot], [change(ts, 0, PUT, b"%d" % n) for n in range(size)])
            case ("advance", by):
                rig.advance(**{f"_{t}": rig.resolved[t] + more for t, more in zip(tables, by, strict=True)})
            case ("run",):
                rig.run()
                rig.check()
            case ("run", turns):
                for _ in range(turns):
                    rig.system.step()
                rig.check_form()
            case ("acknowledge",):
                rig.sorter.acknowledge(rig.sorter.statistics().sent)
            case ("replace", slot):
                rig.remove(tables[slot])
                tables[slot] = next(fresh)
                rig.add(tables[slot], resolved=min(rig.resolved.values()))
    for table in tables:
        rig.tell(table, resolved=max(rig.resolved.values()) + 100)
    rig.run(5)
    rig.check()
    assert rig.sorter.statistics().memory_bytes == 0


def change(commit_ts: int, earlier: int, op: int, key: bytes) -> KvChange:
    """With a value of up to 300 bytes that follows from the rest, so that a repeated change is the same."""
    return KvChange(commit_ts, commit_ts - earlier, op, key, bytes((commit_ts * 37 + len(key)) % 300))


@settings(max_examples=150, deadline=None)
@given(steps, engines, st.integers(0, 2**16))
def test_any_history_leaves_as_from_a_sorted_list(history, engine, seed):
    check(history, engine, seed)


@pytest.mark.soak
@settings(max_examples=10_000, deadline=None)
@given(steps, engines, st.integers(0, 2**16))
def test_any_of_many_histories_leaves_as_from_a_sorted_list(history, engine, seed):
    check(history, engine, seed)


def check(history: list[tuple[Any, ...]], engine: dict[str, Any], seed: int) -> None:
    with TemporaryDirectory() as name, Rig(Path(name, "scratch"), SeededSystem(seed), **engine) as rig:
        play(rig, history)
