"""Actors that share a store's regions while its region worker has a backlog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, assert_never

from msgspec import Struct

from ....actors import Mailbox, PooledActor
from ....events import Ts
from ..match.spill import Quota
from .advance import DirtySet
from .backlog import Backlog
from .region_events import Payload, RegionEvents
from .reports import RegionReports
from .request import Request
from .request_group import RequestGroup


class ShardBarrier(Mailbox):
    """A barrier where a region worker waits for its shard workers.

    It is a mailbox that nobody reads: it has room unless closed, and an actor that has sent to it while it is
    closed gets no messages until it opens.
    """

    __slots__ = ("_missing",)

    def __init__(self, name: str) -> None:
        super().__init__(2, name)
        self._missing = 0

    def shut(self, workers: int) -> None:
        """Close it until `workers` shard workers have arrived. Called by the region worker before it tells
        them to."""
        with self.lock:
            self._missing = workers
            self.limit = 1
            self.messages = [None]

    def arrive(self) -> None:
        with self.lock:
            self._missing -= 1
            if self._missing or not self.limit:
                return
            self.limit = self.capacity
        self.take(self.capacity)

    def schedule(self) -> None:
        """Do nothing: no actor reads this mailbox."""


class ShardEvents(Struct, frozen=True, gc=False):
    """To a shard worker: events of its regions, in order; then `size` is subtracted from the backlog."""

    events: list[tuple[RequestGroup, Request, Payload]]
    size: int = 0
    backlog: Backlog | None = None


class AdvanceShard(Struct, frozen=True, gc=False):
    """To a shard worker: resolved ts of its regions; `messages` were received since the last one."""

    resolved: list[tuple[Request, Ts]]
    messages: int


class Arrive(Struct, frozen=True):
    """To a shard worker: all earlier messages are processed."""

    barrier: ShardBarrier


ShardMessage: TypeAlias = ShardEvents | AdvanceShard | Arrive


class ShardWorker(PooledActor[ShardMessage]):
    """Processes the events of every eighth region of a store, in their order."""

    def __init__(self, reports: RegionReports, dirty: DirtySet, quota: Quota, barrier: ShardBarrier) -> None:
        self._events = RegionEvents(self, reports, dirty)
        self._quota = quota
        self._barrier = barrier

    def on_receive(self, message: ShardMessage) -> None:
        match message:
            case ShardEvents(events, size, backlog):
                for group, request, payload in events:
                    if not request.initialised:
                        group.pending.pop(request.id, None)  # one from before the scan's end is invalid
                    self._events.take(group, request, payload, self._quota)
                if backlog is not None:
                    backlog.done(size)
            case AdvanceShard(resolved, messages):
                self._events.advance(resolved, messages)
            case Arrive(barrier):
                barrier.arrive()
            case _:
                assert_never(message)
        self._events.flush()

    def on_failure(self, *_exc_info: object) -> None:
        self._barrier.close()  # an actor that waits for this one must be able to stop


def spread(count: int, pairs: Sequence[tuple[Request, Ts]], messages: int) -> list[AdvanceShard | None]:
    """Group resolved ts by the shard worker of their region."""
    parts: list[list[tuple[Request, Ts]]] = [[] for _ in range(count)]
    for pair in pairs:
        parts[pair[0].id % count].append(pair)
    return [AdvanceShard(part, messages) if part else None for part in parts]
