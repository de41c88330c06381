"""Comparisons of source and target as jobs of a server: a few at a time, the last ones kept in memory."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event, Lock
from typing import TYPE_CHECKING, Final

from ..actors import Clock
from ..compare.finding import Difference, TableResult
from ..compare.pace import ComparisonStopped
from ..compare.report import object_of
from ..engine.options import FeedOptions
from ..errors import TidemillError
from .model.comparisons import DiffJob, DiffJobs, DiffRequest, JobStarted, JobState
from .problem import Problem

if TYPE_CHECKING:
    from ..compare import Diff

log = logging.getLogger("tidemill")

RUNNING_JOBS: Final = 2
"""Comparisons that run at the same time; further ones wait."""
KEPT_JOBS: Final = 20
"""Number of a feed's last jobs that are kept."""
KEPT_DIFFERENCES: Final = 1_000
"""Differences of a job that are kept; further ones are counted."""


class _Job:
    """One comparison; `run` is called once, in a thread of its own."""

    def __init__(self, number: int, options: FeedOptions, request: DiffRequest, clock: Clock) -> None:
        self.id = str(number)
        self.stopping = Event()
        self.state: JobState = "waiting"
        self._options = options
        self._request = request
        self._clock = clock
        self._started, self._began = clock.time(), clock.now()
        self._ended: float | None = None
        self._diff: Diff | None = None
        self._differences = 0
        self._found: list[dict[str, object]] = []
        self._results: list[TableResult] = []
        self._warning = self._error = ""
        # Mistakes are found here, before anything is connected.
        from ..compare import open_diff  # needs the drivers of databases

        self._opened = open_diff(
            options,
            request.tables,
            sink=request.sink,
            rows_per_second=request.rate,
            at_syncpoint=request.syncpoint,
            wait=self.stopping.wait,
        )

    def run(self) -> None:
        if self.stopping.is_set():
            self._end("stopped")
            return
        self.state, self._began = "running", self._clock.now()
        try:
            with self._opened as diff:
                self._diff, self._warning = diff, diff.warning
                for one in diff:
                    if not isinstance(one, Difference):
                        self._results.append(one)
                        continue
                    self._differences += one.count
                    if len(self._found) < KEPT_DIFFERENCES:
                        self._found.append(object_of(one))
        except ComparisonStopped:
            self._end("stopped")
        except TidemillError as error:
            self._error = str(error)
            self._end("failed")
        except Exception as error:  # a job's end is told, whatever ends it
            log.exception("comparison %s of feed %s", self.id, self._options.name)
            self._error = f"{type(error).__name__}: {error}"
            self._end("failed")
        else:
            self._end("done")

    def _end(self, state: JobState) -> None:
        self._ended = self._clock.time()
        self.state = state

    def status(self, *, with_found: bool) -> DiffJob:
        diff, results = self._diff, list(self._results)
        done, in_all = (diff.tables_done, diff.tables_in_all) if diff is not None else (0, 0)
        part = 0.0
        if diff is not None and diff.rows_estimated and self._ended is None:
            part = min(1.0, diff.rows / diff.rows_estimated)
        fraction = 1.0 if self.state == "done" else min(1.0, (done + part) / in_all) if in_all else 0.0
        left = None
        if self.state == "running" and fraction > 0:
            left = (self._clock.now() - self._began) * (1 - fraction) / fraction
        return DiffJob(
            job=self.id,
            state=self.state,
            request=self._request,
            started=self._started,
            ended=self._ended,
            table=diff.table if diff is not None else "",
            rows=diff.rows if diff is not None else 0,
            rows_estimated=diff.rows_estimated if diff is not None else 0,
            tables_done=done,
            tables_in_all=in_all,
            percent=100.0 * fraction,
            seconds_left=left,
            is_equal=all(one.is_equal for one in results) if self.state == "done" else None,
            differences=self._differences,
            found=list(self._found) if with_found else [],
            results=[object_of(one) for one in results] if with_found else [],
            warning=self._warning,
            error=self._error,
        )


class Comparisons:
    """The comparisons of all feeds. Any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._numbers = count(1)
        self._jobs: dict[str, list[_Job]] = {}
        self._pool = ThreadPoolExecutor(RUNNING_JOBS, "tidemill-diff")

    def start(self, feed: str, options: FeedOptions, request: DiffRequest) -> JobStarted:
        """Raises ConfigError, and Problem if the feed has a comparison that hasn't ended."""
        with self._lock:
            before = self._jobs.setdefault(feed, [])
            if unfinished := [job for job in before if job.state in ("waiting", "running")]:
                raise Problem(409, f"comparison {unfinished[0].id} of feed {feed} hasn't ended")
            job = _Job(next(self._numbers), options, request, self._clock)
            self._jobs[feed] = [*before, job][-KEPT_JOBS:]
        self._pool.submit(job.run)
        return JobStarted(job.id)

    def list(self, feed: str) -> DiffJobs:
        with self._lock:
            jobs = self._jobs.get(feed, [])[::-1]
        return DiffJobs([job.status(with_found=False) for job in jobs])

    def job(self, feed: str, number: str) -> DiffJob:
        """Raises Problem."""
        return self._found(feed, number).status(with_found=True)

    def stop(self, feed: str, number: str) -> DiffJob:
        """Ask a comparison to stop, and return its state. Raises Problem."""
        job = self._found(feed, number)
        job.stopping.set()
        return job.status(with_found=False)

    def forget(self, feed: str) -> None:
        """Stop and forget the comparisons of a removed feed."""
        with self._lock:
            gone = self._jobs.pop(feed, [])
        for job in gone:
            job.stopping.set()

    def close(self) -> None:
        """Stop all comparisons, and wait for their ends."""
        with self._lock:
            jobs = [job for several in self._jobs.values() for job in several]
        for job in jobs:
            job.stopping.set()
        self._pool.shutdown()

    def _found(self, feed: str, number: str) -> _Job:
        with self._lock:
            for job in self._jobs.get(feed, []):
                if job.id == number:
                    return job
        raise Problem(404, f"feed {feed} has no comparison {number!r}")
