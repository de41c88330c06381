"""The stages, wired: one source, one sorter, some sinks. The only module that knows them all."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from threading import Event
from typing import Any

import pykka

from ..actors import ActorSystem, Clock, Failed, MailboxFull, PooledActor, PooledRef, Waiting
from ..errors import CheckpointError, ConfigError, InvariantViolated, Retryable, TidemillError
from ..events import Checkpoint, Item, Sorted, Transaction
from ..puller.puller import Connected, PullerStatistics, Retrying, SnapshotReport
from ..sink import Acknowledged, Deliver, Delivery, Flush, Sink, spawn_sink
from ..sorter import open_sorter
from ..sources.source import Source, SourceInfo, Stages, no_table_matches
from .checkpoint import ON_SPARK, lowest
from .options import FeedOptions, open_source
from .status import Retry, Wait

log = logging.getLogger("tidemill")

BUSY_SECONDS = 1.0
"""What is in a driver for longer is said to wait for an answer."""
STOP_SECONDS = 8.0
"""So long sinks may take to write what they have: less than the ten after which many a system kills."""
LEAVE_SECONDS = 0.5
"""What still waits for an answer from outside then is left behind: nothing is lost by that."""


class Counts:
    """What was handed to the sinks."""

    rows = 0
    transactions = 0
    """With rows; a large one counts at its end."""
    _has_rows = False

    def add(self, items: Sequence[Item]) -> None:
        rows = transactions = 0
        has_rows = self._has_rows
        for item in items:
            if isinstance(item, Transaction):
                count = len(item.rows)
                rows += count
                has_rows = has_rows or count > 0
                if item.last:
                    transactions += has_rows
                    has_rows = False
        self._has_rows = has_rows
        self.rows += rows
        self.transactions += transactions


class DecodeActor(PooledActor):
    """Turns what the sorter releases into items, once for all sinks.

    With `until`, the rank of a position, nothing leaves that begins behind it; but while tables are
    `loading` everything does: a snapshot takes up what was logged before it, and is given whole.
    """

    def __init__(
        self,
        source: Source,
        sinks: Sequence[PooledRef[Any]],
        counts: Counts,
        until: Any,
        loading: bool,
    ) -> None:
        super().__init__()
        self._until = until
        self._passed = False
        self._loading = loading
        self._source = source
        self._sinks = sinks
        self._counts = counts

    def on_receive(self, message: Sorted | Deliver) -> None:
        items = message.items if isinstance(message, Deliver) else self._source.mount(message)
        if self._until is not None:
            items = self._up_to(items, self._until)
        if not items:
            return
        self._counts.add(items)
        deliver = Deliver(items)
        for sink in self._sinks:
            self.send(sink, deliver)

    def _up_to(self, items: list[Item], until: Any) -> list[Item]:
        if self._passed:
            return []
        for number, item in enumerate(items):
            if self._loading:
                self._loading = not _ends_snapshot(item)
            if not self._loading and item.position and self._source.rank(item.position) >= until:
                self._passed = True
                # Others of the same ts included: the checkpoint will be behind them all.
                return items[:number] + [one for one in items[number:] if one.commit_ts == item.commit_ts]
        return items


class Coordinator(PooledActor):
    """Hears from every stage, and says when the pipeline is over."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__()
        self._pipeline = pipeline

    def on_receive(self, message: object) -> None:
        self._pipeline.hear(message)


