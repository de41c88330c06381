"""The stages, wired: one source, one sorter, some sinks. The only module that knows them all."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from threading import Event
from typing import Any

import pykka

from .actors import ActorSystem, Clock, Failed, MailboxFull, PooledActor, PooledRef
from .checkpoint import lowest
from .codec.mysql.layout import Layouts
from .errors import CheckpointError, InvariantViolated, TidemillError
from .events import Checkpoint, Ddl, Item, Sorted, Transaction, row_count
from .mounter import Mounter
from .options import FeedOptions
from .puller.mysql.position import Position
from .puller.mysql.probe import probe
from .puller.mysql.puller import MysqlPuller
from .puller.puller import Connected, PullerStatistics, Retrying, SnapshotProgress, Statistics
from .sink import Acknowledged, Deliver, Delivery, Flush, Sink, spawn_sink
from .sorter import open_sorter
from .status import Wait

log = logging.getLogger("tidemill")

STREAM = 1
"""The sorter's number for the keyspace of a source that is one stream."""
ANSWER_SECONDS = 0.5
"""A puller that is busy for longer is shown with its last statistics."""
STOP_SECONDS = 30.0
"""A stage that doesn't return for this long is left behind."""


class Counts:
    """What was handed to the sinks."""

    rows = 0
    transactions = 0


class Mount(PooledActor):
    """Turns what the sorter releases into items, once for all sinks.

    With `until`, the rank of a position, nothing leaves that begins behind it.
    """

    def __init__(
        self,
        mounter: Mounter,
        sinks: Sequence[PooledRef[Any]],
        counts: Counts,
        until: tuple[int, int] | None,
    ) -> None:
        super().__init__()
        self._until = until
        self._passed = False
        self._mounter = mounter
        self._sinks = sinks
        self._counts = counts

    def on_receive(self, message: Sorted) -> None:
        items = self._mounter.mount(message.pieces)
        if self._until is not None:
            items = self._up_to(items, self._until)
        if not items:
            return
        self._counts.rows += row_count(items)
        self._counts.transactions += sum(item.last for item in items)
        deliver = Deliver(items)
        for sink in self._sinks:
            self.send(sink, deliver)

    def _up_to(self, items: list[Item], until: tuple[int, int]) -> list[Item]:
        if self._passed:
            return []
        for number, item in enumerate(items, 1):
            if item.position and not _loads(item) and Position.parse(item.position).rank >= until:
                self._passed = True
                return items[:number]
        return items


