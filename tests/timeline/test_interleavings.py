"""The orders that barriers and queue promise, with real threads, under many seeded interleavings."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

from tidemill.timeline import (
    Entry,
    GroupOptions,
    TimelineBarrier,
    TimelineTransactionBarrier,
    open_group,
)

from ..actors.explorer import Explorer, explore
from .histories import AFTER_ALL, Given, assert_merged, assert_repeated_only, history

SEEDS = int(os.environ.get("TIDEMILL_EXPLORER_SEEDS", "12"))
KINDS = pytest.mark.parametrize("merge", ["barrier", "queue"])
MODES = pytest.mark.parametrize("transactions", [True, False], ids=["transactions", "events"])
BARRIERS = pytest.mark.parametrize("barrier", [TimelineBarrier, TimelineTransactionBarrier])


def all_of(explorer: Explorer, bodies: list[Callable[[], object]]) -> None:
    for thread in [explorer.thread(body) for body in bodies]:
        thread.join()


def merged(explorer: Explorer, merge: str, transactions: bool) -> None:
    """Send histories of two or three sources, some with regressions."""
    random = Random(explorer.random.random())
    sent = history(random, random.choice(["ab", "abc"]), 5, regressions=random.random() < 0.5)
    given: Given = []

    def consume(entries) -> int:
        for one in entries:
            explorer.pause()
            given.append(one)
        return len(entries)

    options = GroupOptions(merge=merge, transactions=transactions, max_waiting=2)
    group = open_group(list(sent), consume, options, lambda: explorer.seconds)

    def send(name: str) -> None:
        entries = sent[name]
        while entries:
            count = random.randint(1, 3)
            assert group.sink(name, entries[:count])
            entries = entries[count:]
        assert group.advance(name, AFTER_ALL)

    all_of(explorer, [lambda name=name: send(name) for name in sent])
    assert_merged(sent, given, transactions=transactions)
    assert not group.silent()


def interrupted(explorer: Explorer, transactions: bool) -> None:
    """Interrupt sources at any time, who then go on, in a transaction from its beginning."""
    random = Random(explorer.random.random())
    sent = history(random, "abc", 4, regressions=random.random() < 0.5)
    given: Given = []
    done: set[str] = set()
    refusals = 3

    def consume(entries) -> int:
        nonlocal refusals
        explorer.pause()
        if refusals and random.random() < 0.2:
            refusals -= 1
            return 0
        given.extend(entries)
        return 1

    options = GroupOptions(merge="barrier", transactions=transactions)
    group = open_group(list(sent), consume, options, lambda: explorer.seconds)

    def send(name: str) -> None:
        entries, at = sent[name], 0
        while at < len(entries):
            if group.sink(name, [entries[at]]):
                at += 1
                continue
            group.interrupt(name)
            group.resume(name)
            while transactions and at and entries[at].part in ("rows", "end"):
                at -= 1
        done.add(name)
        while done != set(sent):
            if not group.advance(name, AFTER_ALL):
                group.resume(name)
        for other in sent:  # those that wait for this one
            group.interrupt(other)

    def disturb() -> None:
        for _ in range(4):
            explorer.pause()
            group.interrupt(random.choice("abc"))

    all_of(explorer, [disturb, *[lambda name=name: send(name) for name in sent]])
    assert_repeated_only(sent, given, transactions=transactions)


@MODES
@KINDS
def test_entries_come_by_time_also_where_a_source_goes_back(merge: str, transactions: bool) -> None:
    explore(lambda explorer: merged(explorer, merge, transactions), SEEDS)


@MODES
def test_an_interrupted_source_goes_on_and_holds_nobody(transactions: bool) -> None:
    explore(lambda explorer: interrupted(explorer, transactions), SEEDS)


@BARRIERS
def test_a_source_that_sends_nothing_is_passed_once_it_is_idle(barrier: type[TimelineBarrier]) -> None:
    def scenario(explorer: Explorer) -> None:
        passed: list[tuple[float, str, int]] = []
        merge = barrier(["a", "b", "silent"], now=lambda: explorer.seconds, idle_seconds=10.0)

        def send(name: str) -> None:
            for ts in (1, 2, 3):
                entry = Entry(ts, "whole")
                merge.wait(name, entry)
                passed.append((explorer.seconds, name, ts))
                merge.clear(name, entry)
            merge.wait(name, Entry(AFTER_ALL))
            merge.clear(name, Entry(AFTER_ALL))

        all_of(explorer, [lambda: send("a"), lambda: send("b")])
        assert len(passed) == 6
        assert all(seconds >= 10.0 for seconds, _, _ in passed)
        assert not merge.regressions or explorer.seconds >= 20.0  # then another one was idle for a while
        late = merge.regressions
        merge.wait("silent", Entry(2), timeout=20.0)  # a and b are idle by then
        assert merge.regressions == late + 1

    explore(scenario, SEEDS)


@BARRIERS
def test_a_source_that_ends_while_its_entry_is_consumed_becomes_idle(barrier: type[TimelineBarrier]) -> None:
    def scenario(explorer: Explorer) -> None:
        merge = barrier(["a", "b"], now=lambda: explorer.seconds, idle_seconds=10.0)

        def send(name: str, *times: int) -> None:
            for ts in times:
                merge.wait(name, Entry(ts))
                for _ in range(9):
                    explorer.pause()
                merge.clear(name, Entry(ts))

        all_of(explorer, [lambda: send("a", 2), lambda: send("b", 1)])
        assert explorer.seconds >= 10.0

    explore(scenario, SEEDS)


@BARRIERS
def test_a_timed_wait_ends_and_takes_its_entry_back(barrier: type[TimelineBarrier]) -> None:
    def scenario(explorer: Explorer) -> None:
        merge = barrier(["a", "b"], now=lambda: explorer.seconds)
        passed: list[str] = []
        with pytest.raises(TimeoutError):
            merge.wait("a", Entry(1), timeout=5.0)
        assert explorer.seconds == 5.0
        with pytest.raises(TimeoutError):  # a isn't there any more
            merge.wait("b", Entry(2), timeout=5.0)

        def send(name: str, *times: int) -> None:
            for ts in times:
                merge.wait(name, Entry(ts))
                passed.append(name)
                merge.clear(name, Entry(ts))

        all_of(explorer, [lambda: send("a", 1, AFTER_ALL), lambda: send("b", 2, AFTER_ALL)])
        assert passed[:2] == ["a", "b"]

    explore(scenario, SEEDS)


@pytest.mark.soak
@MODES
@KINDS
def test_no_wake_up_is_lost_in_ten_thousand_schedules(merge: str, transactions: bool) -> None:
    explore(lambda explorer: merged(explorer, merge, transactions), 2_500)
