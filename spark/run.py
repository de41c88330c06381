"""`tidemill run feed.toml --engine spark`: the same feed, its stream read and written by Spark's tasks."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace as updated

from ..actors import SystemClock
from ..errors import ConfigError, Retryable, TidemillError
from ..feed import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, RATE_SECONDS, Feed, reject_duplicates
from ..options import FeedOptions, feed_options
from ..progress import Progress, open_progress
from ..sink import Sink
from ..status import FeedStatus, State, StatusFile, resident_bytes
from . import session
from .run_errors import explain
from .run_queries import SinkQuery, lines
from .run_start import Start, check_partitions, find_start, local_sinks, take_over, unloaded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS: Final = {
    "spark.log.level": "OFF",
    "spark.sql.redaction.options.regex": "(?i)url|password|^source$|^sink$",  # their URLs have passwords
}

LOOK_SECONDS: Final = 0.25
MASTER: Final = "local[2]"
TRIGGER: Final = "0 seconds"
"""One batch after the other."""
ANSWER_SECONDS: Final = 5.0
"""So long a master may take to be connected to."""
BATCH_SECONDS: Final = 30.0
"""So long the batch at hand may take once the feed is to stop; then it is cut short, and comes again."""


def run(
    found: Mapping[str, Any],
    *,
    master: str = MASTER,
    partitions: int = 1,
    trigger: str = TRIGGER,
    as_json: bool = False,
    config: Mapping[str, str] | None = None,
) -> int:
    """Run the feed of these tables of a feed.toml until it is stopped or reaches `until`; 0, the exit status.

    `config` are more settings of Spark. Raises ConfigError, and what stops the feed.
    """
    options = feed_options(found)
    sinks = local_sinks(options)
    reject_duplicates([*sinks.values()])
    if partitions < 1:
        raise ConfigError(f"partitions = {partitions}: at least 1")
    options.data_dir.mkdir(parents=True, exist_ok=True)
    progress = open_progress(sys.stdout if as_json else sys.stderr, as_json=as_json)
    stopping = Event()
    try:
        with _stopped_by_signals(stopping):
            spark = _start_spark(options, master, config or {})
        with _stopped_by_signals(stopping):  # Spark has set handlers of its own
            starts = _starts(options, sinks, partitions, progress, stopping)
            if not stopping.is_set():
                _Stream(options, found["source"], starts, sinks, progress, stopping).run(spark, trigger)
    finally:
        progress.close()
    return 0


def _start_spark(options: FeedOptions, master: str, config: Mapping[str, str]) -> SparkSession:
    _check_master(master)
    try:
        spark = session(options.name, master, {**_DEFAULTS, **config})
        from .run_source import RunSource

        spark.dataSource.register(RunSource)
    except TidemillError:
        raise
    except Exception as error:
        found = explain(error, f"master {master}")
        raise ConfigError(str(found)) from error
    return spark


def _check_master(master: str) -> None:
    """Raise ConfigError if a standalone cluster doesn't answer: Spark would ask for over a minute."""
    if not master.startswith("spark://"):
        return
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
        except (OSError, ValueError) as error:
            reasons.append(f"{address}: {error}")
        else:
            return
    raise ConfigError(f"master: {master} doesn't answer ({'; '.join(reasons)})")


def _starts(
    options: FeedOptions, sinks: Mapping[str, Sink], partitions: int, progress: Progress, stopping: Event
) -> dict[str, Start]:
    """Where each sink's query begins, once the local engine has loaded what isn't. Raises as feeds do."""
    there = {name: find_start(sink) for name, sink in sinks.items()}
    check_partitions({name: one for name, one in there.items() if isinstance(one, Start)}, partitions)
    if names := unloaded(there):
        _load(options, [sinks[name] for name in names], progress, stopping)
        if stopping.is_set():
            return {}
    else:
        _check_patterns(options)
    return {
        name: one if isinstance(one, Start) else take_over(sinks[name], partitions)
        for name, one in there.items()
    }


def _load(options: FeedOptions, sinks: Sequence[Sink], progress: Progress, stopping: Event) -> None:
    """The local engine, up to `until`, or else to where the source ends now."""
    feed = Feed(replace(options, until=options.until or "now"), sinks)
    feed.start()
    try:
        while not feed.wait(LOOK_SECONDS):
            progress.show(feed.status())
            if stopping.is_set():
                feed.stop()
    finally:
        feed.stop()
        feed.wait()
    if feed.error is not None:
        raise feed.error


