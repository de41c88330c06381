"""The actors between one source and its sinks. The only module that knows all stages."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pykka

from ..actors import ActorSystem, PooledRef
from ..events import Sorted
from ..sink import Deliver, Delivery, Reports, Review, Sink, spawn_sink
from ..sink.rules import SinkRules
from ..sorter import EventSorter, open_sorter
from ..sources.source import Source
from .beginning import Beginning, wants_origin
from .chains import Chains
from .coordination import FeedCoordination
from .coordinator import Coordinator, Course, End, Report
from .decode import DecodeActor, DeliveredCounts
from .failures import blamed
from .parts import FeedParts
from .sinks import SinkActors
from .table_changes import why_not_single
from .teardown import Teardown

log = logging.getLogger("tidemill")

STOP_SECONDS = 8.0
"""Shutdown grace period for sinks; below the usual 10 s before SIGKILL."""
LEAVE_SECONDS = 0.5
"""Timeout of closing after which threads in driver calls are abandoned; no data is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The actors of a pipeline. Whoever stops them tells the source and the decoder before."""

    compute: ActorSystem
    blocking: ActorSystem
    """For actors that wait in drivers."""
    coordinator: PooledRef[Report]
    chains: Chains
    end: End
    sinks: SinkActors
    counts: DeliveredCounts
    decoder: PooledRef[Sorted | Deliver]
    sorter: EventSorter


def spawn_stages(
    parts: FeedParts,
    course: Course,
    source: Source,
    sinks: Sequence[Sink],
    begins: Beginning,
    coordination: FeedCoordination | None,
    undo: Teardown,
) -> Stages:
    """Spawn the actors, for sinks that are open; `undo` gets the calls that stop them.

    `coordination` is that with other feeds that write into the same merged tables; None if there are none.
    """
    options, clock = parts.options, parts.clock
    shared = parts.shared
    compute = parts.runtime.system("compute", shared.compute if shared is not None else 2)
    blocking = parts.runtime.system("blocking", len(sinks) + 1)
    undo.add(partial(_stop, blocking, LEAVE_SECONDS))
    undo.add(partial(_stop, compute, STOP_SECONDS))
    coordinator: PooledRef[Report] = compute.spawn(
        Coordinator, course, source, len(sinks), parts.lag, name="coordinator", capacity=1024
    )
    chains = Chains(options, begins.names, parts.stages, coordination, partial(coordinator.offer, Review()))
    undo.add(lambda: chains.close([sink.name for sink in course.abandoned]))
    end = End(begins.until, source.rank, chains.waiting_shards)
    can_reload = not why_not_single(options, source, {sink.name: sink.traits for sink in sinks})

    def deliver(sink: Sink, rules: SinkRules) -> tuple[Delivery, Reports]:
        reports, checkpoint = Reports(sink.name, coordinator), begins.checkpoints[sink.name]
        with blamed(f"sink {sink.name}"):
            delivery = Delivery(
                sink,
                checkpoint,
                begins.source,
                stages=[
                    parts.tables.counter(sink.name, partial(wants_origin, options, begins.names, rules)),
                    *chains.chain(sink.name, rules, checkpoint, sink.traits),
                ],
                feed=options.name,
                now=clock.now,
                can_reload=can_reload,
                is_end=partial(end.is_reached, sink.name),
                acknowledged=reports.acknowledged,
                seek=reports.seek,
                batch_rows=parts.lag.batch_rows(sink.name),
                rowless_seconds=None if shared is None else lambda: shared.rowless_seconds,
            )
        return delivery, reports

    gets = [factory.rules for factory in parts.sinks]
    made = [deliver(sink, rules) for sink, rules in zip(sinks, gets, strict=True)]
    counts = DeliveredCounts()
    with Teardown() as undo_sinks:
        parked_at = clock.time if options.on_table_error == "park" and can_reload else None
        actors = [
            (delivery, spawn_sink(blocking, delivery, reports, parked_at)) for delivery, reports in made
        ]
        running = SinkActors(clock, actors)
        stop_sinks = partial(_stop_sinks, running, course)
        undo_sinks.add(stop_sinks)
        decoder: PooledRef[Sorted | Deliver] = compute.spawn(
            DecodeActor,
            source,
            [ref for _, ref in actors],
            counts,
            end.until,
            begins.loads,
            parts.before_sinks,
            parts.tables.note,
            name="decoder",
            capacity=4,
            supervisor=coordinator,
        )
        memory = shared.memory if shared is not None else None
        sorter = open_sorter(options.sorter, compute, decoder, coordinator, memory)
        undo_sinks.keep()
    undo.add(sorter.close)
    undo.add(stop_sinks)
    undo.add(partial(decoder.stop, block=False))
    return Stages(
        compute=compute,
        blocking=blocking,
        coordinator=coordinator,
        chains=chains,
        end=end,
        sinks=running,
        counts=counts,
        decoder=decoder,
        sorter=sorter,
    )


def _stop_sinks(sinks: SinkActors, course: Course) -> None:
    course.abandoned += sinks.stop(STOP_SECONDS)


def _stop(system: ActorSystem, seconds: float) -> None:
    try:
        system.stop(timeout=seconds)
    except pykka.Timeout as error:
        log.warning("stopped without waiting any longer: %s", error)
