"""Actors that share a store's regions while its region worker is far behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from ....actors import Mailbox, PooledActor
from ....events import Ts
from ..match.spill import Quota
from .advance import DirtySet
from .backlog import Backlog
from .region_events import Payload, RegionEvents
from .reports import Reports
from .request import Request
from .request_group import RequestGroup


class Barrier(Mailbox):
    """Where a region worker waits until all its handles have done what it gave them.

    A mailbox that nobody reads: it has room unless shut, and an actor that has sent to it while it is shut
    gets no messages until it opens.
    """

    __slots__ = ("_missing",)

    def __init__(self, name: str) -> None:
        super().__init__(2, name)
        self._missing = 0

    def shut(self, handles: int) -> None:
        """Until so many have arrived. By the region worker, before it tells them to."""
        with self.lock:
            self._missing = handles
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
        """Nobody has to run."""


class Shared(Struct, frozen=True, gc=False):
    """To a handle: events of its regions, in order; handled, `size` is taken from the backlog."""

    events: list[tuple[RequestGroup, Request, Payload]]
    size: int = 0
    backlog: Backlog | None = None


class Advance(Struct, frozen=True, gc=False):
    """To a handle: resolved ts of its regions, of which `messages` came since the last time."""

    resolved: list[tuple[Request, Ts]]
    messages: int


class Arrive(Struct, frozen=True):
    """To a handle: everything before this is done."""

    barrier: Barrier


HandleMessage: TypeAlias = Shared | Advance | Arrive


class ShardWorker(PooledActor):
    """Handles the events of every eighth region of a store, in their order."""

    def __init__(self, reports: Reports, dirty: DirtySet, quota: Quota, barrier: Barrier) -> None:
        self._events = RegionEvents(self, reports, dirty)
        self._quota = quota
        self._barrier = barrier

    def on_receive(self, message: HandleMessage) -> None:
        match message:
            case Shared(events, size, backlog):
                for group, request, payload in events:
                    if not request.initialised:
                        group.pending.pop(request.id, None)  # what came before the scan's end is void
                    self._events.take(group, request, payload, self._quota)
                if backlog is not None:
                    backlog.done(size)
            case Advance(resolved, messages):
                self._events.advance(resolved, messages)
            case Arrive(barrier):
                barrier.arrive()
        self._events.flush()

    def on_failure(self, *_exc_info: Any) -> None:
        self._barrier.close()  # who waits for this handle must be able to stop


def spread(count: int, pairs: Sequence[tuple[Request, Ts]], messages: int) -> list[Advance | None]:
    """Resolved ts by the handle of their region."""
    parts: list[list[tuple[Request, Ts]]] = [[] for _ in range(count)]
    for pair in pairs:
        parts[pair[0].id % count].append(pair)
    return [Advance(part, messages) if part else None for part in parts]
