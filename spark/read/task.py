"""A local feed from a checkpoint to an end, read as it goes: what a task of Spark does."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from threading import Event
from typing import NamedTuple

from msgspec.structs import replace

from ...actors import Clock, Machine, SystemClock
from ...engine.coordinator import Course
from ...engine.failures import Unavailable
from ...engine.handover import Handover, HandoverClosed
from ...engine.options import FeedOptions
from ...engine.parts import FeedParts
from ...engine.pipeline import Pipeline
from ...engine.pipeline import start as start_pipeline
from ...engine.requests import PipelineRequests
from ...engine.waits import Startup
from ...errors import Retryable
from ...events import Checkpoint, Ddl, Item
from ...sink.python import python_sink
from .watch import AGAIN_SECONDS


def follow(
    options: FeedOptions, start: Checkpoint | None, patience_seconds: float
) -> Generator[Sequence[Item]]:
    """Yield the items after `start` up to `options.until`; with None, a snapshot first.

    Closing the iterator stops the feed's threads. Raises Retryable if the source couldn't be read for
    `patience_seconds`, and Fatal.
    """
    handover = Handover()
    task = _begin(options, start, handover, patience_seconds)
    try:
        for items in handover.each():
            yield [task.unrefused.restored(item) if isinstance(item, Ddl) else item for item in items]
        if task.pipeline.course.error is not None:
            raise task.pipeline.course.error
    finally:
        handover.close()
        task.pipeline.close()


class _Task(NamedTuple):
    """A pipeline that ends where a feed would restart: items already yielded can't be taken back, and Spark
    repeats the whole task."""

    pipeline: Pipeline
    unrefused: _Unrefused


def _begin(
    options: FeedOptions, start: Checkpoint | None, handover: Handover, patience_seconds: float
) -> _Task:
    clock = SystemClock()
    until = clock.now() + patience_seconds
    options.data_dir.mkdir(parents=True, exist_ok=True)
    while True:
        unrefused = _Unrefused()
        parts = _parts(options, start, handover, clock, unrefused)
        try:
            course = _TaskCourse(clock, handover, patience_seconds)
            return _Task(start_pipeline(parts, PipelineRequests(), course), unrefused)
        except Unavailable as error:
            pause = max(AGAIN_SECONDS, error.wait or 0.0)
            if clock.now() + pause > until:
                raise
            Event().wait(pause)


def _parts(
    options: FeedOptions, start: Checkpoint | None, handover: Handover, clock: Clock, unrefused: _Unrefused
) -> FeedParts:
    return FeedParts(
        options=options,
        sinks=[python_sink("spark", handover.put, _Start(start), reads_rows=False)],
        runtime=Machine(clock),
        startup=Startup(clock),
        before_sinks=unrefused.passed,
        keeps_state=False,  # tasks side by side would write one file
        checks_tables=False,  # tables may have been dropped since the driver checked the patterns
    )


class _TaskCourse(Course):
    """Ends with an error if the source or the sink doesn't answer for `patience_seconds`."""

    def __init__(self, clock: Clock, handover: Handover, patience_seconds: float) -> None:
        super().__init__(clock)
        self._handover = handover
        self._patience_seconds = patience_seconds

    def fails(self, who: str, error: str, seconds: float) -> None:
        super().fails(who, error, seconds)
        if self._clock.now() - self.retries[who].since >= self._patience_seconds:
            self.end(Retryable(f"{who} didn't answer for {self._patience_seconds:.0f} s: {error}"))

    def end(self, error: BaseException | None) -> None:
        super().end(None if isinstance(error, HandoverClosed) else error)
        self._handover.finish()


class _Unrefused:
    """Lets schema changes pass that a feed doesn't apply; the reader decides about them."""

    def __init__(self) -> None:
        self._refused: dict[Ddl, Ddl] = {}

    def passed(self, items: list[Item]) -> list[Item]:
        return [
            self._passing(item) if isinstance(item, Ddl) and (item.refusal or item.reload) else item
            for item in items
        ]

    def _passing(self, refused: Ddl) -> Ddl:
        ddl = replace(refused, refusal="", reload="", if_exists=False)
        self._refused[ddl] = refused
        return ddl

    def restored(self, ddl: Ddl) -> Ddl:
        return self._refused.pop(ddl, ddl)


class _Start:
    """A checkpoint store that always returns the task's start."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self._checkpoint = checkpoint

    def load(self) -> tuple[Checkpoint, int] | None:
        return None if self._checkpoint is None else (self._checkpoint, 0)

    def save(self, checkpoint: Checkpoint, length: int = 0) -> None:
        """Save nothing: Spark records which tasks are done."""
