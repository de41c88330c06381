"""Wiring of the stages: one source, one sorter, one or more sinks. The only module that knows them all."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pykka
from msgspec.structs import replace

from ..actors import ActorSystem, Clock, MailboxFull, PooledRef
from ..chain import Stage
from ..events import REST, Checkpoint, TablePosition, Ts, Wait
from ..puller.puller import PullerStatistics
from ..sharding import LockStatus, Unlock
from ..sink import (
    Delivery,
    Flush,
    LoadAgain,
    LoadRequired,
    Review,
    Sink,
    SinkFactory,
    ToSink,
    spawn_sink,
)
from ..sorter import open_sorter
from ..sources.source import Source, SourceInfo, StartContext
from .abandoned import AbandonedSink
from .beginning import beginning, continued_identity, named_sources
from .chains import Chains
from .coordination import Coordination
from .coordinator import Coordinator, Course
from .decode import Counts, DecodeActor
from .merge import check_merge, with_shards
from .options import FeedOptions, open_source
from .patterns import keep_patterns, reject_unmatched
from .renewal import Renewed, renew
from .startup import Startup
from .teardown import Teardown
from .unavailable import blamed
from .waits import waits_of

log = logging.getLogger("tidemill")

STOP_SECONDS = 8.0
"""Shutdown grace period for sinks; below the usual 10 s before SIGKILL."""
LEAVE_SECONDS = 0.5
"""Timeout of closing after which threads in driver calls are abandoned; no data is lost."""


_NO_STAGES: Mapping[str, Sequence[Stage]] = {}
_NO_TABLES: Mapping[str, Collection[str]] = {}


class Pipeline:
    """All stages, running from the sinks' checkpoints on.

    `close` stops everything. Its `course` changes in the Coordinator's turns, the rest in the feed's thread.
    """

    def __init__(
        self,
        options: FeedOptions,
        sinks: Sequence[SinkFactory],
        clock: Clock,
        *,
        source: Source | None = None,
        course: Course | None = None,
        startup: Startup | None = None,
        stages: Mapping[str, Sequence[Stage]] = _NO_STAGES,
        seek: TablePosition | None = None,
        load_again: Mapping[str, Collection[str]] = _NO_TABLES,
        renews: bool = False,
        unlock: Sequence[Unlock] = (),
        keeps_state: bool = True,
    ) -> None:
        """Connect and start, with a new sink of each factory.

        `source` replaces the one that the options name, `course` a new one; `startup` gets the steps.
        `stages` contains additional stages of sinks' chains, by the sink's name. The source begins no later
        than at `seek`. `load_again` contains full names of tables to load again, by the sink's name; `unlock`
        requests about schema changes of merged tables. With `renews`, all tables are loaded again: the sinks'
        checkpoints say so once it raises Renewed. With `keeps_state`, the source keeps its state in the
        feed's directory. Raises Retryable and Fatal; then only sinks in `course.abandoned` are left running.
        """
        self.course = course or Course(clock)
        self.source = ""
        """The source's identity."""
        self.counts = Counts()
        self.puller_statistics: PullerStatistics | None = None
        self._coordination: Coordination | None = None
        """Coordination with other feeds that write into the same merged tables; None if there are none."""
        self._names: Sequence[str] = ()
        """Names of several sources whose tables may have equal names."""
        self._options = options
        self._clock = clock
        self._until: Any = None
        """Return the rank of the position where the feed ends."""
        self._stages = stages
        self._seek = seek
        self._requested = load_again
        self._renews = renews
        self._unlocks = unlock
        self._keeps_state = keeps_state
        self._asked = {table for tables in load_again.values() for table in tables}
        self._startup = startup or Startup(clock)
        self._source = source or open_source(options, clock)
        made = [factory.new() for factory in sinks]
        # A shard is a part of a table, and can't be loaded again by itself.
        self._can_reload = (
            self._source.traits.reloads
            and not options.routes
            and all(sink.traits.loads_tables for sink in made)
        )
        self._awaits_load = bool(self._asked) and self._can_reload
        """True if a sink is asked to load tables again: then this pipeline ends by LoadRequired."""
        self._is_started = False
        self.deliveries: list[Delivery] = []
        self._sinks: list[PooledRef[ToSink]] = []
        self._teardown = Teardown()
        try:
            self._start(self._teardown, made)
        except BaseException:
            self._teardown.add(self._stop_sinks)
            if (error := self._teardown.run()) is not None:
                log.error("while a start that failed was undone", exc_info=error)
            raise

    def _start(self, teardown: Teardown, sinks: Sequence[Sink]) -> None:
        options, clock, step = self._options, self._clock, self._startup.step
        found: dict[str, Checkpoint | None] = {}
        for sink in sinks:
            teardown.add(partial(self._let_go, sink))
            with step(f"sink {sink.name}", sink.target):
                found[sink.name] = sink.open()
        teardown.add(self._source.close)
        with step("source", self._source.address):
            there = self._source.look()
        self._names = named_sources(options, there)
        identity = continued_identity(self._source, there, found, renews=self._renews)
        if self._renews:
            renew(options, self._source, sinks, found, there.source, clock.time())
            raise Renewed
        for sink in sinks:
            if (at := found[sink.name]) is not None:
                found[sink.name] = with_shards(options, self._source, sink, at)
        self.source = identity
        if options.sharding.is_shared:
            self._coordinate(teardown, there.names)
        rank = self._source.rank
        if options.until:
            self._until = rank(there.end if options.until == "now" else options.until)
        begins = beginning(options, self._source, there, identity, found)
        start, sink_checkpoints, found = begins.start, begins.placed, begins.checkpoints
        seek = self._seek
        if start is not None and start.position and seek and rank(seek.position) < rank(start.position):
            start = replace(start, ts=seek.ts, position=seek.position)
        if not sink_checkpoints:  # later all tables of a pattern may have been dropped
            self.admit(there)
            if options.routes:
                check_merge(options, self._source)
        keep_patterns(options, is_new=not sink_checkpoints)
        self.course.checkpoints = {name: at for name, at in found.items() if at is not None}

        self._chains = Chains(options, self._names, self._stages, self._coordination, self._look_for_end)
        teardown.add(self._close_chains)
        self.compute = ActorSystem("compute", workers=2, clock=clock)
        self.blocking = ActorSystem("blocking", workers=len(sinks) + 1, clock=clock)
        teardown.add(partial(_stop_system, self.blocking, LEAVE_SECONDS))
        teardown.add(partial(_stop_system, self.compute, STOP_SECONDS))
        coordinator = self._coordinator = self.compute.spawn(
            Coordinator,
            self.course,
            len(sinks),
            self._acknowledged,
            self._is_at_end,
            self._source.check_seek,
            name="coordinator",
            capacity=1024,
        )
        self.deliveries = [self._deliver(sink, found[sink.name], identity) for sink in sinks]
        for stage in self._chains.shards.values():
            stage.unlock(self._unlocks)
        self._sinks = [spawn_sink(self.blocking, delivery, coordinator) for delivery in self.deliveries]
        self.decoder = self.compute.spawn(
            DecodeActor,
            self._source,
            self._sinks,
            self.counts,
            self._until,
            any(at is None or at.loading is not None for at in found.values()),
            name="decoder",
            capacity=4,
            supervisor=coordinator,
        )
        self.sorter = open_sorter(options.sorter, self.compute, self.decoder, coordinator)
        teardown.add(self.sorter.close)
        self._ask(self._requested)
        with step("source", self._source.address):
            self._source.start(
                StartContext(
                    self.compute,
                    self.blocking,
                    self.sorter,
                    self.decoder,
                    coordinator,
                    start,
                    sink_checkpoints,
                    state_dir=options.data_dir if self._keeps_state else None,
                    requested=self._requested_of_all,
                )
            )
        self._is_started = True

    @property
    def _requested_of_all(self) -> frozenset[str]:
        """Tables that every sink that wants them is asked to load again."""
        names = [delivery.sink.name for delivery in self.deliveries]
        return frozenset(
            table
            for table in self._asked
            if self._can_reload
            and all(
                table in self._requested.get(name, ()) for name in names if self._options.wants(name, table)
            )
        )

    def _coordinate(self, teardown: Teardown, names: Sequence[str]) -> None:
        """Claim the feed among those that share its merged tables."""
        self._coordination = Coordination(self._options, names, self._clock)
        teardown.add(partial(self._let_others_go_on, self._coordination))
        with self._startup.step("coordination", self._coordination.address):
            self._coordination.open()

    def _deliver(self, sink: Sink, at: Checkpoint | None, source: str) -> Delivery:
        with blamed(f"sink {sink.name}"):
            return Delivery(
                sink,
                at,
                source,
                stages=self._chains.chain(
                    sink.name,
                    at,
                    needs_key=sink.traits.needs_key,
                    copies_definitions=sink.traits.copies_definitions,
                ),
                feed=self._options.name,
                now=self._clock.now,
                can_reload=self._can_reload,
                is_end=partial(self._is_at_end, sink.name),
            )

    def admit(self, found: SourceInfo) -> None:
        """Raise ConfigError if the feed can't follow this source."""
        reject_unmatched(self._options, found)

    # --- in the turns of the coordinator and the sinks -----------------------------------------------

    def _acknowledged(self, ts: Ts) -> None:
        if self._is_started:  # else only of a table that is to be loaded again; the next one is soon enough
            self.sorter.acknowledge(ts)
            self._source.acknowledged(ts)

    def _is_at_end(self, sink: str, at: Checkpoint) -> bool:
        until = self._until
        if self._awaits_load or until is None or at.loading is not None or not at.position:
            return False
        rank = self._source.rank
        waiting = self._chains.waiting_shards(sink)
        lags = [own.position for name, own in at.tables.items() if own.ts < at.ts and name not in waiting]
        return all(rank(position) >= until for position in [at.position, *lags])

    # --- in the feed's thread --------------------------------------------------------------------

    def close(self) -> None:
        """Stop reading, let the sinks write their waiting items, and stop everything.

        Doesn't raise: an error becomes the course's, unless the pipeline has ended by another one.
        """
        self._teardown.add(self._stop_sinks)
        self._teardown.add(lambda: self.decoder.stop(block=False))
        self._teardown.add(self._source.stop)
        if (error := self._teardown.run()) is not None:
            self.course.note(error)

    def _stop_sinks(self) -> None:
        until = self._clock.now() + STOP_SECONDS
        stops = [ref.stop(block=False) for ref in self._sinks]
        for delivery, stopped in zip(self.deliveries, stops, strict=False):
            try:
                stopped.get(timeout=max(0.0, until - self._clock.now()))
            except pykka.Timeout:
                self.course.abandoned.append(AbandonedSink(delivery, stopped))

    @property
    def _abandoned_names(self) -> list[str]:
        return [sink.name for sink in self.course.abandoned]

    def _let_go(self, sink: Sink) -> None:
        if sink.name not in self._abandoned_names:  # else it belongs to the thread in it
            sink.close()

    def _close_chains(self) -> None:
        self._chains.close(self._abandoned_names)

    def _let_others_go_on(self, coordination: Coordination) -> None:
        coordination.close(releases=not self.course.abandoned)

    def flush(self) -> None:
        """Ask the sinks to save their checkpoints; a busy sink flushes after its current batch."""
        for ref in self._sinks:
            with suppress(MailboxFull, pykka.ActorDeadError):
                ref.try_tell(Flush())

    def unlock(self, requests: Sequence[Unlock]) -> None:
        """Resolve schema changes of merged tables by request; called about twice a second, as a feed whose
        shards wait may have no other items."""
        if not self._chains.shards:
            return
        for stage in self._chains.shards.values():
            stage.unlock(requests)
        with suppress(MailboxFull, pykka.ActorDeadError):
            for ref in self._sinks:
                ref.try_tell(Review())
        self._look_for_end()

    def _look_for_end(self) -> None:
        """Ask the coordinator if the feed has ended: shards that wait don't keep it from that. Any thread."""
        with suppress(MailboxFull, pykka.ActorDeadError):
            self._coordinator.try_tell(Review())

    def load_again(self, tables: Collection[str]) -> None:
        """Ask the sinks to load tables again, by full name, each table once. REST, for all tables, ends the
        pipeline."""
        if REST in tables:
            self.course.end(LoadRequired((), "all tables are loaded again on request"))
            return
        new = [table for table in tables if table not in self._asked]
        if new:
            with suppress(MailboxFull, pykka.ActorDeadError):
                self._ask({delivery.sink.name: new for delivery in self.deliveries})
                self._asked.update(new)

    def _ask(self, load_again: Mapping[str, Collection[str]]) -> None:
        for delivery, ref in zip(self.deliveries, self._sinks, strict=True):
            name = delivery.sink.name
            wanted = tuple([table for table in load_again.get(name, ()) if self._options.wants(name, table)])
            if wanted and self._can_reload:
                self._awaits_load = True
                ref.try_tell(LoadAgain(wanted))
            elif wanted:
                log.warning("%s: this source can't load single tables again", ", ".join(wanted))

    def ask_puller(self) -> None:
        self.puller_statistics = self._source.statistics() or self.puller_statistics

    def furthest(self, positions: Iterable[str]) -> str:
        """Return the last of the positions in the source's order; empty if all are."""
        return max(filter(None, positions), key=self._source.rank, default="")

    def waits(self) -> list[Wait]:
        """Return all waits, from the source to the sinks."""
        return waits_of(
            self._clock.now(),
            self.course,
            self._source,
            self.sorter,
            self.deliveries,
            compute=self.compute,
            blocking=self.blocking,
        )

    def locks(self) -> list[LockStatus]:
        """Return the schema changes of merged tables that wait for shards."""
        return [lock for stage in self._chains.shards.values() for lock in stage.locks()]


def _stop_system(system: ActorSystem, seconds: float) -> None:
    try:
        system.stop(timeout=seconds)
    except pykka.Timeout as error:
        log.warning("stopped without waiting any longer: %s", error)