class Conductor(PooledActor):
    """Hears from every stage, and says when the pipeline is over."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__()
        self._pipeline = pipeline

    def on_receive(self, message: object) -> None:
        self._pipeline.hear(message)


class Pipeline:
    """All stages at work, from the sinks' checkpoints on.

    Everything is stopped by `close`. `hear` runs in the Conductor's turns, the rest in the feed's
    thread; what others read is replaced as a whole, never changed.
    """

    def __init__(self, options: FeedOptions, sinks: Sequence[Sink], clock: Clock) -> None:
        """Connect and start. Raises Retryable and Fatal; then nothing is left running."""
        self.over = Event()
        self.error: BaseException | None = None
        self.progressed = False
        self.source = ""
        self.counts = Counts()
        self.retrying: tuple[Retrying, float] | None = None
        self.snapshot: SnapshotProgress | None = None
        self.sink_retries: dict[str, tuple[str, float]] = {}
        self.checkpoints: dict[str, Checkpoint] = {}
        self.puller_statistics: PullerStatistics | None = None
        self._options = options
        self._clock = clock
        self._until: tuple[int, int] | None = None
        with ExitStack() as stack:
            self._start(stack, sinks)
            self._stack = stack.pop_all()

    def _start(self, stack: ExitStack, sinks: Sequence[Sink]) -> None:
        options, clock = self._options, self._clock
        found = {}
        for sink in sinks:
            stack.callback(sink.close)
            found[sink.name] = sink.open()
        found_source = probe(options.source)
        self.source = source = found_source.source
        for name, at in found.items():
            if at is not None and at.source not in ("", source):
                raise CheckpointError(
                    f"sink {name} has what came from {at.source}, and {options.source.address} is {source}: "
                    "connect to that server, or name another target"
                )
        if options.until:
            end = found_source.end if options.until == "now" else Position.parse(options.until)
            self._until = end.rank
        if not options.source.snapshot:
            found = {name: at or Checkpoint(0, "", None, source) for name, at in found.items()}
        start = lowest(found.values(), order=lambda text: Position.parse(text).rank)
        anchors = [at for at in found.values() if at is not None and at.position]
        self.checkpoints = {name: at for name, at in found.items() if at is not None}

        self.compute = ActorSystem("compute", workers=2, clock=clock)
        self.blocking = ActorSystem("blocking", workers=len(sinks) + 1, clock=clock)
        stack.callback(_stop_system, self.blocking)
        stack.callback(_stop_system, self.compute)
        conductor = self.compute.spawn(Conductor, self, name="conductor", capacity=1024)
        self.deliveries = [Delivery(sink, found[sink.name], source) for sink in sinks]
        self._sinks = [spawn_sink(self.blocking, delivery, conductor) for delivery in self.deliveries]
        layouts = Layouts()
        mounter = Mounter(layouts, source, options.tables)
        self.mount = self.compute.spawn(
            Mount,
            mounter,
            self._sinks,
            self.counts,
            self._until,
            name="mount",
            capacity=4,
            supervisor=conductor,
        )
        self.sorter = open_sorter(options.sorter, self.compute, self.mount, conductor)
        stack.callback(self.sorter.close)
        writer = self.sorter.add_table(STREAM, start.ts if start is not None else 0)
        self._puller = self.blocking.spawn(
            MysqlPuller,
            options.source,
            options.tables.matches,
            layouts,
            writer,
            observer=conductor,
            start=start,
            anchors=anchors,
            name="puller",
            supervisor=conductor,
        )
        self._finish_if_done()

    # --- in the conductor's turns ----------------------------------------------------------------

    def hear(self, message: object) -> None:
        match message:
            case Acknowledged(sink, checkpoint):
                self.progressed = True
                self.checkpoints = {**self.checkpoints, sink: checkpoint}
                self.sink_retries.pop(f"sink-{sink}", None)
                if len(self.checkpoints) == len(self._sinks):
                    self.sorter.acknowledge(min(at.ts for at in self.checkpoints.values()))
                self._finish_if_done()
            case Failed(error=error, name=name, restart_seconds=None):
                self._end(self._blamed(name, error))
            case Failed(error=error, name=name, restart_seconds=seconds):
                self.sink_retries[name] = str(error), self._clock.now() + (seconds or 0.0)
            case Connected():
                self.retrying = None
            case Retrying():
                self.retrying = message, self._clock.now() + message.seconds
            case SnapshotProgress():
                self.snapshot = message
            case _:
                raise InvariantViolated(f"the conductor got {message!r}")

    def _blamed(self, name: str, error: BaseException) -> BaseException:
        if isinstance(error, TidemillError):
            return error
        log.error("%s failed", name, exc_info=error)
        blamed = InvariantViolated(f"{name} failed with {error!r}: please report this as a bug")
        blamed.__cause__ = error
        return blamed

    def _finish_if_done(self) -> None:
        until = self._until
        if (
            until is not None
            and len(self.checkpoints) == len(self._sinks)
            and all(
                at.loading is None and at.position and Position.parse(at.position).rank >= until
                for at in self.checkpoints.values()
            )
        ):
            self._end(None)

    def _end(self, error: BaseException | None) -> None:
        if not self.over.is_set():
            self.error = error
            self.over.set()

    # --- in the feed's thread --------------------------------------------------------------------

    def close(self) -> None:
        """Stop reading, let the sinks finish what they have, and stop everything."""
        with self._stack:
            self._puller.stop(block=False)
            self.mount.stop(block=False)
            for ref in self._sinks:
                try:
                    ref.stop(timeout=STOP_SECONDS)
                except pykka.Timeout:
                    log.warning("%s doesn't return; it is left behind", ref.name)

    def flush(self) -> None:
        """Ask the sinks to save their checkpoints; one that is busy does so anyway when it is free."""
        for ref in self._sinks:
            with suppress(MailboxFull, pykka.ActorDeadError):
                ref.try_tell(Flush())

    def ask_puller(self) -> None:
        with suppress(pykka.Timeout, pykka.ActorDeadError):
            self.puller_statistics = self._puller.ask(Statistics(), timeout=ANSWER_SECONDS)

    def warning(self) -> str:
        """What is being retried, and when next; empty while nothing is."""
        found = [f"{who}: {text}" for who, text in self._retries()]
        return "; ".join(found)

    def sink_detail(self, name: str) -> str:
        return next((text for who, text in self._retries() if who == f"sink-{name}"), "")

    def _retries(self) -> list[tuple[str, str]]:
        now = self._clock.now()
        retries = list(self.sink_retries.items())
        if self.retrying is not None:
            retries.insert(0, ("source", (self.retrying[0].error, self.retrying[1])))
        return [
            (who, f"{error}; trying again in {max(0.0, when - now):.1f} s") for who, (error, when) in retries
        ]

    def waits(self) -> list[Wait]:
        """What waits on what, from the source to the sinks."""
        now = self._clock.now()
        found = [Wait(who, text, 0.0) for who, text in self._retries()]
        found += [
            Wait(wait.name, f"room in {wait.waiting_on}", now - wait.since)
            for system in (self.compute, self.blocking)
            for wait in system.statistics().waiting
        ]
        known = {wait.who for wait in found}
        found += [
            Wait(wait.what, wait.on, now - wait.since)
            for wait in self.sorter.explain()
            if wait.what not in known
        ]
        return found


def _loads(item: Item) -> bool:
    """Whether it is part of a snapshot that isn't over with it: the snapshot is delivered whole."""
    return (isinstance(item, Ddl) and not item.query) or (
        isinstance(item, Transaction) and item.chunk is not None and bool(item.chunk.table)
    )


def _stop_system(system: ActorSystem) -> None:
    try:
        system.stop(timeout=STOP_SECONDS)
    except pykka.Timeout as error:
        log.warning("%s", error)
