"""The actor that receives reports of every stage, and the state made of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from threading import Event
from typing import TypeAlias, assert_never

from msgspec import Struct

from ..actors import Clock, Failed, PooledActor, Signal
from ..errors import SinkError, TidemillError
from ..events import Checkpoint, TablePosition
from ..puller.puller import Connected, Retrying, SnapshotReport, SourceReport, StopRequested
from ..sink import Acknowledged, FromSink, Review, Seek
from ..sorter import EventSorter
from ..sources.source import Rank, Source
from .failures import Retry, accounted, blamed_part
from .lag_model import LagModel
from .sinks import AbandonedSink

log = logging.getLogger("tidemill")


class SeekRequested(TidemillError):
    """A stage needs the source read again: the next pipeline begins at `at`, or before it."""

    def __init__(self, sink: str, place: TablePosition) -> None:
        super().__init__(f"sink {sink} goes back to {place.position}")
        self.at = place


class Course:
    """State of a pipeline's run. Changed in the Coordinator's turns, and in the feed's thread once they are
    over; any thread may read it, as its values are replaced as a whole."""

    def __init__(self, clock: Clock, over: Signal | None = None) -> None:
        self.over: Signal = over if over is not None else Event()
        self.error: BaseException | None = None
        """Reason of the end; None if the pipeline reached its end or was stopped."""
        self.blamed = ""
        """The part whose error it is: "source", "sink copy", or another; empty if that isn't known."""
        self.stop_requested = False
        """True if the feed is to be stopped with this pipeline."""
        self.reconnects = 0
        """Number of connections of the source after a failure."""
        self.progressed = False
        """True if a sink has acknowledged a checkpoint."""
        self.retries: dict[str, Retry] = {}
        self.snapshot: SnapshotReport | None = None
        self.checkpoints: dict[str, Checkpoint] = {}
        """Last acknowledged checkpoint by sink, without sinks that have none."""
        self.abandoned: list[AbandonedSink] = []
        """Sinks that still waited for their targets when the pipeline was closed."""
        self._clock = clock

    def note(self, error: BaseException) -> None:
        """Keep an error of the pipeline's closing, unless the pipeline has ended by another one."""
        if self.error is None:
            self.error = error
        else:
            log.error("while the feed's parts were closed", exc_info=error)

    def fails(self, who: str, error: str, seconds: float) -> None:
        """Note that `who` failed and retries in `seconds`."""
        now = self._clock.now()
        before = self.retries.get(who)
        retry = Retry(who, error, now + seconds, before.since if before is not None else now)
        self.retries = {**self.retries, who: retry}

    def recovers(self, who: str) -> None:
        if who in self.retries:
            self.retries = {name: retry for name, retry in self.retries.items() if name != who}

    def end(self, error: BaseException | None) -> None:
        """End the pipeline: by its first error, or because it is done.

        A sink's error while it is stopped counts too: rows that it was given, or acknowledged, aren't in its
        target.
        """
        if not self.over.is_set():
            self.error = error
            self.over.set()
        elif self.error is None and isinstance(error, SinkError):
            self.error = error


class End:
    """The end of a feed, `until`, as a condition on a sink's checkpoint. Any thread."""

    def __init__(
        self,
        until: Rank | None,
        rank: Callable[[str], Rank],
        waiting_shards: Callable[[str], Collection[str]],
    ) -> None:
        """`until` is the rank of a position, None for a feed without an end. `waiting_shards` returns, for a
        sink's name, the origin names of tables whose rows wait for other shards: they don't keep it from the
        end."""
        self.until = until
        self._rank = rank
        self._waiting_shards = waiting_shards

    def is_reached(self, sink: str, checkpoint: Checkpoint) -> bool:
        until = self.until
        if until is None or not checkpoint.is_loaded or not checkpoint.position:
            return False
        waiting = self._waiting_shards(sink)
        lags = [
            own.position
            for name, own in checkpoint.tables.items()
            if own.ts < checkpoint.ts and name not in waiting
        ]
        return all(self._rank(position) >= until for position in [checkpoint.position, *lags])


class Started(Struct, frozen=True):
    """To the coordinator: the source has started, and what the sinks acknowledge counts from now on."""

    sorter: EventSorter
    end: End


Report: TypeAlias = Started | FromSink | Review | SourceReport | Failed


class Coordinator(PooledActor[Report]):
    """Receives reports of every stage, has what every sink has acknowledged freed, and ends the pipeline when
    all sinks have reached its end."""

    def __init__(self, course: Course, source: Source, sinks_count: int, lag: LagModel) -> None:
        super().__init__()
        self._lag = lag
        self._course = course
        self._source = source
        self._sinks_count = sinks_count
        self._started: Started | None = None

    def on_receive(self, message: Report) -> None:
        course = self._course
        match message:
            case Acknowledged(sink, checkpoint):
                course.progressed = True
                self._lag.acknowledged(sink, checkpoint, (self.clock.now(), self.clock.time()))
                course.checkpoints = {**course.checkpoints, sink: checkpoint}
                course.recovers(f"sink {sink}")
                self._free()
                self._finish_if_done()
            case Started():
                self._started = message
                self._finish_if_done()
            case Review():
                self._finish_if_done()
            case Seek(sink, place):
                self._seek(sink, place)
            case Failed(error=error, name=name, restart_seconds=seconds):
                if seconds is None:
                    course.blamed = course.blamed or blamed_part(str(name))
                    course.end(accounted(name, error))
                else:
                    course.fails(name, str(error), seconds)
            case Connected(who=who):
                course.reconnects += who in course.retries
                course.recovers(who)
            case Retrying(error, seconds, who):
                course.fails(who, error, seconds)
            case StopRequested():
                course.stop_requested = True
                course.end(None)
            case SnapshotReport():
                course.snapshot = message
            case _:
                assert_never(message)

    def _seek(self, sink: str, place: TablePosition) -> None:
        try:
            self._source.check_seek(place.position)
        except TidemillError as error:
            self._course.end(error)
        else:
            self._course.end(SeekRequested(sink, place))

    def _free(self) -> None:
        """Pass on the ts up to which every sink is complete."""
        checkpoints = self._course.checkpoints
        if self._started is not None and len(checkpoints) == self._sinks_count:
            ts = min(one.resume.ts for one in checkpoints.values())
            self._started.sorter.acknowledge(ts)
            self._source.acknowledged(ts)

    def _finish_if_done(self) -> None:
        started, checkpoints = self._started, self._course.checkpoints
        if (
            started is not None
            and len(checkpoints) == self._sinks_count
            and all(started.end.is_reached(sink, one) for sink, one in checkpoints.items())
        ):
            self._course.end(None)
