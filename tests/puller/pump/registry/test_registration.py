"""One drainer's record, and two drainers that want the same one."""

from __future__ import annotations

from itertools import count

import pytest

from tidemill.puller.pump.registry.node import DRAINERS, NodeStatus, decode, encode, key
from tidemill.puller.pump.registry.registration import LOOKS, NodeInUse, Registration
from tidemill.puller.pump.registry.registry import RegistryUnavailable

from .outcomes import Waited

KEY = key(DRAINERS, "d1")


def drainer(registry, host="h1:8249", first=1):
    return Registration(registry, "d1", host, count(first).__next__)


def stored(registry):
    found = registry.get(KEY)
    return None if found is None else decode(KEY, found.value)


def claimed(registry, **options):
    one = drainer(registry, **options)
    one.claim(Waited())
    return one


def test_a_drainer_is_online_once_it_has_claimed_its_record(open_one):
    registry = open_one()
    claimed(registry)
    assert stored(registry) == NodeStatus(node_id="d1", host="h1:8249", state="online", update_ts=1)


def test_a_heartbeat_writes_the_commit_ts_and_the_time(open_one):
    registry = open_one()
    claimed(registry).refresh(44)
    assert (stored(registry).max_commit_ts, stored(registry).update_ts) == (44, 2)


@pytest.mark.parametrize(
    ("state", "left"), [("online", "paused"), ("pausing", "paused"), ("closing", "offline")]
)
def test_a_clean_stop_leaves_the_state_that_follows(open_one, state, left):
    registry = open_one()
    one = claimed(registry)
    one.change(state)
    one.stop(5)
    assert (stored(registry).state, stored(registry).max_commit_ts) == (left, 5)


def test_a_second_drainer_of_the_id_is_refused_at_the_first_heartbeat_that_it_sees(open_one):
    registry = open_one()
    one = claimed(registry)
    waited = Waited(one.refresh)
    with pytest.raises(NodeInUse, match="a drainer with the id 'd1' runs at h1:8249"):
        drainer(open_one(), "h2:8249").claim(waited)
    assert waited.count == 1
    one.refresh()


def test_the_record_of_a_killed_drainer_is_taken_after_heartbeats_that_did_not_come(open_one):
    claimed(open_one())
    waited = Waited()
    drainer(open_one(), "h2:8249").claim(waited)
    assert waited.count == LOOKS


@pytest.mark.parametrize("state", ["paused", "offline"])
def test_the_record_of_a_stopped_drainer_is_taken_at_once(open_one, state):
    registry = open_one()
    registry.put(KEY, encode(NodeStatus(node_id="d1", host="h0:8249", state=state)), 0)
    waited = Waited()
    drainer(registry).claim(waited)
    assert (waited.count, stored(registry).state) == (0, "online")


def test_of_two_that_start_at_the_same_moment_one_is_refused(open_one):
    first, second = drainer(open_one()), drainer(open_one(), "h2:8249")
    registry = open_one()
    registry.put(KEY, encode(NodeStatus(node_id="d1", host="h0:8249", state="online")), 0)
    with pytest.raises(NodeInUse, match="h2:8249"):
        first.claim(Waited(lambda: None if stored(registry).host == "h2:8249" else second.claim(Waited())))


def test_a_drainer_that_was_stopped_for_long_ends_when_another_has_its_record(open_one):
    paused = claimed(open_one())
    claimed(open_one(), host="h2:8249", first=100)
    with pytest.raises(NodeInUse, match="h2:8249"):
        paused.refresh()


def test_a_record_that_is_lost_is_written_again(private_etcd):
    from tidemill.puller.pump.registry.location import open_registry

    registry = open_registry(f"binlog://{private_etcd.address}")
    one = claimed(registry)
    registry._client.delete(KEY)
    one.refresh(3)
    assert stored(registry).max_commit_ts == 3
    lease = registry._client.lease(60)
    registry._client.put(KEY, encode(stored(registry)), lease=lease)  # as a tool may do
    lease.revoke()
    assert stored(registry) is None
    one.refresh(4)
    assert stored(registry).max_commit_ts == 4
    registry.close()


def test_a_state_that_a_tool_has_written_is_overwritten_as_by_a_running_drainer(open_one):
    registry = open_one()
    one = claimed(registry)
    found = registry.get(KEY)
    edited = found.value.replace(b'"online"', b'"offline"')
    registry.put(KEY, edited, found.revision)
    one.refresh()
    assert stored(registry).state == "online"


class AnswersLost:
    """A registry whose next writes are done, and whose answers to them don't come."""

    def __init__(self, registry):
        self._registry = registry
        self.lost = 0

    def get(self, key):
        return self._registry.get(key)

    def put(self, key, value, revision):
        written = self._registry.put(key, value, revision)
        if self.lost:
            self.lost -= 1
            raise RegistryUnavailable("no answer")
        return written


def test_a_write_whose_answer_was_lost_is_known_as_its_own(open_one):
    registry = AnswersLost(open_one())
    one = claimed(registry)
    registry.lost = 2
    for _ in range(2):
        with pytest.raises(RegistryUnavailable):
            one.refresh()
    one.refresh(9)
    assert stored(registry).max_commit_ts == 9