def _check_patterns(options: FeedOptions) -> None:
    from ..pipeline import _check_patterns as check

    check(options, anew=False)


class _Stream:
    """All queries of a feed, looked after until they end."""

    def __init__(
        self,
        options: FeedOptions,
        section: Mapping[str, Any],
        starts: Mapping[str, Start],
        sinks: Mapping[str, Sink],
        progress: Progress,
        stopping: Event,
    ) -> None:
        self._options = options
        self._section = section
        self._progress = progress
        self._stopping = stopping
        self._clock = SystemClock()
        self._started = self._clock.time()
        self._source = next(iter(starts.values())).offset.source
        self._rates: deque[tuple[float, int]] = deque()
        self._queries = [
            SinkQuery(options, sink, starts[sink.name], sinks[sink.name].target) for sink in options.sinks
        ]

    def run(self, spark: SparkSession, trigger: str) -> None:
        file = StatusFile(self._options.data_dir)
        file.claim()
        state: State = "failed"
        detail = ""
        try:
            state = "finished" if self._attend(spark, trigger, file) else "stopped"
        except TidemillError as error:
            detail = str(error)
            raise
        finally:
            self._stop_queries()
            self._show(state, detail, file)
            file.release()

    def _attend(self, spark: SparkSession, trigger: str, file: StatusFile) -> bool:
        """Whether all of them came to their end. Raises what one failed of."""
        pause = FIRST_PAUSE_SECONDS
        for query in self._queries:
            self._start(query, spark, trigger)
        while not self._stopping.wait(LOOK_SECONDS):
            error = self._failure()
            if isinstance(error, Retryable):
                self._show("warning", f"{error}; trying again in {pause:.1f} s", file)
                self._stopping.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                self._restart(spark, trigger)
            elif error is not None:
                raise error
            elif not any(query.is_active for query in self._queries):
                return True
            else:
                self._show("normal", lines(self._queries), file)
        return False

    def _start(self, query: SinkQuery, spark: SparkSession, trigger: str) -> None:
        try:
            query.start(spark, self._section, trigger)
        except Exception as error:
            raise explain(error, f"sink {query.name}") from error

    def _restart(self, spark: SparkSession, trigger: str) -> None:
        for query in self._queries:
            if query.error is not None:
                self._start(query, spark, trigger)

    def _failure(self) -> TidemillError | None:
        """The worst that a query ended of."""
        found = [
            explain(error, f"sink {query.name}")
            for query in self._queries
            if not query.is_active and (error := query.error) is not None
        ]
        return min(found, key=lambda error: isinstance(error, Retryable), default=None)

    def _stop_queries(self) -> None:
        """Each between two batches, if that isn't too long."""
        until = self._clock.now() + BATCH_SECONDS
        for query in self._queries:
            while not query.is_between_batches and self._clock.now() < until:
                Event().wait(0.02)
            with suppress(Exception):  # it may end of what it failed of
                query.stop()

    # --- its status

    def _show(self, state: State, detail: str, file: StatusFile) -> None:
        now = self._clock.time()
        for query in self._queries:
            query.look(now)
        rows = sum(query.rows for query in self._queries)
        self._rates.append((now, rows))
        while self._rates[0][0] < now - RATE_SECONDS:
            self._rates.popleft()
        since, before = self._rates[0]
        status = FeedStatus(
            name=self._options.name,
            state=state,
            detail=detail,
            pid=os.getpid(),
            updated=now,
            started=self._started,
            source=self._source,
            position=self._queries[0].position,
            rows=rows,
            transactions=0,
            rows_per_second=(rows - before) / (now - since) if now > since else 0.0,
            memory_bytes=resident_bytes(),
            sorter_memory_bytes=0,
            sorter_disk_bytes=0,
            sinks=[query.status for query in self._queries],
        )
        file.save(status)
        self._progress.show(updated(status, detail="") if state == "failed" else status)


@contextmanager
def _stopped_by_signals(stopping: Event) -> Iterator[None]:
    """SIGINT and SIGTERM stop the feed; a second one doesn't wait."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _frame: object) -> None:
        stopping.set()
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
