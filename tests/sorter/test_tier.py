"""The parts that several threads share, step by step in the orders that matter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidemill.actors import ManualClock, SeededSystem
from tidemill.actors.mailbox import Mailbox
from tidemill.codec.blocks import NOTHING, block_of, merge
from tidemill.errors import Fatal
from tidemill.events import Changes
from tidemill.sorter import admission as gate
from tidemill.sorter.admission import AdmissionControl
from tidemill.sorter.arrivals import Arrivals, New
from tidemill.sorter.keyspace import SortKeyspace
from tidemill.sorter.run import BlockLocation, SortRun
from tidemill.sorter.tier import Tier
from tidemill.sorter.writer import Writer

from .rig import put

TABLE = SortKeyspace(1, 1, 0)
PLACE = BlockLocation("window", b"", b"", 1, 50)


def run(*commit_ts: int, tables: tuple[SortKeyspace, ...] = (TABLE,)) -> SortRun:
    """Of 100 bytes a change; the changes are of the tables in turn."""
    blocks = [
        block_of(put(ts, "k", bytes(51)) for ts in commit_ts[n :: len(tables)]) for n in range(len(tables))
    ]
    return SortRun(tables, merge(blocks, [table.uid for table in tables]))


# --- the tier ----------------------------------------------------------------------------------------


def test_a_run_on_its_way_to_disk_is_not_taken():
    tier = Tier(0)
    (flushing,) = tier.add([run(1, 2)])
    assert tier.take(flushing) is None
    assert (tier.used_bytes, tier.flushing_bytes) == (200, 200)
    tier.stored(flushing, PLACE)
    assert (flushing.place, tier.used_bytes, tier.flushing_bytes) == (PLACE, 0, 0)


def test_a_run_whose_table_is_removed_on_its_way_to_disk_is_forgotten_there():
    table = SortKeyspace(2, 2, 0)
    tier = Tier(0)
    (flushing,) = tier.add([run(1, 2, tables=(table,))])
    table.removed = True
    assert tier.forget_removed(flushing)
    tier.stored(flushing, PLACE)
    assert (tier.used_bytes, tier.flushing_bytes, tier.stored_bytes, tier.live_bytes("window")) == (
        0,
        0,
        0,
        0,
    )


def test_a_stored_run_is_in_memory_no_more_until_it_is_read():
    tier = Tier(0)
    (flushing,) = tier.add([run(1, 2)])
    tier.stored(flushing, PLACE)
    assert tier.take(flushing) is None
    assert (tier.used_bytes, tier.flushing_bytes, tier.stored_bytes, tier.live_bytes("window")) == (
        0,
        0,
        200,
        50,
    )
    tier.read(flushing)
    assert (tier.stored_bytes, tier.live_bytes("window"), tier.runs_in("window")) == (0, 0, [])


def test_a_run_read_while_it_is_moved_stays_read():
    tier = Tier(0)
    (flushing,) = tier.add([run(1)])
    tier.stored(flushing, PLACE)
    tier.read(flushing)
    tier.moved(flushing, PLACE)
    assert tier.stored_bytes == 0


def test_runs_merged_on_their_way_to_disk_are_claimed_once():
    tier = Tier(400)
    runs = [run(1, 5), run(3, 4), run(2, 6)]
    assert tier.add(runs[:2]) == []
    (block,) = tier.add(runs[2:])
    assert [tier.take(one) for one in runs if one.replacements is not None] == [None] * sum(
        r.replacements is not None for r in runs
    )
    claimed = [tier.replacements(one) for one in runs if one.replacements is not None]
    assert [replacement for replacements in claimed for replacement in replacements] == [block]


def test_the_newest_runs_leave_first():
    tier = Tier(1000)
    runs = [run(ts) for ts in range(1, 12)]
    for one in runs[:10]:
        assert tier.add([one]) == []
    (block,) = tier.add([runs[10]])
    assert block.first[0] > 5
    assert tier.take(runs[0]) is not None


def test_a_removed_tables_runs_free_their_memory_wherever_they_are():
    table = SortKeyspace(2, 2, 0)
    tier = Tier(300)
    held, one, other = (run(*ts, tables=(table,)) for ts in ((1,), (2, 3), (4, 5)))
    tier.add([held])
    (flushing,) = tier.add([one])[-1:] or tier.add([other])
    tier.stored(flushing, PLACE)
    table.removed = True
    assert [tier.forget_removed(gone) for gone in (held, one, other)] == [True] * 3
    assert (tier.used_bytes, tier.flushing_bytes, tier.stored_bytes) == (0, 0, 0)


def test_of_a_run_of_several_tables_only_the_removed_ones_go():
    tables = SortKeyspace(2, 2, 0), SortKeyspace(3, 3, 0)
    tier = Tier(None)
    shared = run(5, 6, 7, 8, tables=tables)
    tier.add([shared])
    tables[0].removed = True
    assert not tier.forget_removed(shared)
    assert tier.used_bytes == 200
    left = tier.take(shared)
    assert ([change.commit_ts for change in left], left.keyspaces()) == ([6, 8], {3})
    assert tier.used_bytes == 0


def test_runs_that_follow_each_other_go_to_disk_as_they_are_and_those_of_a_scan_are_merged():
    tier = Tier(0)
    for ts in range(100, 2000, 100):
        one = run(ts, ts + 5)
        assert tier.add([one]) == [one]
    scanned = [run(3, 1500), run(4, 1600)]
    (merged,) = tier.add(scanned)
    assert [change.commit_ts for change in merged.block] == [3, 4, 1500, 1600]


def test_a_transaction_goes_to_disk_in_blocks_since_it_may_be_large():
    tier = Tier(0, block_changes=2)
    large = SortRun((TABLE,), block_of(put(9, key) for key in "cab"))
    assert [one.count for one in tier.add([run(9), large])] == [2, 2]


# --- arrivals ----------------------------------------------------------------------------------------


def test_only_the_first_of_many_wakes_the_merger():
    arrivals = Arrivals()
    assert [arrivals.post([], {uid: 5}) for uid in range(3)] == [True, False, False]
    assert arrivals.collect() == New([], {}, dict.fromkeys(range(3), 5), [])
    assert arrivals.rest()
    assert arrivals.post([], {0: 6})


def test_what_comes_while_the_merger_works_keeps_it_from_resting():
    arrivals = Arrivals()
    assert arrivals.post([], {1: 5})
    arrivals.collect()
    assert not arrivals.post([run(6)], {1: 7})
    assert not arrivals.rest()
    arrivals.collect()
    assert arrivals.rest()
    for come in (lambda: arrivals.add(TABLE, 5), lambda: arrivals.remove(SortKeyspace(2, 2, 0))):
        assert come()
        assert not arrivals.rest()
        arrivals.collect()
        assert arrivals.rest()


def test_changes_without_a_resolved_ts_wake_nobody():
    arrivals = Arrivals()
    assert not arrivals.post([run(6)], {})
    assert arrivals.rest()
    assert len(arrivals.collect().runs) == 1


# --- the gate ----------------------------------------------------------------------------------------


@pytest.fixture
def arrivals(monkeypatch) -> Arrivals:
    monkeypatch.setattr(gate, "READY_BYTES", 1000)
    arrivals = Arrivals()
    arrivals.busy = True
    return arrivals


@pytest.fixture
def system() -> Iterator[SeededSystem]:
    system = SeededSystem(1)
    yield system
    system.stop(timeout=0.0)


class Intake(Mailbox):
    """Counts how often it is woken."""

    def __init__(self) -> None:
        super().__init__(99, "intake")

    def schedule(self) -> None:
        pass


def gate_of(tier: Tier, arrivals: Arrivals) -> AdmissionControl:
    made = AdmissionControl(tier, arrivals, ManualClock())
    made.intake = Intake()
    return made


def of_2000_bytes() -> SortRun:
    return SortRun((TABLE,), block_of([put(1, "k", bytes(1951))]))


def test_a_gate_is_not_shut_without_a_reason(arrivals):
    shut = gate_of(Tier(1 << 20), arrivals)
    assert not shut.shut_if_needed()
    assert shut.shut_since is None


def test_a_gate_stays_shut_until_its_reason_is_gone(arrivals):
    tier = Tier(1 << 20)
    shut = gate_of(tier, arrivals)
    ready = of_2000_bytes()
    tier.add([ready])
    assert shut.shut_if_needed()
    shut.open_if_possible()
    assert shut.shut_since == 0.0
    assert shut.intake.messages == []
    tier.take(ready)
    shut.open_if_possible()
    assert shut.shut_since is None
    assert len(shut.intake.messages) == 1


def test_what_comes_to_a_closed_gate_is_dropped_and_nobody_waits(arrivals, system):
    closed = gate_of(Tier(1 << 20), arrivals)
    writer = Writer(TABLE, closed, system).ref()
    answer = writer.ask(Changes(NOTHING), block=False)
    closed.close()
    with pytest.raises(Fatal, match="dropped"):
        answer.get(timeout=0)
    for _ in range(200):
        writer.tell(Changes(block_of([put(1, "k")])))
    assert writer.actor_inbox.messages == []


def test_only_the_first_writer_wakes_the_intake_and_none_is_forgotten(arrivals, system):
    gate = gate_of(Tier(None), arrivals)
    writers = [Writer(TABLE, gate, system).ref() for _ in range(3)]
    for writer in writers:
        writer.tell(Changes(NOTHING))
    assert len(gate.intake.messages) == 1
    assert not gate.rest()
    gate.writers.clear()
    assert gate.rest()
    gate.advance({1: 5})
    assert len(gate.intake.messages) == 2
    assert not gate.rest()
    assert gate.advanced() == {1: 5}


def test_a_writer_gives_a_fair_share_and_arrives_again_behind_the_others(arrivals, system):
    gate = gate_of(Tier(None), arrivals)
    one, other = (Writer(TABLE, gate, system) for _ in range(2))
    for size in (1000, 1, 1, 100):
        one.ref().tell(Changes(block_of(put(n, "k") for n in range(1, size + 1))))
    other.ref().tell(Changes(NOTHING))
    shares = []
    while gate.writers:
        writer = gate.writers.popleft()
        shares.append((writer is one, [len(message.changes) for message in writer.drain()]))
    assert shares == [(True, [1000]), (False, [0]), (True, [1, 1]), (True, [100])]
