"""The pace at which an idle feed of many advances, and at which it does when changes come."""

from __future__ import annotations

import pytest

from tidemill.actors import ActorSystem, ManualClock, PooledActor
from tidemill.puller.tikv.feed.advance import ACTIVE_SECONDS, Advancer, DirtySet, Noted, Pending
from tidemill.puller.tikv.feed.options import FeedOptions
from tidemill.testing.progress import eventually


class Worker(PooledActor):
    """A region worker that has always received resolved ts."""

    def __init__(self, dirty, ticks):
        self._dirty, self._ticks = dirty, ticks

    def on_receive(self, message):
        self._ticks.append(message)
        self._dirty.reader.tell(Noted(self.actor_ref))
        self._dirty.reader.tell(Pending(self.actor_ref))


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def ticks():
    return []


@pytest.fixture
def advancer(clock, ticks):
    """Returns a function of the number of feeds that starts an Advancer."""
    systems = []

    def start(feeds):
        system = ActorSystem(workers=1, clock=clock)
        systems.append(system)
        dirty = DirtySet()
        dirty.reader = system.spawn(Advancer, dirty, FeedOptions(), None, lambda: feeds)
        dirty.reader.tell(Pending(system.spawn(Worker, dirty, ticks)))
        return dirty

    yield start
    for system in systems:
        system.stop()


def pause_of(dirty):
    return dirty.reader.actor_inbox.actor.pause


def round_after(clock, dirty, ticks, seconds):
    """Let time pass, and wait for the one round that it brings."""
    before = len(ticks)
    eventually(lambda: dirty.reader.actor_inbox.actor._timer is not None)
    clock.advance(seconds)
    eventually(lambda: len(ticks) == before + 1)
    eventually(lambda: dirty.reader.actor_inbox.actor._timer is not None)


def test_an_idle_feed_of_many_advances_less_often_until_changes_come(clock, advancer, ticks):
    dirty = advancer(100)
    round_after(clock, dirty, ticks, 0.05)
    assert pause_of(dirty) == 0.05
    round_after(clock, dirty, ticks, ACTIVE_SECONDS + 1)
    assert pause_of(dirty) == 1.0
    clock.advance(0.5)
    assert len(ticks) == 2
    dirty.note_changes()
    eventually(lambda: len(ticks) == 3)  # the shorter pause is over already
    eventually(lambda: pause_of(dirty) == 0.05)


@pytest.mark.parametrize(("feeds", "pause"), [(1, 0.05), (5, 0.05), (50, 0.5), (1_000, 2.0)])
def test_the_pause_grows_with_the_number_of_feeds_up_to_a_limit(clock, advancer, ticks, feeds, pause):
    dirty = advancer(feeds)
    round_after(clock, dirty, ticks, ACTIVE_SECONDS + 1)
    assert pause_of(dirty) == pytest.approx(pause)
