"""The status of a feed of this process, updated while pipelines run and between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypedDict

from msgspec.structs import replace

from ..actors import Runtime
from ..events import Wait
from ..puller.puller import SnapshotReport
from ..sink import Delivery
from .failures import Retry
from .lag import Lag, SinkHistograms
from .lag_model import LagModel, Moment
from .pipeline import Pipeline
from .rate import Rate
from .sentences import divergence_sentence, letters_sentence
from .status import FeedStatus, Received, SinkStatus, SnapshotStatus, State, at_rest, resident_bytes
from .tables import FeedTables, SinkView
from .verification import VerifyStatus, resting
from .waits import Startup

_SINKS_IN: dict[State, State] = {"normal": "normal", "warning": "starting", "finished": "finished"}
"""State of the sinks while nothing else is known of them."""


class LiveStatus:
    """The last known status; `current` may be read from any thread."""

    def __init__(
        self,
        first: FeedStatus,
        runtime: Runtime,
        startup: Startup,
        lag: LagModel,
        tables: FeedTables,
        wants: Mapping[str, Callable[[str], bool]],
        verified: Callable[[], Sequence[VerifyStatus]],
    ) -> None:
        """`wants` have, by the name of a sink that isn't given all tables, True for full names of its own.
        `verified` returns the statuses of the verification."""
        self._verified = verified
        self._tables = tables
        self._wants = wants
        self.current = replace(first, verify=list(verified()))
        self._lag = lag
        self.pipeline: Pipeline | None = None
        """The running pipeline; None between two."""
        self._clock = runtime.clock
        self._startup = startup
        self._retry: Retry | None = None
        self._base = (0, 0)  # rows and transactions of earlier pipelines
        self._base_of: dict[str, SinkCounts] = {}  # by sink
        self._base_received = Received()  # retries and reconnects, and bytes of the log
        self._rate = Rate()
        self._lock = runtime.lock()  # held to replace the status, and while it is computed

    def change(self, state: State, detail: str = "", retry: Retry | None = None) -> None:
        """Set the feed's state; `retry` is the reason of the pause that begins, if one does."""
        with self._lock:
            self._change(state, detail, retry)

    def begin(self, pipeline: Pipeline) -> None:
        """Follow a pipeline that has started; the state is normal."""
        with self._lock:
            self.pipeline = pipeline
            self._change("normal", "", None)

    def _change(self, state: State, detail: str, retry: Retry | None) -> None:
        self._retry = retry
        self.current = replace(
            self.current,
            state=state,
            detail=detail,
            waits=[],
            updated=self._clock.time(),
            sinks=at_rest(self.current.sinks, _SINKS_IN.get(state, "stopped")),
        )

    def blame(self, part: str) -> None:
        """Note which part the error that ends the feed is of."""
        with self._lock:
            self.current = replace(self.current, blamed=part)

    def leave(self, pipeline: Pipeline) -> None:
        """Take the last status of a closed pipeline."""
        with self._lock:
            self.pipeline = None
            self._look(pipeline)
            rows, transactions = self._base
            counts = pipeline.stages.counts
            self._base = rows + counts.rows, transactions + counts.transactions
            self._base_of = {sink.name: counts_of(sink) for sink in self.current.sinks}
            self._base_received = self.current.received

    def rest(self) -> None:
        """Note that the targets aren't verified any more."""
        with self._lock:
            self.current = replace(self.current, verify=resting(self._verified()))

    def update(self) -> None:
        """Take the status of the running pipeline, or of the pause before the next one."""
        with self._lock:
            if self.pipeline is not None:
                self._look(self.pipeline)
            else:
                retry, now = self._retry, self._clock.now()
                self.current = replace(
                    self.current,
                    detail=self.current.detail if retry is None else retry.sentence(now),
                    waits=self.waits(),
                    updated=self._clock.time(),
                    **self._lags(self.current.sinks),
                    connected=False,
                    idle=False,
                    verify=list(self._verified()),
                )

    def waits(self) -> list[Wait]:
        """Return the waits between two pipelines. Any thread."""
        retry, waits = self._retry, self._startup.waits()
        return waits if retry is None else [retry.wait(self._clock.now()), *waits]

    def _look(self, pipeline: Pipeline) -> None:
        now, stages = self._clock.time(), pipeline.stages
        rows = self._base[0] + stages.counts.rows
        puller, progress = pipeline.puller_statistics, pipeline.course.snapshot
        sorter = stages.sorter.statistics()
        sinks = [self._sink_status(pipeline, one) for one in stages.sinks.deliveries]
        # A busy puller's last statistics, if any, may be older than the sinks' checkpoints.
        positions = [puller.position if puller is not None else "", *(sink.position for sink in sinks)]
        position = pipeline.furthest(positions) or self.current.position
        warnings = [retry.sentence(self._clock.now()) for retry in pipeline.course.retries.values()]
        warnings += [
            f"sink {sink.name}: {letters_sentence(sink.dead_letters)}" for sink in sinks if sink.dead_letters
        ]
        verify = list(self._verified())
        warnings += filter(None, map(divergence_sentence, verify))
        warning = "; ".join(warnings)
        checkpoints, wants, lags = pipeline.course.checkpoints, self._wants, self._lags(sinks)
        views = [
            SinkView(checkpoints.get(one.name), one.lag_seconds, wants.get(one.name)) for one in lags["sinks"]
        ]
        self._tables.look(views, {} if progress is None else progress.estimates, now)
        self.current = replace(
            self.current,
            state="warning" if warning else "normal",
            detail=warning,
            updated=now,
            source=pipeline.identity,
            position=position,
            rows=rows,
            transactions=self._base[1] + stages.counts.transactions,
            rows_per_second=self._rate(now, rows),
            memory_bytes=resident_bytes(),
            sorter_memory_bytes=sorter.memory_bytes,
            sorter_disk_bytes=sorter.disk_bytes,
            snapshot=None if progress is None or not progress.table else _snapshot_status(progress),
            waits=pipeline.waits(),
            locks=stages.chains.locks(),
            **lags,
            connected=pipeline.is_connected,
            idle=not pipeline.course.retries and self._lag.is_idle(self._clock.now()),
            log_hours_left=pipeline.hours_left(self._lag.source_time(self._moment)),
            received=self._received(pipeline),
            table_states=self._tables.states(),
            tables=self._tables.shown(),
            verify=verify,
        )

    @property
    def _moment(self) -> Moment:
        return self._clock.now(), self._clock.time()

    def _lags(self, sinks: Sequence[SinkStatus]) -> Lags:
        """Return the fields of a status that the lag model knows."""
        model, moment = self._lag, self._moment
        lags = [model.lag(sink.name, moment) for sink in sinks]
        return {
            "sinks": [
                replace(sink, lag=lag, lag_seconds=lag.total) for sink, lag in zip(sinks, lags, strict=True)
            ],
            "lag": max(lags, key=lambda lag: -1.0 if lag.total is None else lag.total),
            "head": model.head or self.current.head,
            "head_time": model.head_time,
            "last_event_seconds": _since(model.arrived.last_at, moment[0]),
            "checkpoint_moved_seconds": _since(model.checkpoint_moved_at(), moment[0]),
        }

    def _received(self, pipeline: Pipeline) -> Received:
        base, arrived, puller = self._base_received, self._lag.arrived, pipeline.puller_statistics
        return Received(
            arrived.changes,
            arrived.bytes,
            base.log_bytes + (puller.bytes if puller is not None else 0),
            base.retries + (puller.retries if puller is not None else 0),
            base.reconnects + pipeline.course.reconnects,
        )

    def _sink_status(self, pipeline: Pipeline, delivery: Delivery) -> SinkStatus:
        base = self._base_of.get(delivery.sink.name, NO_COUNTS)
        return sink_status(pipeline, delivery, base, self._lag.histograms(delivery.sink.name))


