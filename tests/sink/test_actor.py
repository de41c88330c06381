from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tidemill.actors import Failed, MailboxFull, PooledActor, SeededSystem
from tidemill.errors import Retryable, SinkError
from tidemill.events import Batch, Checkpoint
from tidemill.sink import (
    Acknowledged,
    Deliver,
    Delivery,
    DeliveryOptions,
    Flush,
    ReplayRequired,
    Reports,
    Sink,
    spawn_sink,
)
from tidemill.testing.changes import ORDERS, at, insert, transaction


class Coordinator(PooledActor):
    def __init__(self, heard):
        self.heard = heard

    def on_receive(self, message):
        self.heard.append(message)


@dataclass
class Counting(Sink):
    """A sink that keeps rows once flushed, and can be made to fail."""

    errors: list[Exception] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    commits: int = 0
    closed: int = 0
    reached: Checkpoint | None = None
    name: str = "copy"
    target: str = "memory"

    def open(self) -> Checkpoint | None:
        return None

    def write(self, batch: Batch) -> None:
        if self.errors:
            self.written.clear()
            raise self.errors.pop(0)
        self.written += [row.after[0] for item in batch.items for row in item.rows]
        self.reached = batch.checkpoint

    def flush(self) -> Checkpoint | None:
        if self.reached is not None:
            self.rows += self.written
            self.written.clear()
            self.commits += 1
        return self.reached

    def has_table(self, schema: str, table: str) -> bool:
        return True

    def close(self) -> None:
        self.closed += 1


class Play:
    """A coordinator and a sink's actor in a seeded system."""

    def __init__(self, sink, seed=0, stages=(), room=64, **options):
        self.system = SeededSystem(seed)
        self.heard = []
        coordinator = self.system.spawn(Coordinator, self.heard, name="coordinator", capacity=room)
        reports = Reports(sink.name, coordinator)
        self.delivery = Delivery(
            sink,
            at(0),
            "src",
            DeliveryOptions(**options),
            stages=stages,
            acknowledged=reports.acknowledged,
            seek=reports.seek,
        )
        self.sink = spawn_sink(self.system, self.delivery, reports, capacity=2)


def rows(ts, *ids, last=True):
    return Deliver([transaction(ts, *[insert(ORDERS, i, "") for i in ids], last=last)])


@pytest.mark.parametrize("seed", range(20))
def test_rows_arrive_once_and_in_order_whatever_fails(seed):
    sink = Counting(errors=[Retryable("busy")] * (seed % 4))
    play = Play(sink, seed)
    for ts in range(1, 40):
        play.sink.tell(rows(ts, ts))
    play.system.run(60)
    assert sink.rows == list(range(1, 40))
    acknowledged = [m.checkpoint.ts for m in play.heard if isinstance(m, Acknowledged)]
    assert acknowledged == sorted(acknowledged)
    assert acknowledged[-1] == 39


@pytest.mark.parametrize("seed", range(20))
def test_no_report_is_lost_or_overtaken_while_the_coordinator_is_busy(seed):
    sink = Counting()
    play = Play(sink, seed, room=1, max_rows=1)
    for ts in range(1, 40):
        play.sink.tell(rows(ts, ts))
    play.sink.stop(block=False)
    play.system.run()
    assert [m.checkpoint.ts for m in play.heard] == list(range(1, 40))


def test_what_waits_is_committed_together():
    sink = Counting()
    play = Play(sink)
    play.sink.tell_many([rows(1, 1), rows(2, 2)])
    play.system.run()
    assert sink.rows == [1, 2]
    assert sink.commits <= 2


def test_what_waits_passes_the_stages_together():
    calls = []

    class Stage:
        name = "noting"

        def open(self, context):
            pass

        def apply(self, batch):
            calls.append([item.commit_ts for item in batch])
            return batch

        def durable(self, checkpoint):
            return ()

        def waits(self):
            return ()

        def close(self):
            pass

    play = Play(Counting(), stages=[Stage()])
    play.sink.tell_many([rows(1, 1), rows(2, 2)])
    play.system.run()
    assert calls == [[1, 2]]


def test_while_it_is_retried_it_takes_no_messages():
    sink = Counting(errors=[Retryable("locked")] * 3)
    play = Play(sink)
    play.sink.tell(rows(1, 1))
    play.system.run()
    (failed,) = play.heard
    assert isinstance(failed, Failed)
    assert str(failed.error) == "locked"
    assert failed.restart_seconds == 0.1
    assert play.delivery.statistics().error == "locked"
    play.sink.try_tell(rows(2, 2))
    play.sink.try_tell(rows(3, 3))
    play.system.run()
    with pytest.raises(MailboxFull):
        play.sink.try_tell(rows(4, 4))
    play.system.run(10)
    assert sink.rows == [1, 2, 3]
    assert play.delivery.statistics().error is None
    assert [m.restart_seconds for m in play.heard if isinstance(m, Failed)] == [0.1, 0.2, 0.4]


def test_it_waits_as_long_as_the_target_asks():
    play = Play(Counting(errors=[Retryable("later", 25.0)]))
    play.sink.tell(rows(1, 1))
    play.system.run()
    assert play.heard[0].restart_seconds == 25.0


def test_a_fatal_error_ends_it_and_closes_the_sink():
    sink = Counting(errors=[SinkError("table is gone")])
    play = Play(sink)
    play.sink.tell(rows(1, 1))
    play.system.run(100)
    (failed,) = play.heard
    assert (failed.restart_seconds, str(failed.error)) == (None, "table is gone")
    assert sink.closed == 1


def test_what_was_too_large_to_keep_ends_it():
    sink = Counting()
    play = Play(sink, max_rows=1, max_kept_rows=1)
    play.sink.tell(rows(1, 1, 2, last=False))
    play.system.run()
    sink.errors = [Retryable("gone")]
    play.sink.tell(rows(1, 3))
    play.system.run(100)
    (failed,) = play.heard
    assert isinstance(failed.error, ReplayRequired)
    assert failed.restart_seconds is None


def test_a_checkpoint_without_rows_is_acknowledged_a_little_later():
    play = Play(Counting(), rowless_seconds=5.0)
    play.system.clock.advance(100.0)
    for ts in (1, 2, 3):
        play.sink.tell(Deliver([transaction(ts)]))
        play.system.run()
    assert [m.checkpoint.ts for m in play.heard] == [1]
    play.system.run(5.0)
    assert [m.checkpoint.ts for m in play.heard] == [1, 3]


def test_stopping_flushes_and_closes():
    sink = Counting()
    play = Play(sink, rowless_seconds=5.0)
    play.sink.tell(rows(1, 1))
    play.sink.tell(Deliver([transaction(2)]))
    play.sink.stop()
    play.system.run()
    assert play.heard[-1].checkpoint.ts == 2
    assert sink.closed == 1


def test_a_flush_asks_for_what_the_sink_acknowledges_by_itself():
    sink = Counting()
    play = Play(sink)
    play.system.run()
    sink.reached = at(7)
    play.sink.tell(Flush())
    play.system.run()
    assert play.heard == [Acknowledged("copy", at(7))]
