"""A sorter that has enough slows its sources, and what it waits for can always come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tidemill.actors import ActorSystem, MailboxFull, SeededSystem
from tidemill.actors.mailbox import Mailbox
from tidemill.codec.blocks import NOTHING, block_of
from tidemill.events import Changes, Sorted
from tidemill.sorter import EventSorter, SorterOptions, open_sorter
from tidemill.sorter import admission as gate

from .rig import ENGINES, Rig, put

DATABASES = {name: options for name, options in ENGINES.items() if name != "memory"}


class Basin(Mailbox):
    """Downstream of the sorter: full until the test takes something."""

    def __init__(self) -> None:
        super().__init__(1, "basin")

    @property
    def actor_inbox(self) -> Basin:
        return self

    def schedule(self) -> None:
        pass

    def drain(self, system: SeededSystem) -> list[Sorted]:
        """Everything that comes."""
        received = []
        system.run()
        while taken := self.take(1):
            received += taken
            system.run()
        return received


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    monkeypatch.setattr(gate, "READY_BYTES", 20_000)
    monkeypatch.setattr(gate, "LEAVING_BYTES", 20_000)


@pytest.fixture(params=[1, 2, 3])
def system(request) -> Iterator[SeededSystem]:
    system = SeededSystem(request.param)
    yield system
    system.stop(timeout=0.0)


@pytest.fixture
def basin() -> Basin:
    return Basin()


@pytest.fixture(params=DATABASES)
def sorter(request, system, basin, tmp_path) -> Iterator[EventSorter]:
    sorter = open_sorter(SorterOptions(directory=tmp_path, **DATABASES[request.param]), system, basin)
    yield sorter
    sorter.close()


def fill(system: SeededSystem, writer: Any, resolve: bool, most: int = 1000, begin: int = 1) -> int:
    """Tell changes of 500 bytes, one at each ts, until the Writer takes no more; returns the last ts."""
    for ts in range(begin, most):
        try:
            writer.try_tell(Changes(block_of([put(ts, "k", bytes(500))]), ts if resolve else 0))
        except MailboxFull:
            return ts - 1
        system.run()
    return most


def test_what_is_ready_to_leave_stays_with_its_source_while_downstream_is_full(system, sorter, basin):
    last = fill(system, sorter.add_table(1), resolve=True)
    assert last < 300
    statistics = sorter.statistics()
    assert statistics.memory_bytes + sorter._tier.stored_bytes < 60_000
    received = basin.drain(system)
    assert [change.commit_ts for message in received for change in message.changes] == list(
        range(1, last + 1)
    )


def test_while_downstream_is_stuck_more_is_taken_up_to_a_bound(system, basin, tmp_path):
    options = SorterOptions(directory=tmp_path, memory_bytes=50_000, ahead_bytes=200_000)
    sorter = open_sorter(options, system, basin)
    writer = sorter.add_table(1)
    first = fill(system, writer, resolve=True)
    system.run(gate.STUCK_SECONDS)
    last = fill(system, writer, resolve=True, begin=first + 1)
    assert first + 100 < last < 700
    statistics = sorter.statistics()
    assert statistics.spilled_bytes > 0
    assert 200_000 < statistics.memory_bytes + sorter._tier.stored_bytes < 260_000
    system.run(10 * gate.STUCK_SECONDS)
    assert fill(system, writer, resolve=True, begin=last + 1) == last
    received = basin.drain(system)
    assert [change.commit_ts for message in received for change in message.changes] == list(
        range(1, last + 1)
    )
    sorter.close()


def test_what_is_not_resolved_is_taken_however_much_it_is(system, sorter, basin):
    """Else the resolved ts that lets it leave could never come."""
    writer = sorter.add_table(1)
    assert fill(system, writer, resolve=False) == 1000
    writer.tell(Changes(NOTHING, 1000))
    received = basin.drain(system)
    assert sum(len(message.changes) for message in received) == 999


def test_a_table_that_is_behind_is_let_in_while_the_others_wait_for_it(system, sorter, basin):
    ahead, behind = sorter.add_table(1), sorter.add_table(2)
    assert fill(system, ahead, resolve=True) == 1000
    behind.tell(Changes(block_of([put(500, "x")]), 999))
    received = basin.drain(system)
    assert sum(len(message.changes) for message in received) == 1000


def test_explain_names_who_waits_on_what_since_when(system, sorter, basin):
    writer = sorter.add_table(1)
    system.clock.advance(7)
    fill(system, writer, resolve=True)
    system.clock.advance(5)
    waits = {wait.stage: wait for wait in sorter.explain()}
    assert (waits[sorter._merger.name].on, waits[sorter._merger.name].seconds) == ("basin", 5)
    assert (waits[writer.name].kind, waits[writer.name].seconds) == ("memory", 5)
    basin.drain(system)
    assert sorter.explain() == []


def test_explain_names_the_table_that_holds_the_others_back(system, sorter, basin):
    ahead, behind = sorter.add_table(1), sorter.add_table(2)
    system.clock.advance(7)
    behind.tell(Changes(NOTHING, 3))
    system.run()
    system.clock.advance(2)
    ahead.tell(Changes(block_of([put(5, "a")]), 9))
    basin.drain(system)
    (wait,) = sorter.explain()
    assert (wait.kind, wait.table_id, wait.ts, wait.seconds) == ("table", 2, 3, 2)


def test_closing_does_not_wait_for_those_who_wait(system, sorter, basin):
    fill(system, sorter.add_table(1), resolve=True)
    sorter.close()
    sorter.close()


@pytest.mark.parametrize("database", DATABASES)
def test_sources_on_real_threads_get_through_small_mailboxes(tmp_path, database):
    tables = range(4)
    with (
        ActorSystem("test", workers=3) as system,
        Rig(tmp_path, system, capacity=1, **DATABASES[database]) as rig,
    ):
        rig.add(*tables)
        for step in range(1, 60):
            for table in tables:
                changes = [put(step * 100 + n, f"{table}", bytes(50)) for n in range(0, 50, table + 1)]
                rig.tell(table, changes, step * 100 + 60 if step % 3 else 0)
        for writer in rig.writers.values():
            writer.tell(Changes(NOTHING, 100_000))
        is_done, looked_at = False, 0
        while not is_done:
            assert not rig.failures
            rig.downstream.ask(Sorted([], 0))  # which is received, too
            received = len(rig.received)
            is_done = any(message.resolved >= 100_000 for message in rig.received[looked_at:received])
            looked_at = received
        rig.resolved = dict.fromkeys(tables, 100_000)
        rig.received[:] = [message for message in rig.received if message.resolved]
        rig.check()
