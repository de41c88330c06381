"""The parts that several threads share, step by step in the orders that matter."""

from __future__ import annotations

import pytest

from tidemill.sorter import gate
from tidemill.sorter.arrivals import Arrivals
from tidemill.sorter.gate import Gate
from tidemill.sorter.run import Place, Run, Table
from tidemill.sorter.tier import Tier

from .rig import put

TABLE = Table(1, 1, 0, 0, 0.0)
PLACE = Place("window", b"", b"", 1, 50)


def run(*commit_ts: int) -> Run:
    return Run(TABLE, [put(ts, "k") for ts in commit_ts], 100 * len(commit_ts), False)


class Writer:
    def __init__(self) -> None:
        self.sent_to: list[object] = []

    def send(self, target: object, _message: object) -> None:
        self.sent_to.append(target)


# --- the tier ----------------------------------------------------------------------------------------


def test_a_run_taken_on_its_way_to_disk_is_not_on_disk():
    tier = Tier(0)
    (leaving,) = tier.add([run(1, 2)])
    assert (tier.used_bytes, tier.leaving_bytes) == (200, 200)
    assert tier.take(leaving) is not None
    tier.stored(leaving, PLACE)
    assert leaving.place is None
    assert (tier.used_bytes, tier.leaving_bytes, tier.stored_bytes, tier.spilled_bytes) == (0, 0, 0, 0)


def test_a_stored_run_is_in_memory_no_more_until_it_is_read():
    tier = Tier(0)
    (leaving,) = tier.add([run(1, 2)])
    tier.stored(leaving, PLACE)
    assert tier.take(leaving) is None
    assert (tier.used_bytes, tier.leaving_bytes, tier.stored_bytes, tier.live_bytes("window")) == (
        0,
        0,
        200,
        50,
    )
    tier.read(leaving)
    assert (tier.stored_bytes, tier.live_bytes("window"), tier.runs_in("window")) == (0, 0, [])


def test_a_run_read_while_it_is_moved_stays_read():
    tier = Tier(0)
    (leaving,) = tier.add([run(1)])
    tier.stored(leaving, PLACE)
    tier.read(leaving)
    tier.moved(leaving, PLACE)
    assert tier.stored_bytes == 0


def test_runs_merged_on_their_way_to_disk_are_claimed_once():
    tier = Tier(400)
    runs = [run(1, 5), run(3, 4), run(2, 6)]
    assert tier.add(runs[:2]) == []
    (block,) = tier.add(runs[2:])
    assert [tier.take(one) for one in runs if one.heirs is not None] == [None] * sum(
        r.heirs is not None for r in runs
    )
    claimed = [tier.heirs(one) for one in runs if one.heirs is not None]
    assert [heir for heirs in claimed for heir in heirs] == [block]


def test_the_newest_runs_leave_first():
    tier = Tier(1000)
    runs = [run(ts) for ts in range(1, 12)]
    for one in runs[:10]:
        assert tier.add([one]) == []
    (block,) = tier.add([runs[10]])
    assert block.first.commit_ts > 5
    assert tier.take(runs[0]) is not None


def test_a_removed_tables_runs_free_their_memory_wherever_they_are():
    tier = Tier(300)
    held, one, other = run(1), run(2, 3), run(4, 5)
    tier.add([held])
    (leaving,) = tier.add([one])[-1:] or tier.add([other])
    tier.stored(leaving, PLACE)
    for gone in (held, one, other):
        tier.forget(gone)
    assert (tier.used_bytes, tier.leaving_bytes, tier.stored_bytes) == (0, 0, 0)


# --- arrivals ----------------------------------------------------------------------------------------


def test_only_the_first_of_many_wakes_the_merger():
    arrivals = Arrivals()
    tables = [Table(n, n, 0, 0, 0.0) for n in range(3)]
    assert [arrivals.post(table, [], 5, 0.0) for table in tables] == [True, False, False]
    assert arrivals.collect() == ([], dict.fromkeys(tables, 5))
    assert arrivals.rest()
    assert arrivals.post(tables[0], [], 6, 0.0)


def test_what_comes_while_the_merger_works_keeps_it_from_resting():
    arrivals = Arrivals()
    table = Table(1, 1, 0, 0, 0.0)
    assert arrivals.post(table, [], 5, 0.0)
    arrivals.collect()
    assert not arrivals.post(table, [run(6)], 7, 0.0)
    assert not arrivals.rest()
    arrivals.collect()
    assert arrivals.rest()


def test_changes_without_a_resolved_ts_wake_nobody():
    arrivals = Arrivals()
    assert not arrivals.post(Table(1, 1, 0, 0, 0.0), [run(6)], 0, 0.0)
    assert arrivals.rest()
    assert len(arrivals.collect()[0]) == 1


# --- the gate ----------------------------------------------------------------------------------------


@pytest.fixture
def arrivals(monkeypatch) -> Arrivals:
    monkeypatch.setattr(gate, "READY_BYTES", 1000)
    arrivals = Arrivals()
    arrivals.busy = True
    return arrivals


def test_a_gate_shut_for_no_reason_opens_at_once(arrivals):
    """As when the Merger finished between a Writer's look and its shutting the gate."""
    shut = Gate(Tier(None), arrivals)
    writer = Writer()
    shut.hold(writer)
    assert writer.sent_to == []
    assert shut.offer(None)


def test_a_gate_stays_shut_until_its_reason_is_gone(arrivals):
    tier = Tier(None)
    shut = Gate(tier, arrivals)
    ready = Run(TABLE, [put(1, "k")], 2000, True)
    tier.add([ready])
    writer = Writer()
    shut.hold(writer)
    assert writer.sent_to == [shut]
    assert not shut.offer(None)
    shut.open_if_possible()
    assert not shut.offer(None)
    tier.take(ready)
    shut.open_if_possible()
    assert shut.offer(None)


def test_a_closed_gate_holds_nobody(arrivals):
    tier = Tier(None)
    tier.add([Run(TABLE, [put(1, "k")], 2000, True)])
    closed = Gate(tier, arrivals)
    closed.close()
    closed.hold(Writer())
    assert closed.is_closed
    assert not closed.offer(None)  # an actor that sends to a closed mailbox goes on
