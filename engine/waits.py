"""Waits of a pipeline that starts or runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from ..actors import ActorSystem, Clock
from ..events import Wait, room_wait
from ..sink import Delivery
from ..sorter import EventSorter
from ..sources.source import Source
from .coordinator import Course
from .failures import blamed

BUSY_SECONDS = 1.0
"""Driver calls longer than this are reported as waiting for an answer, of a source those beyond its rest."""


class Startup:
    """The current step, entered in the feed's thread; any thread may read what it waits for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.blamed = ""
        """The part in whose step the last start failed; empty if it didn't."""
        self._step: tuple[str, str, float] | None = None

    @contextmanager
    def step(self, who: str, on: str) -> Iterator[None]:
        """Run the body as the step in which `who` waits for answers of `on`.

        Raises Unavailable in place of Retryable.
        """
        self._step = who, on, self._clock.now()
        self.blamed = who
        try:
            with blamed(who):
                yield
            self.blamed = ""
        finally:
            self._step = None

    def waits(self) -> list[Wait]:
        if (step := self._step) is None:
            return []
        who, on, since = step
        seconds = self._clock.now() - since
        return [Wait(who, "answer", seconds, on=on)] if seconds > BUSY_SECONDS else []


def waits_of(
    now: float,
    course: Course,
    source: Source,
    sorter: EventSorter,
    deliveries: Sequence[Delivery],
    *,
    compute: ActorSystem,
    blocking: ActorSystem,
) -> list[Wait]:
    """Return all waits, from the source to the sinks."""
    waits = [retry.wait(now) for retry in course.retries.values()]
    waits += [
        Wait(who, "answer", now - since, on=where)
        for who, where, since in _turns(blocking, source, deliveries)
        if now - since > BUSY_SECONDS + (source.rest_seconds if who == "source" else 0.0)
    ]
    waits += [
        room_wait(wait.name, wait.waiting_on, now - wait.since, count=wait.depth, limit=wait.capacity)
        for system in (compute, blocking)
        for wait in system.waiting()
    ]
    for delivery in deliveries:
        waits += delivery.waits()
    waits += source.waits()
    known = {wait.stage for wait in waits}
    waits += [wait for wait in sorter.explain() if wait.stage not in known]
    return [_named(wait, source) for wait in waits]


def _turns(
    blocking: ActorSystem, source: Source, deliveries: Sequence[Delivery]
) -> Iterator[tuple[str, str, float]]:
    """Yield the waits of actors for answers of drivers."""
    targets = {f"sink {delivery.sink.name}": delivery.sink.target for delivery in deliveries}
    for actor in blocking.statistics().actors:
        if actor.turn_since is not None:
            who = actor.name if actor.name in targets else "source"
            yield who, targets.get(who, source.address), actor.turn_since


def _named(wait: Wait, source: Source) -> Wait:
    """Return the wait with its table's name, if the source knows it."""
    if wait.table or wait.table_id is None:
        return wait
    return replace(wait, table=source.table_name(wait.table_id))
