"""The status of a feed whose sinks are being filled by a backfill."""

from __future__ import annotations

import os
from collections.abc import Sequence
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from ...actors import SystemClock
from ...options import FeedOptions
from ...progress import Progress
from ...sink import Sink
from ...status import BackfillProgress, FeedStatus, SinkStatus, State, StatusFile, resident_bytes
from ..rate import Rate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FillStatus:
    """A backfill's report: for people, in the feed's status file, and the place where it is stopped.

    A context manager; no other feed of the data directory runs meanwhile.
    """

    def __init__(
        self,
        spark: SparkSession,
        options: FeedOptions,
        sinks: Sequence[Sink],
        progress: Progress,
        stopping: Event,
    ) -> None:
        self.stopping = stopping
        self._spark = spark
        self._progress = progress
        self._file = StatusFile(options.data_dir)
        self._clock = SystemClock()
        self._rate = Rate()
        now = self._clock.time()
        self._status = FeedStatus(
            name=options.name,
            state="normal",
            detail="",
            pid=os.getpid(),
            updated=now,
            started=now,
            source=options.source.address,
            position="",
            rows=0,
            transactions=0,
            rows_per_second=0.0,
            memory_bytes=resident_bytes(),
            sorter_memory_bytes=0,
            sorter_disk_bytes=0,
            sinks=[SinkStatus(sink.name, sink.target, "", 0, None, 0, loading=True) for sink in sinks],
        )

    def __call__(self, progress: BackfillProgress) -> None:
        """What is under way is cut short if the feed is to stop."""
        self._show("normal", "", progress)
        if self.stopping.is_set():
            self._spark.interruptAll()

    def waits(self, detail: str) -> None:
        """It failed for a reason that may pass."""
        self._show("warning", detail, self._status.backfill)

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
        """Raises ConfigError if its feed, or another one, runs."""
        self._file.claim()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._save("stopped", "", None)
        else:
            self._save("failed", str(error), self._status.backfill)
        self._file.release()
