"""A slow table holds up its store's stream, by counts; what waits is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Event

from tidemill.codec.tidb.key import record_key
from tidemill.emulator.cluster import Cluster
from tidemill.events import Changes
from tidemill.puller.tikv.feed.options import EventFeedOptions
from tidemill.testing.progress import happened

from .rig import Collected, Collector, Rig

TABLE = 5
FEED = EventFeedOptions(mailbox=4, shard_workers=2)
ROUND = [("put", record_key(TABLE, row), bytes(20_000)) for row in range(10)]
STILL = 20
"""Rounds in a row of which the stream takes nothing."""
MOST = 1_000


class Blocked(Collector):
    """A table's writer that stands still until it is freed."""

    def __init__(self, collected: Collected, freed: Event) -> None:
        super().__init__(collected)
        self._freed = freed

    def on_receive(self, message: Changes) -> None:
        happened(self._freed)
        super().on_receive(message)


@contextmanager
def blocked(rig: Rig) -> Iterator[tuple[Collected, Event]]:
    freed = Event()
    collected = Collected(TABLE, rig.arrived, rig.changed)
    try:
        rig.add(TABLE, writer=rig.system.spawn(Blocked, collected, freed, capacity=4))
        yield collected, freed
    finally:
        freed.set()


def test_a_slow_writer_stops_the_reading_of_the_stream(tmp_path: Path) -> None:
    with (
        Cluster(stores=1, tick_seconds=0.02, quota_bytes=1 << 30) as cluster,
        Rig(cluster, tmp_path, feed=FEED) as rig,
        blocked(rig) as (collected, freed),
    ):
        rig.eventually(lambda: rig.requests and rig.requests[0].initialised)
        (connection,) = cluster.stores[1].change_data.connections
        worker = rig.puller.feed.stores[1].worker.actor_inbox
        sizes = [0]

        def stands() -> bool:
            assert len(sizes) < MOST, "the store gets rid of everything"
            cluster.write(ROUND)
            sizes.append(connection.queued_bytes)
            grows = [after > before for before, after in pairwise(sizes[-STILL:])]
            return worker.waiting() and len(grows) == STILL - 1 and all(grows)

        rig.eventually(stands, "what is written stays at the store")
        last = cluster.write(ROUND)
        assert ("room", worker.name) in [(wait.kind, wait.on) for wait in rig.puller.explain()]
        freed.set()
        rig.until(lambda: collected.resolved >= last)
        assert len(collected.changes) == len(sizes) * len(ROUND)
        collected.check()


def test_a_table_that_is_held_up_does_not_hold_up_resolved_ts_of_the_others(tmp_path: Path) -> None:
    with (
        Cluster(stores=1, tick_seconds=0.02) as cluster,
        Rig(cluster, tmp_path, feed=FEED) as rig,
        blocked(rig) as (collected, freed),
    ):
        rig.add(6)
        for _ in range(30):
            rig.until_resolved(cluster.tso(), 6)
        assert collected.messages == []
        freed.set()
        last = cluster.tso()
        rig.until(lambda: collected.resolved >= last)
        collected.check()
