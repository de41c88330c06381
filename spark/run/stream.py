"""The stream of a feed on Spark: supervision of its queries, and its status."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace as updated

from ...actors import SystemClock
from ...codec.native.library import description
from ...engine.failures import pause_seconds
from ...engine.progress import Progress
from ...engine.rate import Rate
from ...engine.status import FeedStatus, State, StatusFile, resident_bytes
from ...errors import Retryable, TidemillError
from ...sink import SinkFactory
from ..capture.captures import Captures
from ..sections import SparkFeedOptions
from .captures import Acknowledging, lease_of
from .errors import explain
from .queries import SinkQuery, lines
from .start import Start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_SECONDS: Final = 0.25
BATCH_SECONDS: Final = 30.0
"""Grace period for the current batch at a stop; then it is cancelled, and repeated after the next start."""


class Stream:
    """Runs all queries of a feed until they end."""

    def __init__(
        self,
        options: SparkFeedOptions,
        starts: Mapping[str, Start],
        sinks: Mapping[str, SinkFactory],
        loaded: Mapping[str, int],
        captures: Captures | None,
        progress: Progress,
        stopping: Event,
    ) -> None:
        """`loaded` is the number of rows written before by sink."""
        self._options = options
        self._progress = progress
        self._stopping = stopping
        self._clock = SystemClock()
        self._started = self._clock.time()
        self._source = next(iter(starts.values())).offset.source
        self._rate = Rate()
        self._trigger = options.spark.trigger
        self._acknowledging = Acknowledging(captures, lease_of(options))
        self._unstarted: dict[SinkQuery, Retryable] = {}
        """Queries whose last start failed with a temporary error."""
        self._queries = [
            SinkQuery(
                options,
                sink,
                starts[sink.name],
                sinks[sink.name].target,
                options.spark.captures,
                loaded.get(sink.name, 0),
            )
            for sink in options.sinks
        ]

    def run(self, spark: SparkSession) -> None:
        file = StatusFile(self._options.data_dir)
        file.claim()
        state: State = "failed"
        detail = ""
        try:
            state = "finished" if self._attend(spark, file) else "stopped"
        except TidemillError as error:
            detail = str(error)
            raise
        finally:
            self._stop_queries(file)
            self._show(state, detail, file)
            self._acknowledging.close()
            file.release()

    def _attend(self, spark: SparkSession, file: StatusFile) -> bool:
        """Supervise the queries; True if all reached their end. Raises the error of a failed query."""
        failures = 0
        for query in self._queries:
            self._start(query, spark)
        while not self._stopping.wait(LOOK_SECONDS):
            is_active = any(query.is_active for query in self._queries)
            error = self._failure()  # after it, so that a query that fails meanwhile isn't taken for finished
            if isinstance(error, Retryable):
                failures += 1
                pause = pause_seconds(failures)
                self._show("warning", f"{error}; trying again in {pause:.1f} s", file)
                self._stopping.wait(pause)
                self._restart(spark)
            elif error is not None:
                raise error
            elif not is_active:
                return True
            else:
                self._show("normal", lines(self._queries), file)
        return False

    def _start(self, query: SinkQuery, spark: SparkSession) -> None:
        """Start a query. Raises Fatal; a temporary error is kept like the failure of a running query."""
        self._unstarted.pop(query, None)
        try:
            query.start(spark, self._trigger)
        except Exception as error:
            cause = explain(error, f"sink {query.name}")
            if not isinstance(cause, Retryable):
                raise cause from error
            self._unstarted[query] = cause

    def _restart(self, spark: SparkSession) -> None:
        for query in self._queries:
            if query in self._unstarted or query.error is not None:
                self._start(query, spark)

    def _failure(self) -> TidemillError | None:
        """Return the worst error of the ended queries; None if there is none."""
        ended = [
            explain(error, f"sink {query.name}")
            for query in self._queries
            if not query.is_active and (error := query.error) is not None
        ]
        failures = [*self._unstarted.values(), *ended]
        return min(failures, key=lambda error: isinstance(error, Retryable), default=None)

    def _stop_queries(self, file: StatusFile) -> None:
        """Stop each query after its current batch, or after BATCH_SECONDS."""
        began = shown = self._clock.now()
        at = {query: query.batch for query in self._queries}
        for query in self._queries:
            while not query.is_between_batches and query.batch == at[query]:
                now = self._clock.now()
                if now - began >= BATCH_SECONDS:
                    break
                if now - shown >= LOOK_SECONDS:
                    shown = now
                    left = f"{BATCH_SECONDS - (now - began):.0f} s at most"
                    self._show("normal", f"stopping: sink {query.name} has its batch first, {left}", file)
                Event().wait(0.02)
            with suppress(Exception):  # it may raise the error that it failed with
                query.stop()

    # --- its status

    def _show(self, state: State, detail: str, file: StatusFile) -> None:
        now = self._clock.time()
        for query in self._queries:
            query.look(now)
        rows = max(query.rows for query in self._queries)
        if all(query.batch >= 0 for query in self._queries):
            self._acknowledging.reached([query.at for query in self._queries])
        status = FeedStatus(
            name=self._options.name,
            state=state,
            detail=detail,
            pid=os.getpid(),
            updated=now,
            started=self._started,
            source=self._source,
            position=self._queries[0].at.position,
            rows=rows,
            transactions=None,
            rows_per_second=self._rate(now, rows),
            memory_bytes=resident_bytes(),
            sorter_memory_bytes=0,
            sorter_disk_bytes=0,
            sinks=[query.status for query in self._queries],
            decoder=description(),
        )
        file.save(status)
        self._progress.show(updated(status, detail="") if state == "failed" else status)
