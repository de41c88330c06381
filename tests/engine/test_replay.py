"""A relay beside any interruption of its sink, and its replay from any earlier state of the target."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from random import Random
from threading import Event

import pytest

from tidemill.actors import SystemClock
from tidemill.cli.replay import _ts
from tidemill.engine.replay import Replay
from tidemill.errors import CheckpointError, StoreError
from tidemill.events import Checkpoint, SparkQuery, compose_ts
from tidemill.sink.relay.options import RelayOptions
from tidemill.sink.relay.reader import Relay
from tidemill.sink.relay.stage import RelayStage
from tidemill.testing.changes import ORDERS, insert, transaction
from tidemill.testing.stage_conformance import StageLife, StageTarget

from ..sink.relay.test_stage import Player, relay_of


def replayed(directory: Path, target: StageTarget, **how) -> Replay:
    made = Replay(directory, SystemClock(), until=how.pop("until", None))
    made.run(target, "feed", Event(), **how)
    return made


@pytest.mark.parametrize("seed", range(20))
def test_a_relay_has_everything_that_a_target_has_and_brings_any_earlier_one_to_the_end(seed, tmp_path):
    options = RelayOptions(directory=tmp_path, segment_bytes=4096, keep_bytes=1 << 30)
    life = StageLife(seed, [RelayStage(options)])
    rng = Random(seed)
    states: list[tuple[dict, Checkpoint]] = []
    flush = life.target.flush

    def watched() -> Checkpoint | None:
        found = flush()
        if found is not None and found.ts:
            assert Relay(tmp_path).end_ts >= found.ts
            states.append((deepcopy(life.target.rows), found))
        return found

    life.target.flush = watched
    life.run()
    wanted = life.target.rows
    for rows, checkpoint in rng.sample(states, min(6, len(states))):
        target = StageTarget(rng)
        target.faults = False
        target.rows, target.checkpoint = deepcopy(rows), checkpoint
        replayed(tmp_path, target)
        assert target.rows == wanted


def orders(*ts: int) -> list:
    return [transaction(one, insert(ORDERS, one, "a")) for one in ts]


def target(checkpoint: Checkpoint | None) -> StageTarget:
    made = StageTarget(Random(1))
    made.faults = False
    made.rows = {"shop.orders": []}
    made.checkpoint = checkpoint
    return made


def ids(target: StageTarget) -> list[object]:
    return [None if row is None else row[0] for row in target.rows["shop.orders"]]


def test_a_replay_ends_at_a_ts_and_goes_on_from_it(tmp_path):
    relay_of(tmp_path, orders(10, 20), orders(30))
    there = target(Checkpoint(10, "10", None, "src"))
    replayed(tmp_path, there, until=29)
    assert (ids(there), there.checkpoint.ts) == ([20], 20)
    replayed(tmp_path, there)
    assert (ids(there), there.checkpoint.position) == ([20, 30], "log:30")


def test_a_target_without_a_checkpoint_is_as_of_a_ts(tmp_path):
    relay_of(tmp_path, orders(10, 20))
    there = target(None)
    replayed(tmp_path, there, at=10)
    assert ids(there) == [20]


@pytest.mark.parametrize(
    ("checkpoint", "how", "said"),
    [
        (None, {}, "begins after ts 0, and sink model has no checkpoint: restore a backup"),
        (Checkpoint(5, "5", None, "other"), {}, "what came from src, sink model what came from other"),
        (Checkpoint(10, "10", None, "src"), {"at": 5}, "is at ts 10, not at 5: leave out --at"),
        (Checkpoint(5, "5", None, "src", SparkQuery(2)), {}, "written by Spark"),
    ],
)
def test_a_target_that_the_relay_does_not_continue_is_refused(tmp_path, checkpoint, how, said):
    relay_of(tmp_path, orders(10, 20))
    there = target(checkpoint)
    with pytest.raises(CheckpointError, match=said):
        replayed(tmp_path, there, **how)
    assert ids(there) == []


def test_a_target_older_than_the_relay_is_refused(tmp_path):
    player = Player(tmp_path)
    player.open("10")
    player.stage.apply(orders(20))
    player.crash()
    with pytest.raises(CheckpointError, match="after ts 10, and sink model is at 5: what is between"):
        replayed(tmp_path, target(Checkpoint(5, "5", None, "src")))


def test_a_directory_without_a_relay_is_refused(tmp_path):
    with pytest.raises(StoreError, match="is empty"):
        Replay(tmp_path, SystemClock())
    with pytest.raises(StoreError, match="no such directory"):
        Replay(tmp_path / "none", SystemClock())


def test_a_time_is_the_last_ts_of_its_millisecond():
    assert _ts("2026-11-23 10:00:00.001") == compose_ts(1795428000002) - 1
    assert _ts("2026-11-23T11:00:00.001+01:00") == compose_ts(1795428000002) - 1
    assert _ts("471") == 471
