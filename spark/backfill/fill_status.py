"""The status of a feed whose sinks are loaded by a backfill."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from msgspec.structs import replace

from ...actors import SystemClock
from ...engine.options import FeedOptions
from ...engine.progress import Progress
from ...engine.rate import Rate
from ...engine.status import BackfillProgress, SinkStatus, State, StatusFile, first_status, resident_bytes
from ...sink import SinkFactory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_SECONDS: Final = 0.25


class FillStatus:
    """Reports a backfill to people and in the feed's status file.

    A context manager: it keeps other feeds out of the data directory, and cancels Spark's jobs once
    `stopping` is set.
    """

    def __init__(
        self,
        spark: SparkSession,
        options: FeedOptions,
        sinks: Sequence[SinkFactory],
        progress: Progress,
        stopping: Event,
    ) -> None:
        self.stopping = stopping
        self._spark = spark
        self._progress = progress
        self._file = StatusFile(options.data_dir)
        self._clock = SystemClock()
        self._rate = Rate()
        self._over = Event()
        self._interrupter = Thread(target=self._interrupt, name="stopping a backfill", daemon=True)
        self._status = first_status(
            options.name,
            options.source.options.address,
            [SinkStatus(sink.name, sink.target, "", 0, None, 0, loading=True) for sink in sinks],
            state="normal",
            now=self._clock.time(),
        )

    def __call__(self, progress: BackfillProgress) -> None:
        self._show("normal", "", progress)

    def waits(self, detail: str) -> None:
        """Show a failure that will be retried."""
        self._show("warning", detail, self._status.backfill)

    def _interrupt(self) -> None:
        """Cancel all jobs, repeatedly, since another may be about to start."""
        while not self._over.wait(LOOK_SECONDS):
            if self.stopping.is_set():
                self._spark.interruptAll()

    def _show(self, state: State, detail: str, progress: BackfillProgress | None) -> None:
        self._save(state, detail, progress)
        self._progress.show(self._status)

    def _save(self, state: State, detail: str, progress: BackfillProgress | None) -> None:
        now = self._clock.time()
        rows = 0 if progress is None else progress.rows
        self._status = replace(
            self._status,
            state=state,
            detail=detail,
            updated=now,
            rows=rows,
            rows_per_second=self._rate(now, rows),
            memory_bytes=resident_bytes(),
            backfill=progress,
        )
        self._file.save(self._status)

    def __enter__(self) -> Self:
        """Raise ConfigError if a feed runs in the data directory."""
        self._file.claim()
        self._interrupter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._interrupter.join()
        if error is None:
            self._save("stopped", "", None)
        else:
            self._save("failed", str(error), self._status.backfill)
        self._file.release()
