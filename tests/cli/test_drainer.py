"""The commands about drainers, with a running one."""

from __future__ import annotations

import json

import pytest

from tidemill.actors import SystemClock
from tidemill.puller.pump.registry.location import open_registry
from tidemill.puller.pump.registry.node import PUMPS, NodeStatus, encode, key
from tidemill.testing.progress import eventually

from ..puller.pump.service.node import RunningDrainer


@pytest.fixture
def registry(tmp_path):
    return f"sqlite:///{tmp_path / 'registry.db'}"


@pytest.fixture
def running(registry):
    one = RunningDrainer(clock=SystemClock(), registry=registry).start()
    yield one
    one.drainer.stop()


@pytest.fixture
def feed(tmp_path, registry):
    path = tmp_path / "feed.toml"
    path.write_text(
        f'[source]\nurl = "binlog://pd:2379"\nregistry = "{registry}"\nnode_id = "d1"\ntables = ["*.*"]'
    )
    return path


@pytest.mark.parametrize(("action", "state"), [("pause", "pausing"), ("close", "closing")])
def test_a_drainer_is_stopped_by_its_feed_file(call, running, feed, action, state):
    assert call("drainer", action, feed) == (0, f"apply action {action} success!\n", "")
    assert running.asked_to_stop.is_set()
    eventually(lambda: running.record.state == state)


def test_a_drainer_is_stopped_by_its_id(call, running, registry):
    assert call("drainer", "pause", "--registry", registry, "--id", "d1")[0] == 0
    status, _, error = call("drainer", "close", "--registry", registry, "--id", "d1")
    address = running.drainer.address
    assert (status, error) == (
        1,
        f"tidemill: drainer d1 at {address}: this drainer's state is pausing, apply close failed!\n",
    )


def test_an_unknown_drainer_is_answered_with_the_known_ones(call, running, registry):
    status, _, error = call("drainer", "pause", "--registry", registry, "--id", "d2")
    assert (status, error) == (1, "tidemill: no drainer 'd2' is registered; registered: d1\n")


def test_a_drainer_that_has_stopped_is_shown_with_its_state(call, running, registry):
    running.drainer.stop()
    status, _, error = call("drainer", "pause", "--registry", registry, "--id", "d1")
    assert status == 1
    assert f"drainer d1 at {running.drainer.address}, whose state is paused, doesn't answer: " in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pause"], "drainer pause: give the drainer's feed.toml, or --registry and --id"),
        (["list"], "--registry is missing: a registry is binlog://pd1:2379,pd2:2379 or sqlite:///file"),
        (["list", "--registry", "redis://x"], "'redis://x' is not the URL of a registry; accepted: "),
    ],
)
def test_a_registry_that_is_missing_or_none_is_refused(call, arguments, message):
    status, _, error = call("drainer", *arguments)
    assert status == 2
    assert message in error


def test_pumps_and_drainers_are_listed(call, running, registry):
    pump = NodeStatus(node_id="p1", host="h:8250", state="paused", max_commit_ts=7)
    open_registry(registry).put(key(PUMPS, "p1"), encode(pump), 0)
    status, output, _ = call("drainer", "list", "--registry", registry)
    first, second = (line.split() for line in output.splitlines()[-2:])
    assert (status, first) == (0, ["pump", "p1", "paused", "h:8250", "7", "unknown"])
    assert second[:5] == ["drainer", "d1", "online", running.drainer.address, str(38 << 18)]
    lines = call("drainer", "list", "--registry", registry, "--json")[1].splitlines()
    found = [json.loads(line) for line in lines]
    assert found[0] == {
        "kind": "pump",
        "id": "p1",
        "state": "paused",
        "address": "h:8250",
        "max_commit_ts": 7,
        "heartbeat_age_seconds": None,
    }
    assert found[1]["heartbeat_age_seconds"] < 600
