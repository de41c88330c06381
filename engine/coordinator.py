"""The actor that receives reports of every stage, and the state made of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event
from typing import TypeAlias, assert_never

from ..actors import Clock, Failed, PooledActor
from ..errors import SinkError, TidemillError
from ..events import Checkpoint, TablePosition, Ts
from ..puller.puller import Connected, Retrying, SnapshotReport, SourceReport, StopRequested
from ..sink import Acknowledged, FromSink, Review, Seek
from .abandoned import AbandonedSink
from .status import Retry
from .unavailable import accounted

log = logging.getLogger("tidemill")


class SeekRequested(TidemillError):
    """A stage needs the source read again: the next pipeline begins at `at`, or before it."""

    def __init__(self, sink: str, at: TablePosition) -> None:
        super().__init__(f"sink {sink} goes back to {at.position}")
        self.at = at


class Course:
    """State of a pipeline's run. Changed in the Coordinator's turns, and in the feed's thread once they are
    over; any thread may read it, as its values are replaced as a whole."""

    def __init__(self, clock: Clock) -> None:
        self.over = Event()
        self.error: BaseException | None = None
        """Reason of the end; None if the pipeline reached its end or was stopped."""
        self.stop_requested = False
        """True if the feed is to be stopped with this pipeline."""
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


Report: TypeAlias = FromSink | Review | SourceReport | Failed


class Coordinator(PooledActor[Report]):
    """Receives reports of every stage, and ends the pipeline when all sinks have reached `until`."""

    def __init__(
        self,
        course: Course,
        sinks_count: int,
        acknowledged: Callable[[Ts], None],
        is_at_end: Callable[[str, Checkpoint], bool],
        check_seek: Callable[[str], None],
    ) -> None:
        """`acknowledged` is called with each ts up to which every sink is complete.

        `is_at_end` returns True for the name and checkpoint of a finished sink; `check_seek` raises
        SourceError for a position from which the source can't be read again.
        """
        super().__init__()
        self._course = course
        self._sinks_count = sinks_count
        self._acknowledged = acknowledged
        self._is_at_end = is_at_end
        self._check_seek = check_seek

    def on_start(self) -> None:
        self._finish_if_done()

    def on_receive(self, message: Report) -> None:
        course = self._course
        match message:
            case Acknowledged(sink, checkpoint):
                course.progressed = True
                course.checkpoints = {**course.checkpoints, sink: checkpoint}
                course.recovers(f"sink {sink}")
                if len(course.checkpoints) == self._sinks_count:
                    self._acknowledged(min(at.resume.ts for at in course.checkpoints.values()))
                self._finish_if_done()
            case Review():
                self._finish_if_done()
            case Seek(sink, at):
                self._seek(sink, at)
            case Failed(error=error, name=name, restart_seconds=seconds):
                if seconds is None:
                    course.end(accounted(name, error))
                else:
                    course.fails(name, str(error), seconds)
            case Connected(who=who):
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

    def _seek(self, sink: str, at: TablePosition) -> None:
        try:
            self._check_seek(at.position)
        except TidemillError as error:
            self._course.end(error)
        else:
            self._course.end(SeekRequested(sink, at))

    def _finish_if_done(self) -> None:
        checkpoints = self._course.checkpoints
        if len(checkpoints) == self._sinks_count and all(
            self._is_at_end(sink, at) for sink, at in checkpoints.items()
        ):
            self._course.end(None)