class Pipeline:
    """All stages at work, from the sinks' checkpoints on.

    Everything is stopped by `close`. `hear` runs in the Coordinator's turns, the rest in the feed's
    thread; what others read is replaced as a whole, never changed.
    """

    def __init__(
        self, options: FeedOptions, sinks: Sequence[Sink], clock: Clock, source: Source | None = None
    ) -> None:
        """Connect and start; `source` may stand in place of what the options name. Raises Retryable and
        Fatal; then nothing is left running."""
        self.over = Event()
        self.error: BaseException | None = None
        self.progressed = False
        self.source = ""
        self.counts = Counts()
        self.unanswered: list[str] = []
        """Sinks that were left behind, waiting for their targets: nobody may use them any more."""
        self.retries: dict[str, Retry] = {}
        self.snapshot: SnapshotReport | None = None
        self.checkpoints: dict[str, Checkpoint] = {}
        self.puller_statistics: PullerStatistics | None = None
        self._options = options
        self._clock = clock
        self._until: Any = None
        """The rank of the position where the feed ends."""
        self._source = source or open_source(options, clock)
        with ExitStack() as stack:
            self._start(stack, sinks)
            self._stack = stack.pop_all()

    def _start(self, stack: ExitStack, sinks: Sequence[Sink]) -> None:
        options, clock = self._options, self._clock
        found = {}
        for sink in sinks:
            stack.callback(self._let_go, sink)
            with _blamed(f"sink {sink.name}"):
                found[sink.name] = sink.open()
        stack.callback(self._source.close)
        with _blamed("source"):
            there = self._source.look()
        self.source = there.source
        self.admit(there)
        for name, at in found.items():
            if at is not None:
                self._reject_foreign(name, at, there)
        rank = self._source.rank
        if options.until:
            self._until = rank(there.end if options.until == "now" else options.until)
        if not options.source.loads:
            found = {name: at or Checkpoint(0, "", None, there.source) for name, at in found.items()}
        start = lowest(found.values(), order=rank)
        sink_checkpoints = [at for at in found.values() if at is not None and at.position]
        check_patterns(options, anew=not sink_checkpoints)
        self.checkpoints = {name: at for name, at in found.items() if at is not None}

        self.compute = ActorSystem("compute", workers=2, clock=clock)
        self.blocking = ActorSystem("blocking", workers=len(sinks) + 1, clock=clock)
        stack.callback(_stop_system, self.blocking, LEAVE_SECONDS)
        stack.callback(_stop_system, self.compute, STOP_SECONDS)
        coordinator = self.compute.spawn(Coordinator, self, name="coordinator", capacity=1024)
        self.deliveries = [Delivery(sink, found[sink.name], there.source) for sink in sinks]
        self._sinks = [spawn_sink(self.blocking, delivery, coordinator) for delivery in self.deliveries]
        self.mount = self.compute.spawn(
            DecodeActor,
            self._source,
            self._sinks,
            self.counts,
            self._until,
            any(at is None or at.loading is not None for at in found.values()),
            name="mount",
            capacity=4,
            supervisor=coordinator,
        )
        self.sorter = open_sorter(options.sorter, self.compute, self.mount, coordinator)
        stack.callback(self.sorter.close)
        with _blamed("source"):
            self._source.start(
                Stages(
                    self.compute, self.blocking, self.sorter, self.mount, coordinator, start, sink_checkpoints
                )
            )
        self._finish_if_done()

    def admit(self, found: SourceInfo) -> None:
        """Raise ConfigError for a pattern without a table: what it should match would be missing silently."""
        unmatched = self._options.tables.unmatched(found.tables)
        if unmatched:
            raise ConfigError(no_table_matches(unmatched))

    def _reject_foreign(self, name: str, at: Checkpoint, found: SourceInfo) -> None:
        """Raise CheckpointError unless this source can be followed from there."""
        source = self._source
        if at.source.startswith(ON_SPARK):
            raise CheckpointError(
                f"sink {name} is written by Spark ({at.source}): go on with --engine spark, or name another "
                "target"
            )
        if at.source not in ("", found.source):
            raise CheckpointError(
                f"sink {name} has what came from {at.source}, and {source.address} is {found.source}: "
                "connect to that server, or name another target"
            )
        if at.position and source.rank(at.position) > source.rank(found.end):
            raise CheckpointError(source.behind(name, at.position, found.end))

    # --- in the coordinator's turns ----------------------------------------------------------------

    def hear(self, message: object) -> None:
        match message:
            case Acknowledged(sink, checkpoint):
                self.progressed = True
                self.checkpoints = {**self.checkpoints, sink: checkpoint}
                self._recovered(f"sink {sink}")
                if len(self.checkpoints) == len(self._sinks):
                    ts = min(at.ts for at in self.checkpoints.values())
                    self.sorter.acknowledge(ts)
                    self._source.acknowledged(ts)
                self._finish_if_done()
            case Failed(error=error, name=name, restart_seconds=None):
                self.end(_accounted(name, error))
            case Failed(error=error, name=name, restart_seconds=float(seconds)):
                self.fails(name, str(error), seconds)
            case Connected():
                self._recovered("source")
            case Retrying(error, seconds):
                self.fails("source", error, seconds)
            case SnapshotReport():
                self.snapshot = message
            case _:
                raise InvariantViolated(f"the coordinator got {message!r}")

    def fails(self, who: str, error: str, seconds: float) -> None:
        """Somebody has no answer for now, and tries again in `seconds`."""
        now = self._clock.now()
        before = self.retries.get(who)
        retry = Retry(who, error, now + seconds, before.since if before is not None else now)
        self.retries = {**self.retries, who: retry}

    def _recovered(self, who: str) -> None:
        if who in self.retries:
            self.retries = {name: retry for name, retry in self.retries.items() if name != who}

    def _finish_if_done(self) -> None:
        until = self._until
        if (
            until is not None
            and len(self.checkpoints) == len(self._sinks)
            and all(
                at.loading is None and at.position and self._source.rank(at.position) >= until
                for at in self.checkpoints.values()
            )
        ):
            self.end(None)

    def end(self, error: BaseException | None) -> None:
        """The pipeline is over: by its first error, or done."""
        if not self.over.is_set():
            self.error = error
            self.over.set()

    # --- in the feed's thread --------------------------------------------------------------------

    def close(self) -> None:
        """Stop reading, let the sinks finish what they have, and stop everything."""
        with self._stack:
            self._source.stop()
            self.mount.stop(block=False)
            until = self._clock.now() + STOP_SECONDS
            stops = [ref.stop(block=False) for ref in self._sinks]
            for delivery, stopped in zip(self.deliveries, stops, strict=True):
                try:
                    stopped.get(timeout=max(0.0, until - self._clock.now()))
                except pykka.Timeout:
                    self.unanswered.append(delivery.sink.name)

    def _let_go(self, sink: Sink) -> None:
        if sink.name not in self.unanswered:  # else a thread is still in it
            sink.close()

    def flush(self) -> None:
        """Ask the sinks to save their checkpoints; one that is busy does so anyway when it is free."""
        for ref in self._sinks:
            with suppress(MailboxFull, pykka.ActorDeadError):
                ref.try_tell(Flush())

    def ask_puller(self) -> None:
        self.puller_statistics = self._source.statistics() or self.puller_statistics

    def furthest(self, positions: Iterable[str]) -> str:
        """The last of the positions in the source's order; empty if all are."""
        return max(filter(None, positions), key=self._source.rank, default="")

    def _turns(self) -> Iterator[tuple[str, str, float]]:
        """Who is in a driver, for whose answer, since when."""
        places = {f"sink {delivery.sink.name}": delivery.sink.target for delivery in self.deliveries}
        for actor in self.blocking.statistics().actors:
            if actor.turn_since is not None:
                who = actor.name if actor.name in places else "source"
                yield who, places.get(who, self._source.address), actor.turn_since

    def waits(self) -> list[Wait]:
        """What waits on what, from the source to the sinks."""
        now = self._clock.now()
        found = [retry.wait(now) for retry in self.retries.values()]
        found += [
            Wait(who, f"an answer of {where}", now - since)
            for who, where, since in self._turns()
            if now - since > BUSY_SECONDS
        ]
        found += [
            Wait(wait.name, f"room in {wait.waiting_on}{_behind(wait)}", now - wait.since)
            for system in (self.compute, self.blocking)
            for wait in system.waiting()
        ]
        found += self._source.waits()
        known = {wait.who for wait in found}
        found += [
            Wait(wait.what, wait.on, now - wait.since)
            for wait in self.sorter.explain()
            if wait.what not in known
        ]
        named = self._source.named
        return [Wait(named(wait.who), named(wait.on), wait.seconds) for wait in found]


