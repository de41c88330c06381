"""One run of a feed, from its sinks' checkpoints on: started, asked for more, and closed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from ..errors import TidemillError
from ..events import Checkpoint, Wait, physical_ms
from ..failpoint import reach
from ..puller.puller import PullerStatistics
from ..sink import Flush, Review, Sink
from ..sources.source import Source, SourceInfo, StartContext
from .beginning import Beginning, beginning, continued_identity, start_checks, with_shards
from .coordination import FeedCoordination
from .coordinator import Course, Started
from .failures import blamed
from .parts import FeedParts
from .patterns import keep_patterns
from .renewal import Renewed, renew
from .requests import PipelineRequests, RequestFile, Requests
from .stages import Stages, spawn_stages
from .table_changes import carried_out, changed_checkpoints, store, unneeded_tables, why_not_single
from .teardown import Teardown
from .waits import waits_of

log = logging.getLogger("tidemill")


class TablesRequested(TidemillError):
    """People have requested something about tables: the next pipeline begins with it."""

    def __init__(self, tables: Iterable[str]) -> None:
        super().__init__(f"requested for {', '.join(sorted(tables))}")


def start(parts: FeedParts, requests: PipelineRequests, course: Course) -> Pipeline:
    """Open the sinks, look at the source, choose where to begin, and start the stages there.

    Raises Retryable and Fatal, and Renewed once the sinks' checkpoints have all tables to be loaded again;
    then only sinks in `course.abandoned` are left running.
    """
    source = parts.open_source(parts.options, parts.clock)
    sinks = [factory.new() for factory in parts.sinks]
    with Teardown() as undo:
        stored = _open_sinks(parts, sinks, course, undo)
        parts.lag.open(stored)
        undo.add(parts.lag.leave)
        undo.add(source.close)
        with parts.startup.step("source", source.address):
            present = source.look()
        begins, unneeded = _choose(parts, requests, source, present, sinks, stored)
        course.checkpoints = {name: one for name, one in begins.checkpoints.items() if one is not None}
        followed = [table for table in present.tables if parts.options.tables.matches(*table)]
        parts.tables.begin([] if begins.names else map(".".join, followed))
        coordination = _coordinate(parts, present.names, course, undo)
        stages = spawn_stages(parts, course, source, sinks, begins, coordination, undo)
        parts.lag.begin(stages.sorter, stages.sinks.deliveries)
        stages.chains.unlock(requests.unlock)
        with parts.startup.step("source", source.address):
            source.start(
                StartContext(
                    stages.compute,
                    stages.blocking,
                    stages.sorter,
                    stages.decoder,
                    stages.coordinator,
                    begins.start,
                    begins.placed,
                    decodes=all(sink.traits.reads_rows for sink in sinks),
                    state_dir=parts.options.data_dir if parts.keeps_state else None,
                    unneeded=unneeded,
                    runtime=parts.runtime,
                    pace=lambda: 1.0 if parts.shared is None else parts.shared.pace,
                )
            )
        undo.add(source.stop)
        stages.coordinator.tell(Started(stages.sorter, stages.end))
        return Pipeline(parts, course, source, begins.source, stages, undo.keep())


def _open_sinks(
    parts: FeedParts, sinks: Sequence[Sink], course: Course, undo: Teardown
) -> dict[str, Checkpoint | None]:
    """Open the sinks; return the checkpoint of each, by its name."""
    opened = {}
    for sink in sinks:
        undo.add(partial(_close_sink, sink, course))
        with parts.startup.step(f"sink {sink.name}", sink.target):
            opened[sink.name] = sink.open()
    return opened


def _close_sink(sink: Sink, course: Course) -> None:
    if all(one.name != sink.name for one in course.abandoned):  # else it belongs to the thread in it
        sink.close()


def _choose(
    parts: FeedParts,
    requests: PipelineRequests,
    source: Source,
    present: SourceInfo,
    sinks: Sequence[Sink],
    stored: Mapping[str, Checkpoint | None],
) -> tuple[Beginning, frozenset[str]]:
    """Return where the pipeline begins, with the sinks at the checkpoints `stored`, and the tables whose
    changes no sink needs. Raises Renewed."""
    options, rules = parts.options, [factory.rules for factory in parts.sinks]
    by_name = {factory.name: factory.rules for factory in parts.sinks}
    identity = continued_identity(source, present, stored, renews=requests.renews)
    if requests.renews:
        renew(options, source, [*zip(sinks, rules, strict=True)], stored, present.source, parts.clock.time())
        raise Renewed
    placed = with_shards(options, source, sinks, stored)
    why_not = why_not_single(options, source, {sink.name: sink.traits for sink in sinks})
    is_new = not any(one is not None and one.position for one in placed.values())
    for check in start_checks(
        options,
        source,
        present,
        is_new=is_new,
        why_not_single=why_not,
        checks_tables=parts.checks_tables,
    ):
        check()
    if why_not and requests.tables.names:
        log.warning("%s: this feed can't do that: %s", ", ".join(sorted(requests.tables.names)), why_not)
    elif not why_not:
        with blamed("source"):
            changed = changed_checkpoints(
                options, by_name, source, present, placed, requests, parts.clock.time()
            )
        for sink in sinks:
            if sink.name in changed:
                with blamed(f"sink {sink.name}"):
                    store(sink, changed[sink.name])
                reach("tables.stored")
        placed |= changed
    keep_patterns(options)
    reach("tables.kept")
    RequestFile(options.data_dir).remove(carried_out(requests.tables, placed))
    begins = beginning(options, source, present, identity, placed, rules, requests.seek)
    reach("tables.begun")
    return begins, unneeded_tables(options, by_name, begins)


def _coordinate(
    parts: FeedParts, names: Sequence[str], course: Course, undo: Teardown
) -> FeedCoordination | None:
    """Claim the feed among those that share its merged tables; return None if there are none."""
    if not parts.options.sharding.is_shared:
        return None
    made = FeedCoordination(parts.options, names, parts.clock)
    undo.add(lambda: made.close(releases=not course.abandoned))
    with parts.startup.step("coordination", made.address):
        made.open()
    return made


class Pipeline:
    """Stages that run, made by `start`. `close` stops everything.

    Its `course` changes in the Coordinator's turns, the rest in the feed's threads.
    """

    def __init__(
        self, parts: FeedParts, course: Course, source: Source, identity: str, stages: Stages, undo: Teardown
    ) -> None:
        self.course = course
        self.identity = identity
        """Identity of the source."""
        self.stages = stages
        self.puller_statistics: PullerStatistics | None = None
        self._clock = parts.clock
        self._lag = parts.lag
        self._source = source
        self._undo = undo

    def close(self) -> None:
        """Stop reading, let the sinks write their waiting items, and stop everything.

        Doesn't raise: an error becomes the course's, unless the pipeline has ended by another one.
        """
        if (error := self._undo.run()) is not None:
            self.course.note(error)

    def flush(self) -> None:
        """Ask the sinks to save their checkpoints; a busy sink flushes after its current batch."""
        self.stages.sinks.tell(Flush())

    def carry_out(self, requests: Requests) -> None:
        """Have the stages carry out people's requests; called about twice a second, as a feed whose shards
        wait may have no other items. A request about tables ends the pipeline: the next one begins with
        it."""
        stages = self.stages
        if requests.names and len(self.course.checkpoints) == len(stages.sinks.deliveries):
            self.course.end(TablesRequested(requests.names))
        if stages.chains.unlock(requests.unlock):
            stages.sinks.tell(Review())
            stages.coordinator.offer(Review())

    def ask_puller(self) -> None:
        if (statistics := self._source.statistics()) is not None:
            self.puller_statistics = statistics
            self._lag.look(statistics, self._clock.now())

    def hours_left(self, now: float) -> float | None:
        """Return the hours until the source discards what the sink furthest behind still needs. `now` is
        the source's time, in Unix seconds."""
        places = [checkpoint.resume for checkpoint in self.course.checkpoints.values() if checkpoint.position]
        if not places:
            return None
        place = min(places, key=lambda place: place.ts)
        return self._source.hours_left(place, max(0.0, now - physical_ms(place.ts) / 1000))

    @property
    def is_connected(self) -> bool:
        """True if the source is connected and none of its parts is being retried."""
        puller = self.puller_statistics
        retried = any(not who.startswith("sink ") for who in self.course.retries)
        return puller is not None and puller.connected_at > 0 and not retried

    def furthest(self, positions: Iterable[str]) -> str:
        """Return the last of the positions in the source's order; empty if all are."""
        return max(filter(None, positions), key=self._source.rank, default="")

    def waits(self) -> list[Wait]:
        """Return all waits, from the source to the sinks."""
        stages = self.stages
        return waits_of(
            self._clock.now(),
            self.course,
            self._source,
            stages.sorter,
            stages.sinks.deliveries,
            compute=stages.compute,
            blocking=stages.blocking,
        )
