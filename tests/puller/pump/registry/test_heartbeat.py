"""The threads of a drainer: heartbeats, and the list of pumps."""

from __future__ import annotations

from itertools import count

import pytest

from tidemill.actors import ManualClock, SystemClock
from tidemill.errors import Retryable, SourceError
from tidemill.puller.pump.registry import heartbeat
from tidemill.puller.pump.registry.heartbeat import FAILURES, Heartbeat
from tidemill.puller.pump.registry.location import open_registry
from tidemill.puller.pump.registry.node import DRAINERS, PUMPS, NodeStatus, decode, encode, key
from tidemill.puller.pump.registry.pump_watch import PumpWatch
from tidemill.puller.pump.registry.registration import NodeInUse, Registration
from tidemill.testing.progress import eventually

from .outcomes import Outcome, Waited

KEY = key(DRAINERS, "d1")


def stored(registry):
    return decode(KEY, registry.get(KEY).value)


def claimed(registration):
    """Claim the record, as a feed does it again after Retryable; False if that has to be repeated."""
    try:
        registration.claim(Waited())
    except Retryable:
        return False
    return True


class Running:
    """A claimed record with heartbeats."""

    def __init__(self, registry, clock, interval_seconds=1.0):
        registration = Registration(registry, "d1", "h1:8249", count(1).__next__)
        eventually(lambda: claimed(registration))
        self.lost = Outcome()
        self.heartbeat = Heartbeat(registration, clock, lambda: 7, self.lost, interval_seconds)
        self.heartbeat.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.heartbeat.stop()


def after(clock, seconds, condition):
    """Let time pass in steps of `seconds` until the condition is true."""

    def look():
        clock.advance(seconds)
        return condition()

    return eventually(look)


def test_a_heartbeat_comes_each_second(open_one):
    registry, clock = open_one(), ManualClock()
    with Running(open_one(), clock):
        first = eventually(lambda: stored(registry).max_commit_ts and stored(registry))
        clock.advance(0.9)
        assert stored(registry) == first
        after(clock, 0.1, lambda: stored(registry).update_ts > first.update_ts)
    assert stored(registry).state == "paused"


def test_a_change_of_state_is_written_at_once_and_only_from_online(open_one):
    registry = open_one()
    with Running(open_one(), ManualClock()) as running:
        assert running.heartbeat.change("closing") is None
        eventually(lambda: stored(registry).state == "closing")
        assert running.heartbeat.change("pausing") == "closing"
    assert stored(registry).state == "offline"


def test_stopping_twice_writes_once(open_one):
    registry = open_one()
    with Running(open_one(), ManualClock()) as running:
        running.heartbeat.stop()
        revision = registry.get(KEY).revision
    assert registry.get(KEY).revision == revision


@pytest.fixture
def patient(monkeypatch):
    """Heartbeats never give up: a busy machine may take longer to start an etcd than 20 of them."""
    monkeypatch.setattr(heartbeat, "FAILURES", 10_000)


def test_heartbeats_go_on_after_etcd_was_killed_and_restarted(private_etcd, patient):
    url = f"binlog://{private_etcd.address}"
    with Running(open_registry(url, timeout_seconds=5.0), SystemClock(), 0.1) as running:
        private_etcd.kill()
        eventually(lambda: running.heartbeat.failures >= 2)
        private_etcd.start()
        eventually(lambda: running.heartbeat.failures == 0)
        assert not running.lost.came
    registry = open_registry(url)
    assert stored(registry).state == "paused"
    registry.close()


def test_heartbeats_go_on_after_etcd_was_paused(private_etcd, patient):
    url = f"binlog://{private_etcd.address}"
    with Running(open_registry(url, timeout_seconds=5.0), SystemClock(), 0.1) as running:
        private_etcd.pause()
        eventually(lambda: running.heartbeat.failures >= 2)
        private_etcd.resume()
        eventually(lambda: running.heartbeat.failures == 0)
        assert not running.lost.came


def test_twenty_failures_in_a_row_end_the_drainer(private_etcd):
    url = f"binlog://{private_etcd.address}"
    with Running(open_registry(url, timeout_seconds=5.0), SystemClock(), 0.01) as running:
        private_etcd.kill()
        error = running.lost.get()
    assert isinstance(error, SourceError)
    assert str(error).startswith(f"{FAILURES} heartbeats in a row have failed, the last one: etcd at ")


def test_a_drainer_whose_record_was_taken_ends_at_its_next_heartbeat(open_one):
    clock = ManualClock()
    with Running(open_one(), clock) as running:
        eventually(lambda: stored(registry).max_commit_ts == 7 if (registry := open_one()) else None)
        Registration(open_one(), "d1", "h2:8249", count(100).__next__).claim(Waited())
        after(clock, 1.0, lambda: running.lost.came)
        assert isinstance(running.lost.get(), NodeInUse)
    assert stored(open_one()).host == "h2:8249"


# --- the list of pumps


def register(registry, node_id, state="online"):
    status = NodeStatus(node_id=node_id, host=f"{node_id}:8250", state=state)
    found = registry.get(key(PUMPS, node_id))
    registry.put(key(PUMPS, node_id), encode(status), found.revision if found else 0)


@pytest.fixture
def watched(open_one):
    """Makes a watch with a clock; it is stopped after the test."""
    made = []

    def make(update, clock):
        watch = PumpWatch(open_one(), clock, update)
        made.append(watch)
        watch.start()
        return watch

    yield make
    for watch in made:
        watch.stop()


def test_pumps_are_read_at_the_start_and_each_interval(open_one, watched):
    registry, clock, seen = open_one(), ManualClock(), []
    register(registry, "a")
    watched(lambda pumps: seen.append([(each.node_id, each.state) for each in pumps]), clock)
    eventually(lambda: seen)
    register(registry, "a", "paused")
    register(registry, "b", "offline")
    after(clock, 5.0, lambda: len(seen) > 1)
    assert seen[:2] == [[("a", "online")], [("a", "paused"), ("b", "offline")]]


def test_a_notification_is_answered_after_an_update_that_has_the_new_pump(open_one, watched):
    registry, seen = open_one(), []
    watch = watched(lambda pumps: seen.append([each.node_id for each in pumps]), ManualClock())
    eventually(lambda: seen)
    register(registry, "new")
    watch.notify().result(timeout=60)
    assert seen[-1] == ["new"]


def test_the_error_of_an_update_is_the_answer_to_the_notification(watched):
    def update(pumps):
        raise Retryable("the merger is busy")

    with pytest.raises(Retryable, match="the merger is busy"):
        watched(update, ManualClock()).notify().result(timeout=60)


def test_a_watch_goes_on_after_a_failed_update(watched):
    seen = []

    def update(pumps):
        seen.append(pumps)
        if len(seen) == 1:
            raise ValueError("a bug")

    watch = watched(update, ManualClock())
    eventually(lambda: seen)
    watch.notify().result(timeout=60)
    assert len(seen) == 2


def test_a_watch_that_stops_fails_new_notifications(watched):
    watch = watched(lambda pumps: None, ManualClock())
    watch.stop()
    with pytest.raises(Retryable, match="stopping"):
        watch.notify().result(timeout=60)