def _behind(wait: Waiting) -> str:
    """What piles up behind it, if it is an actor that has anything."""
    return f"; {wait.depth} of {wait.capacity} messages are behind it" if wait.depth else ""


class Unavailable(Retryable):
    """`who` can't do its part now."""

    def __init__(self, who: str, error: Retryable) -> None:
        super().__init__(str(error), error.wait)
        self.who = who


@contextmanager
def _blamed(who: str) -> Iterator[None]:
    try:
        yield
    except Retryable as error:
        raise Unavailable(who, error) from error


def _accounted(name: str, error: BaseException) -> BaseException:
    """Why an actor has stopped for good, as one of our errors."""
    if isinstance(error, Retryable):
        return Unavailable(name, error)
    if isinstance(error, TidemillError):
        return error
    log.error("%s failed", name, exc_info=error)
    found = InvariantViolated(f"{name} failed with {error!r}: please report this as a bug")
    found.__cause__ = error
    return found


def check_patterns(options: FeedOptions, *, anew: bool) -> None:
    """Keep the patterns beside the checkpoints. Raises ConfigError if others were followed before."""
    path = options.data_dir / f"{options.name}.tables"
    patterns = json.dumps(options.tables.patterns)
    if not anew and path.exists() and (before := path.read_text()) != patterns:
        raise ConfigError(
            f"source.tables: this feed followed {before} so far, and what happened to other tables "
            "is missing in its targets: give a feed with other patterns a new name and target, or remove "
            f"{path} to go on all the same"
        )
    path.write_text(patterns)


def _ends_snapshot(item: Item) -> bool:
    return isinstance(item, Transaction) and item.chunk is not None and not item.chunk.table


def _stop_system(system: ActorSystem, seconds: float) -> None:
    try:
        system.stop(timeout=seconds)
    except pykka.Timeout as error:
        log.warning("stopped without waiting any longer: %s", error)
