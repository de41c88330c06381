"""How far a backfill is, for callbacks and on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Event, Thread
from types import TracebackType
from typing import Final, Literal, Self, TextIO, TypeAlias

import structlog
from msgspec import Struct
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from ...actors import SystemClock
from .directory import MERGED, READ, Directory
from .plan import Plan

LOOK_SECONDS: Final = 0.5

LINE_SECONDS: Final = 5.0
"""Between two log lines of one stage."""

Stage: TypeAlias = Literal["reading", "catching up", "merging", "loading"]


class BackfillProgress(Struct, frozen=True):
    stage: Stage
    """`reading` chunks; `catching up`: reading what changed meanwhile; `merging` that into the chunks; and,
    where sinks are loaded, `loading`."""
    chunks: int
    """Finished, of this stage; those of earlier runs included."""
    chunks_in_all: int
    rows: int
    """Read, of all tables."""
    rows_estimated: int
    """By the source's own statistics; 0 where it has none."""
    seconds_left: float | None
    """Of this stage; None while there is nothing to tell it from."""


Report: TypeAlias = Callable[[BackfillProgress], object]


class Watch:
    """Counts finished chunks while a stage runs, and tells `report`, in a thread of its own."""

    def __init__(
        self, directory: Directory, plan: Plan, stage: Stage, numbers: Collection[int], report: Report | None
    ) -> None:
        """`numbers` are the chunks of the stage."""
        self._directory = directory
        self._stage = stage
        self._folder = MERGED if stage == "merging" else READ
        self._numbers = set(numbers)
        self._estimated = sum(table.rows_estimated for table in plan.tables)
        self._report = report
        self._rows: dict[int, int] = {}
        self._clock = SystemClock()
        self._over = Event()
        self._thread = Thread(target=self._run, name=f"backfill {stage}", daemon=True)

    def look(self) -> BackfillProgress:
        for number in self._directory.numbers(self._folder) & self._numbers - self._rows.keys():
            record = self._directory.record(self._folder, number)
            if record is not None:
                self._rows[number] = record.rows
        done, all_ = len(self._rows), len(self._numbers)
        left = None
        if done > self._before:
            left = (self._clock.now() - self._began) / (done - self._before) * (all_ - done)
        rows = sum(self._rows.values())
        return BackfillProgress(self._stage, done, all_, rows, max(rows, self._estimated), left)

    def _run(self) -> None:
        assert self._report is not None
        while not self._over.wait(LOOK_SECONDS):
            self._report(self.look())

    def __enter__(self) -> Self:
        self._began, self._before = self._clock.now(), 0
        self._before = self.look().chunks
        if self._report is not None:
            self._report(self.look())
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._report is not None:
            self._thread.join()
            self._report(self.look())


class LogLines:
    """A report that prints a line every few seconds, and one as each stage begins."""

    def __init__(self, stream: TextIO) -> None:
        self._log = structlog.wrap_logger(
            structlog.PrintLogger(stream),
            processors=[
                structlog.processors.TimeStamper(fmt="iso"),
                structlog.processors.LogfmtRenderer(key_order=["timestamp", "event"]),
            ],
        )
        self._clock = SystemClock()
        self._stage = ""
        self._next = 0.0

    def __call__(self, progress: BackfillProgress) -> None:
        now = self._clock.now()
        if progress.stage == self._stage and now < self._next:
            return
        self._stage, self._next = progress.stage, now + LINE_SECONDS
        figures = {"chunks": f"{progress.chunks}/{progress.chunks_in_all}", "rows": progress.rows}
        if progress.seconds_left is not None:
            figures["seconds_left"] = round(progress.seconds_left)
        self._log.msg(progress.stage, **figures)


class ProgressBar:
    """A report that draws a bar; a context manager."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,} of {task.total:,} chunks, {task.fields[rows]:,} rows"),
            TimeRemainingColumn(),
            console=Console(file=stream),
        )
        self._tasks: dict[str, int] = {}

    def __call__(self, progress: BackfillProgress) -> None:
        task = self._tasks.get(progress.stage)
        if task is None:
            task = self._bar.add_task(progress.stage, total=progress.chunks_in_all, rows=progress.rows)
            self._tasks[progress.stage] = task
        self._bar.update(
            task,  # type: ignore[arg-type]
            completed=progress.chunks,
            total=progress.chunks_in_all,
            rows=progress.rows,
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
