"""A feed's life cycle: started, retried, stopped, finished or failed; and its status meanwhile."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event, Lock, Thread

from msgspec.structs import replace

from ..actors import Clock, SystemClock
from ..chain import Stage
from ..errors import CheckpointError, ConfigError, InvariantViolated, SinkError, TidemillError
from ..events import STALE, TablePosition, Ts, Wait, physical_ms
from ..puller.puller import SnapshotReport
from ..sink import Delivery, LoadRequired, Sink
from ..store.plan import Outcome
from .coordinator import SeekRequested
from .options import FeedOptions, make_data_dir
from .pipeline import Pipeline
from .plan_inbox import PlanInbox
from .requests import RequestFile
from .retry import pause_seconds
from .status import (
    FeedStatus,
    Retry,
    SinkStatus,
    SnapshotStatus,
    State,
    StatusFile,
    at_rest,
    first_status,
    resident_bytes,
)
from .unavailable import Unavailable

log = logging.getLogger("tidemill")

_SINKS_IN: dict[State, State] = {"normal": "normal", "warning": "starting", "finished": "finished"}
"""State of the sinks while nothing else is known of them."""

LOOK_SECONDS = 0.5
"""Pause between updates of a running feed's status and its file, ..."""
LOOKS_PART = 50
"""... but at least this multiple of the last update's duration, as there may be 100,000 tables, ..."""
MOST_LOOK_SECONDS = 20.0
"""... and at most this."""
RATE_SECONDS = 5.0
"""Period over which rows per second are averaged."""
IDLE_SECONDS = 5.0
"""Maximum age of the last read position at which a sink that has everything is shown without lag."""


