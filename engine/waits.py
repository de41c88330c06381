"""The waits of a running pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ..actors import ActorSystem
from ..events import Wait, room_wait
from ..sink import Delivery
from ..sorter import EventSorter
from ..sources.source import Source
from .coordinator import Course
from .startup import BUSY_SECONDS


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
    found = [retry.wait(now) for retry in course.retries.values()]
    found += [
        Wait(str(who), "answer", now - since, on=where)
        for who, where, since in _turns(blocking, source, deliveries)
        if now - since > BUSY_SECONDS
    ]
    found += [
        room_wait(wait.name, wait.waiting_on, now - wait.since, count=wait.depth, limit=wait.capacity)
        for system in (compute, blocking)
        for wait in system.waiting()
    ]
    for delivery in deliveries:
        found += delivery.waits()
    found += source.waits()
    known = {wait.stage for wait in found}
    found += [wait for wait in sorter.explain() if wait.stage not in known]
    return [_named(wait, source) for wait in found]


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
