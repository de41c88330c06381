"""A local feed from a checkpoint to an end, read as it goes: what a task of Spark does."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from threading import Event
from typing import Final

from ..actors import SystemClock
from ..embedded import Handover, HandoverClosed
from ..errors import Retryable
from ..events import Checkpoint, Item
from ..options import FeedOptions
from ..pipeline import Pipeline, Unavailable
from ..sink.python import PythonSink
from ..sources import Found

AGAIN_SECONDS: Final = 0.5
"""Between attempts to begin."""


def follow(
    options: FeedOptions, start: Checkpoint | None, patience_seconds: float
) -> Generator[Sequence[Item]]:
    """The items behind `start` up to `options.until`, as they come; None takes a snapshot first.

    Closing the iterator stops the feed's threads. Raises Retryable once the source couldn't be read for
    `patience_seconds`, and Fatal.
    """
    handover = Handover()
    task = _begin(options, start, handover, patience_seconds)
    try:
        while (items := handover.get()) is not None:
            yield items
        if task.error is not None:
            raise task.error
    finally:
        handover.close()
        task.close()


def _begin(
    options: FeedOptions, start: Checkpoint | None, handover: Handover, patience_seconds: float
) -> Task:
    clock = SystemClock()
    until = clock.now() + patience_seconds
    options.data_dir.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            return Task(options, start, handover, patience_seconds)
        except Unavailable as error:
            pause = max(AGAIN_SECONDS, error.wait or 0.0)
            if clock.now() + pause > until:
                raise
            Event().wait(pause)


class Task(Pipeline):
    """Ends for good where a feed would begin again: what was handed over can't be taken back, and Spark
    repeats the whole task."""

    def __init__(
        self, options: FeedOptions, start: Checkpoint | None, handover: Handover, patience_seconds: float
    ) -> None:
        self._handover = handover
        self._patience_seconds = patience_seconds
        sink = PythonSink("spark", handover.put, _Start(start))
        super().__init__(options, [sink], SystemClock())

    def _reject_unmatched(self, found: Found) -> None:
        """A table may have been dropped since; the driver has looked at the patterns."""

    def _fails(self, who: str, error: str, seconds: float) -> None:
        super()._fails(who, error, seconds)
        if self._clock.now() - self.retries[who].since >= self._patience_seconds:
            self._end(Retryable(f"{who} didn't answer for {self._patience_seconds:.0f} s: {error}"))

    def _end(self, error: BaseException | None) -> None:
        super()._end(None if isinstance(error, HandoverClosed) else error)
        self._handover.finish()


class _Start:
    """In place of a stored checkpoint: where the task begins, each time."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self._checkpoint = checkpoint

    def load(self) -> tuple[Checkpoint, int] | None:
        return None if self._checkpoint is None else (self._checkpoint, 0)

    def save(self, checkpoint: Checkpoint, length: int = 0) -> None:
        """Spark knows when a task is done."""