class Feed:
    """A feed from start to end; safe to use from any thread.

    It runs pipelines one after the other: each runs until the feed is stopped, fails, is finished, or must
    restart from the sinks' checkpoints.
    """

    def __init__(
        self,
        options: FeedOptions,
        sinks: Sequence[Sink],
        clock: Clock | None = None,
        *,
        stages: Mapping[str, Sequence[Stage]] | None = None,
        keeps_state: bool = True,
    ) -> None:
        """`stages` contains additional stages of sinks' chains, by the sink's name. With `keeps_state`, the
        source keeps its state in the data directory.

        Raises ConfigError if there is no sink, or two have the same name or target.
        """
        self._stages = stages or {}
        self._keeps_state = keeps_state
        self._seek: TablePosition | None = None
        self.options = options
        self.error: TidemillError | None = None
        self._clock: Clock = clock if clock is not None else SystemClock()
        self._sinks = list(sinks)
        reject_duplicates(self._sinks)
        self._file = StatusFile(options.data_dir)
        self._plans = PlanInbox(options.data_dir)
        self._requests = RequestFile(options.data_dir)
        self._begun: set[tuple[str, str]] = set()
        """Sinks and tables whose requested load has begun, while it hasn't for all sinks."""
        self._pipeline: Pipeline | None = None
        self._failures = 0  # consecutive failures of pipelines
        self._retry: Retry | None = None  # reason of the pause before the next pipeline
        self._on_end: Callable[[], object] = lambda: None
        self._stop = Event()
        self._ended = Event()
        self._base = (0, 0)  # rows and transactions of earlier pipelines
        self._unsaved = False  # True if the last status couldn't be written
        self._rates: deque[tuple[float, int]] = deque()
        self._lock = Lock()  # held to replace the status, and while it is computed
        self._status = first_status(
            options.name,
            options.source.address,
            [SinkStatus(sink.name, sink.target, "", 0, None, 0, state="starting") for sink in self._sinks],
            state="starting",
            now=self._clock.time(),
        )
        self._threads = [
            Thread(target=target, name=f"tidemill-{options.name}-{target.__name__.strip('_')}", daemon=True)
            for target in (self._run, self._watch)
        ]

    # --- life ------------------------------------------------------------------------------------

    def start(self, on_end: Callable[[], object] = lambda: None) -> None:
        """Start, and return at once; `on_end` is called in another thread when the feed has ended.

        Raises ConfigError if the data directory can't be made, or another feed runs in it.
        """
        self._on_end = on_end
        make_data_dir(self.options)
        try:
            self._file.claim()
            self._file.save(self._status)
        except OSError as error:
            self._file.release()
            raise ConfigError(f"data_dir: {self.options.data_dir}: {error.strerror}") from None
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Request the end, with checkpoints saved, and return at once; `wait` waits for it."""
        self._stop.set()
        pipeline = self._pipeline
        if pipeline is not None:
            pipeline.course.over.set()

    def flush(self) -> None:
        """Make the sinks save acknowledgements that came from outside."""
        pipeline = self._pipeline
        if pipeline is not None:
            pipeline.flush()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds for the end; return True if it has ended."""
        if not self._ended.wait(timeout):
            return False
        for thread in self._threads:
            thread.join()
        return True

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                pipeline = None
                try:
                    pipeline = Pipeline(
                        self.options,
                        self._sinks,
                        self._clock,
                        stages=self._stages,
                        seek=self._seek,
                        load_again=self._requested(),
                        keeps_state=self._keeps_state,
                    )
                    self._seek = None
                    if self._attend(pipeline):
                        self._say("finished")
                        return
                except SeekRequested as error:
                    self._seek = error.at
                except LoadRequired:
                    assert pipeline is not None
                    self._note_load(pipeline)
                except Unavailable as error:
                    if pipeline is not None and pipeline.course.progressed:
                        self._failures, self._retry = 0, None
                    self._wait_before_next(error)
            self._say("stopped")
        except BaseException as error:  # any error fails the feed
            self.error = error if isinstance(error, TidemillError) else _unexpected(error)
            self._say("failed", str(self.error))
        finally:
            self._ended.set()
            self._on_end()

    def _requested(self) -> dict[str, list[str]]:
        """Return the tables that people want loaded again, by the sink that hasn't begun yet."""
        tables = self._requests.load().load_again
        return {
            sink.name: [
                table
                for table in tables
                if self.options.wants(sink.name, table) and (sink.name, table) not in self._begun
            ]
            for sink in self._sinks
        }

    def _note_load(self, pipeline: Pipeline) -> None:
        """Note which requested loads have begun; other sinks may have begun at the same time."""
        requested = self._requests.load().load_again
        for delivery in pipeline.deliveries:
            at = delivery.statistics().checkpoint
            loading = (at.loading if at is not None else None) or {}
            self._begun.update((delivery.sink.name, name) for name in requested if loading.get(name) == STALE)
        left = {table for tables in self._requested().values() for table in tables}
        done = frozenset(requested) - left
        self._requests.remove(done)
        self._begun = {(sink, table) for sink, table in self._begun if table not in done}

    def _attend(self, pipeline: Pipeline) -> bool:
        """Run a pipeline to its end; return True if the feed is finished then."""
        self._pipeline = pipeline
        self._say("normal")
        if self._stop.is_set():
            pipeline.course.over.set()
        try:
            pipeline.course.over.wait()
        finally:
            pipeline.close()
            with self._lock:
                self._pipeline = None
                self._look(pipeline)
                rows, transactions = self._base
                self._base = rows + pipeline.counts.rows, transactions + pipeline.counts.transactions
        if pipeline.unanswered and isinstance(pipeline.course.error, Unavailable):
            names = " and ".join(pipeline.unanswered)
            raise SinkError(f"sink {names} gets no answer, and can't be opened again: start a new process")
        if pipeline.course.error is not None:
            raise pipeline.course.error
        return not self._stop.is_set()

    def _wait_before_next(self, error: Unavailable) -> None:
        self._failures += 1
        seconds = max(error.wait or 0.0, pause_seconds(self._failures))
        now = self._clock.now()
        since = self._retry.since if self._retry is not None else now
        self._retry = Retry(error.who, str(error), now + seconds, since)
        self._say("warning", self._retry.sentence(now))
        self._stop.wait(seconds)

    def _say(self, state: State, detail: str = "") -> None:
        with self._lock:
            self._status = replace(
                self._status,
                state=state,
                detail=detail,
                waits=[],
                updated=self._clock.time(),
                sinks=at_rest(self._status.sinks, _SINKS_IN.get(state, "stopped")),
            )
        log.info("feed %s: %s %s", self.options.name, state, detail)

    # --- its status ------------------------------------------------------------------------------

    def status(self) -> FeedStatus:
        """Return the feed's status as of about half a second ago."""
        return self._status

    def explain(self) -> list[Wait]:
        """Return the current waits."""
        pipeline = self._pipeline
        return pipeline.waits() if pipeline is not None else self._status.waits

    def _watch(self) -> None:
        pause = LOOK_SECONDS
        while not self._ended.wait(pause):
            began = self._clock.now()
            pipeline = self._pipeline
            if pipeline is not None:
                self._hand_on_plan(pipeline)
                with suppress(CheckpointError):  # raised at the next start
                    pipeline.load_again(self._requests.load().load_again)
                pipeline.ask_puller()
                with self._lock:
                    if pipeline is self._pipeline:  # else it is closed, and its status was taken then
                        self._look(pipeline)
            else:
                self._look_at_retry()
            self._save()
            took = self._clock.now() - began
            pause = min(max(LOOK_SECONDS, LOOKS_PART * took), MOST_LOOK_SECONDS)
        self._save()
        self._file.release()

    def _hand_on_plan(self, pipeline: Pipeline) -> None:
        try:
            plan = self._plans.take()
        except (OSError, ConfigError) as error:
            self._plans.answer([Outcome("", "", 0, 0, str(error))])
        else:
            if plan is not None:
                pipeline.sorter.compact(plan, self._plans.answer)

    def _save(self) -> None:
        try:
            self._file.save(self._status)
        except OSError as error:
            if not self._unsaved:
                log.warning("%s can't be written: %s", self._file.path, error.strerror)
            self._unsaved = True
        else:
            self._unsaved = False

    def _look_at_retry(self) -> None:
        """Update the status between two pipelines."""
        now, retry = self._clock.now(), self._retry
        with self._lock:
            if retry is not None and self._status.state == "warning":
                self._status = replace(
                    self._status,
                    detail=retry.sentence(now),
                    waits=[retry.wait(now)],
                    updated=self._clock.time(),
                )

    def _look(self, pipeline: Pipeline) -> None:
        """Update the status. The lock must be held."""
        now = self._clock.time()
        rows = self._base[0] + pipeline.counts.rows
        self._rates.append((now, rows))
        while self._rates[0][0] < now - RATE_SECONDS:
            self._rates.popleft()
        since, rows_then = self._rates[0]
        puller, progress, sorter = (
            pipeline.puller_statistics,
            pipeline.course.snapshot,
            pipeline.sorter.statistics(),
        )
        read = puller.resolved_ts if puller is not None else 0
        sinks = [self._sink_status(pipeline, one, read, now) for one in pipeline.deliveries]
        # A busy puller's last statistics, if any, may be older than the sinks' checkpoints.
        positions = [puller.position if puller is not None else "", *(sink.position for sink in sinks)]
        position = pipeline.furthest(positions) or self._status.position
        warning = "; ".join(retry.sentence(self._clock.now()) for retry in pipeline.course.retries.values())
        self._status = replace(
            self._status,
            state="warning" if warning else "normal",
            detail=warning,
            updated=now,
            source=pipeline.source,
            position=position,
            rows=rows,
            transactions=self._base[1] + pipeline.counts.transactions,
            rows_per_second=(rows - rows_then) / (now - since) if now > since else 0.0,
            memory_bytes=resident_bytes(),
            sorter_memory_bytes=sorter.memory_bytes,
            sorter_disk_bytes=sorter.disk_bytes,
            sinks=sinks,
            snapshot=None if progress is None or not progress.table else _snapshot_status(progress),
            waits=pipeline.waits(),
        )

    def _sink_status(self, pipeline: Pipeline, delivery: Delivery, read: Ts, now: float) -> SinkStatus:
        statistics = delivery.statistics()
        at = statistics.checkpoint
        lag = None
        if at is not None and at.ts:
            lag = max(0.0, now - physical_ms(at.ts) / 1000)
            behind = physical_ms(max(read, at.ts) - at.ts) / 1000
            if max(lag, behind) < IDLE_SECONDS and not statistics.waiting_items:
                lag = behind
        retry = pipeline.course.retries.get(f"sink {delivery.sink.name}")
        return SinkStatus(
            name=statistics.name,
            target=statistics.target,
            position=at.position if at is not None else "",
            ts=at.ts if at is not None else 0,
            lag_seconds=lag,
            rows=statistics.rows,
            loading=at is None or at.loading is not None,
            state="warning" if retry is not None else "normal",
            detail=retry.error if retry is not None else "",
        )


def _snapshot_status(progress: SnapshotReport) -> SnapshotStatus:
    return SnapshotStatus(
        progress.table, progress.rows, progress.rows_estimated, progress.tables, progress.tables_done
    )


def _unexpected(error: BaseException) -> InvariantViolated:
    log.error("the feed failed", exc_info=error)
    found = InvariantViolated(f"{error!r}: please report this as a bug")
    found.__cause__ = error
    return found


def reject_duplicates(sinks: Sequence[Sink]) -> None:
    """Raise ConfigError unless there are sinks, with unique names and targets."""
    if not sinks:
        raise ConfigError('sink: none is named; for instance [[sink]] with url = "sqlite:///copy.db"')
    for field, what in (("name", "are called"), ("target", "write to")):
        values = [getattr(sink, field) for sink in sinks]
        for value in values:
            if values.count(value) > 1:
                raise ConfigError(f"sink.{field}: two sinks {what} {value!r}; each needs one of its own")