class Lags(TypedDict):
    """Fields of a FeedStatus."""

    sinks: list[SinkStatus]
    lag: Lag
    head: str
    head_time: float | None
    last_event_seconds: float | None
    checkpoint_moved_seconds: float | None


class SinkCounts(NamedTuple):
    rows: int
    batches: int
    retries: int


NO_COUNTS: Final = SinkCounts(0, 0, 0)


def counts_of(sink: SinkStatus) -> SinkCounts:
    return SinkCounts(sink.rows, sink.batches, sink.retries)


def _since(at: float | None, now: float) -> float | None:
    return None if at is None else max(0.0, now - at)


def sink_status(
    pipeline: Pipeline, delivery: Delivery, base: SinkCounts, histograms: SinkHistograms
) -> SinkStatus:
    """Return the status of a sink, without its lag; `base` are its counts in earlier pipelines."""
    statistics = delivery.statistics()
    checkpoint = statistics.checkpoint
    retry = pipeline.course.retries.get(f"sink {delivery.sink.name}")
    workers, letters = statistics.workers, statistics.dead_letters
    warning = letters_sentence(letters) if retry is None else retry.error
    return SinkStatus(
        name=statistics.name,
        target=statistics.target,
        position=checkpoint.position if checkpoint is not None else "",
        ts=checkpoint.ts if checkpoint is not None else 0,
        lag_seconds=None,
        rows=base.rows + statistics.rows,
        batches=base.batches + statistics.batches,
        retries=base.retries + statistics.retries,
        histograms=histograms,
        loading=checkpoint is None or not checkpoint.is_loaded,
        state="warning" if warning else "normal",
        detail=warning,
        workers=workers.workers if workers is not None else 0,
        workers_busy=workers.busy if workers is not None else 0,
        transactions_waiting=workers.units if workers is not None else 0,
        dead_letters=letters,
        dead_letter_tables=dict(statistics.dead_letter_tables),
        safe_mode=dict(statistics.safe_mode),
    )


def _snapshot_status(progress: SnapshotReport) -> SnapshotStatus:
    return SnapshotStatus(
        progress.table, progress.rows, progress.rows_estimated, progress.tables, progress.tables_done
    )
