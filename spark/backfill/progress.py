"""Progress of a backfill, for callbacks and on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Event, Thread
from types import TracebackType
from typing import Final, Self, TextIO, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from ...actors import SystemClock
from ...engine.status import BackfillProgress, BackfillStage
from .directory import MERGED, READ, BackfillDirectory
from .plan import BackfillPlan

__all__ = ["BackfillProgress", "BackfillStage", "ChunkWatch", "ProgressBar", "Report"]

LOOK_SECONDS: Final = 0.5

Report: TypeAlias = Callable[[BackfillProgress], object]


class ChunkWatch:
    """Counts the finished chunks of a running stage, and calls `report` in its own thread."""

    def __init__(
        self,
        directory: BackfillDirectory,
        plan: BackfillPlan,
        stage: BackfillStage,
        numbers: Collection[int],
        report: Report | None,
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
