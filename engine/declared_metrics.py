"""The metrics of feeds: each declared once, for Prometheus, OpenTelemetry and docs/reference/monitoring.md.

A feed has about a hundred series, whatever the number of its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Final, Literal, TypeAlias, get_args

from ..events import BATCH_ROWS, HistogramCounts, physical_ms
from .lag import LAG_SECONDS, STAGES
from .status import FeedStatus, SinkStatus, State
from .tables import TableState
from .verification import VerifyStatus

Kind: TypeAlias = Literal["gauge", "counter", "histogram", "summary"]
Sample: TypeAlias = tuple[tuple[str, ...], float | HistogramCounts]
"""Values of the labels after "feed", and the value: counts of a histogram or a summary."""
WORST: Final = 20
"""Maximum number of tables of a sink that have series of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric of a feed."""

    name: str
    """Without the suffix _total of a counter."""
    kind: Kind
    text: str
    labels: tuple[str, ...] = ()
    """Names of the labels after "feed"."""
    samples: Callable[[FeedStatus], Iterable[Sample]]
    bounds: Sequence[float] = ()
    """Bounds of a histogram."""

    @property
    def series(self) -> str:
        """The name under which Prometheus has it, without the suffixes of a histogram."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


def _feed(name: str, kind: Kind, read: Callable[[FeedStatus], float | None], text: str) -> Metric:
    """Return a metric with one value for a feed, unless it is None."""

    def samples(status: FeedStatus) -> Iterator[Sample]:
        if (value := read(status)) is not None:
            yield (), value

    return Metric(name=name, kind=kind, text=text, samples=samples)


def _feed_by(
    name: str, kind: Kind, label: str, read: Callable[[FeedStatus], Mapping[str, float]], text: str
) -> Metric:
    """Return a metric with a value for each of a label's."""

    def samples(status: FeedStatus) -> Iterator[Sample]:
        for value, number in read(status).items():
            yield (value,), number

    return Metric(name=name, kind=kind, text=text, labels=(label,), samples=samples)


def _sink(
    name: str,
    kind: Kind,
    read: Callable[[SinkStatus], float | HistogramCounts | None],
    text: str,
    bounds: Sequence[float] = (),
) -> Metric:
    """Return a metric with one value for each sink, unless it is None."""

    def samples(status: FeedStatus) -> Iterator[Sample]:
        for sink in status.sinks:
            if (value := read(sink)) is not None:
                yield (sink.name,), value

    return Metric(name=name, kind=kind, text=text, labels=("sink",), samples=samples, bounds=bounds)


def _sink_by(
    name: str,
    kind: Kind,
    label: str,
    read: Callable[[SinkStatus], Mapping[str, float | HistogramCounts | None]],
    text: str,
) -> Metric:
    """Return a metric with a value for each sink and each of a label's, unless it is None."""

    def samples(status: FeedStatus) -> Iterator[Sample]:
        for sink in status.sinks:
            for value, number in read(sink).items():
                if number is not None:
                    yield (sink.name, value), number

    return Metric(name=name, kind=kind, text=text, labels=("sink", label), samples=samples)


def _verify(name: str, kind: Kind, read: Callable[[VerifyStatus], float | None], text: str) -> Metric:
    """Return a metric with one value for each sink whose target is verified, unless it is None."""

    def samples(status: FeedStatus) -> Iterator[Sample]:
        for one in status.verify:
            if (value := read(one)) is not None:
                yield (one.sink,), value

    return Metric(name=name, kind=kind, text=text, labels=("sink",), samples=samples)


def _one_hot(state: State) -> dict[str, float]:
    return {name: float(name == state) for name in get_args(State)}


def _tables(status: FeedStatus) -> dict[str, float]:
    return {state: float(status.table_states.get(state, 0)) for state in get_args(TableState)}


def _worst_lags(status: FeedStatus) -> dict[str, float]:
    lags = [(one.name, one.lag_seconds) for one in status.tables if one.lag_seconds is not None]
    return dict(nlargest(WORST, lags, key=lambda entry: entry[1]))


def _lags(sink: SinkStatus) -> dict[str, float | None]:
    lag = sink.lag
    return {
        "commit_to_received": lag.commit_to_received,
        "received_to_resolved": lag.received_to_resolved,
        "resolved_to_written": lag.resolved_to_written,
        "written_to_durable": lag.written_to_durable,
        "total": lag.total,
    }


def _stage_sums(sink: SinkStatus) -> dict[str, HistogramCounts]:
    histograms = sink.histograms
    return {} if histograms is None else {stage: histograms.lag[stage] for stage in STAGES}


def _waits(status: FeedStatus) -> dict[str, float]:
    longest: dict[str, float] = {}
    for wait in status.waits:
        longest[wait.kind] = max(longest.get(wait.kind, 0.0), wait.seconds)
    return dict(sorted(longest.items()))


def _worst_letters(sink: SinkStatus) -> dict[str, float]:
    return dict(nlargest(WORST, sink.dead_letter_tables.items(), key=lambda entry: entry[1]))


# fmt: off
METRICS: Final = (
    _feed_by("tidemill_feed_state", "gauge", "state", lambda status: _one_hot(status.state),
        "1 for the state that the feed is in, 0 for the others."),
    _feed("tidemill_feed_idle", "gauge", lambda status: status.idle,
        "1 if the source's end was seen recently and everything up to it is durable."),
    _feed("tidemill_source_connected", "gauge", lambda status: status.connected,
        "1 if the source is connected."),
    _sink_by("tidemill_lag_seconds", "gauge", "stage", _lags,
        "Time that the oldest change that isn't durable has spent in each stage; stage total: its age."),
    _sink("tidemill_checkpoint_timestamp_seconds", "gauge",
        lambda sink: physical_ms(sink.ts) / 1000 if sink.ts else None,
        "Time of the sink's checkpoint, in Unix seconds of the source's clock."),
    _feed("tidemill_head_timestamp_seconds", "gauge", lambda status: status.head_time,
        "Time at which the source's end was last seen, in Unix seconds of the source's clock."),
    _feed("tidemill_last_event_seconds", "gauge", lambda status: status.last_event_seconds,
        "Time since a change was last received."),
    _feed("tidemill_checkpoint_moved_seconds", "gauge", lambda status: status.checkpoint_moved_seconds,
        "Time since the checkpoint moved, of the sink for which that is longest ago."),
    _feed("tidemill_log_hours_left", "gauge", lambda status: status.log_hours_left,
        "Hours until the source discards what comes after the lowest checkpoint."),
    _feed_by("tidemill_wait_seconds", "gauge", "kind", _waits,
        "Longest present wait of each kind."),
    _feed("tidemill_process_memory_bytes", "gauge", lambda status: status.memory_bytes,
        "Resident memory of the feed's process."),
    _feed("tidemill_sorter_memory_bytes", "gauge", lambda status: status.sorter_memory_bytes,
        "Changes that the sorter holds in memory."),
    _feed("tidemill_sorter_memory_quota_bytes", "gauge", lambda status: status.memory_quota_bytes,
        "Quota of the sorter's memory; 0: none."),
    _feed("tidemill_sorter_disk_bytes", "gauge", lambda status: status.sorter_disk_bytes,
        "Changes that the sorter holds on disk."),
    _feed("tidemill_sorter_disk_quota_bytes", "gauge", lambda status: status.disk_quota_bytes,
        "Quota of the sorter's disk; 0: none."),
    _feed("tidemill_snapshot_rows", "gauge",
        lambda status: None if status.snapshot is None else status.snapshot.rows,
        "Rows read by the snapshot that is under way."),
    _feed("tidemill_snapshot_rows_estimated", "gauge",
        lambda status: None if status.snapshot is None else status.snapshot.rows_estimated,
        "Rows of all its tables, by the source's statistics."),
    _feed_by("tidemill_tables", "gauge", "state", _tables,
        "Number of tables in each state."),
    _feed_by("tidemill_table_lag_seconds", "gauge", "table", _worst_lags,
        f"Age of a table's copy, of the {WORST} oldest among the tables that the status lists."),
    _feed("tidemill_received_changes", "counter", lambda status: status.received.changes,
        "Changes received from the source; a change of a binlog may have many rows."),
    _feed("tidemill_received_bytes", "counter", lambda status: status.received.bytes,
        "Bytes of the changes received."),
    _feed("tidemill_log_bytes", "counter", lambda status: status.received.log_bytes,
        "Bytes of the source's log that were read."),
    _feed("tidemill_source_retries", "counter", lambda status: status.received.retries,
        "Failed connections and requests of the source that were repeated."),
    _feed("tidemill_source_reconnects", "counter", lambda status: status.received.reconnects,
        "Connections of the source after a failure."),
    _feed("tidemill_rows", "counter", lambda status: status.rows,
        "Row changes passed to the sinks."),
    _feed("tidemill_transactions", "counter", lambda status: status.transactions,
        "Transactions with rows passed to the sinks."),
    _sink_by("tidemill_sink_state", "gauge", "state", lambda sink: _one_hot(sink.state),
        "1 for the state that the sink is in, 0 for the others."),
    _sink("tidemill_sink_rows", "counter", lambda sink: sink.rows,
        "Row changes that are durable in the target."),
    _sink("tidemill_sink_batches", "counter", lambda sink: sink.batches,
        "Batches that are durable in the target."),
    _sink("tidemill_sink_retries", "counter", lambda sink: sink.retries,
        "Times that what wasn't durable was rolled back, to be written again."),
    _sink("tidemill_sink_workers_busy", "gauge", lambda sink: sink.workers_busy if sink.workers else None,
        "Connections that apply a transaction."),
    _sink("tidemill_sink_transactions_waiting", "gauge",
        lambda sink: sink.transactions_waiting if sink.workers else None,
        "Transactions that the connections have and that aren't durable."),
    _sink("tidemill_dead_letters", "gauge", lambda sink: sink.dead_letters,
        "Changes that the target rejected, and that wait for a decision."),
    _sink_by("tidemill_dead_letters_of_table", "gauge", "table", _worst_letters,
        f"The same by table, of the {WORST} tables with the most."),
    _verify("tidemill_verify_differences", "gauge", lambda one: one.differences,
        "Rows of the target that differ from the source's, as the verification compared them last."),
    _verify("tidemill_verify_diverged_tables", "gauge", lambda one: one.diverged,
        "Tables that have such rows, or that differ themselves."),
    _verify("tidemill_verify_ratio", "gauge", lambda one: one.percent / 100,
        "Share of the rows that the present pass of the verification has compared, or the last one."),
    _verify("tidemill_verify_whole_timestamp_seconds", "gauge", lambda one: one.whole_began,
        "Time at which the last whole pass began, in Unix seconds."),
    _verify("tidemill_verify_paused", "gauge", lambda one: one.state == "paused",
        "1 if the verification is paused after an error."),
    _verify("tidemill_verify_rows", "counter", lambda one: one.rows_compared,
        "Rows of the source that the verification has compared."),
    _verify("tidemill_verify_repaired_rows", "counter", lambda one: one.repaired,
        "Rows that the verification has repaired in the target."),
    _sink_by("tidemill_safe_mode", "gauge", "reason", lambda sink: sink.safe_mode,
        "Number of times that safe mode was entered and not left, by reason."),
    _sink("tidemill_batch_rows", "histogram",
        lambda sink: None if sink.histograms is None else sink.histograms.batch_rows,
        "Rows of each batch that was written.", BATCH_ROWS),
    _sink("tidemill_change_lag_seconds", "histogram",
        lambda sink: None if sink.histograms is None else sink.histograms.lag["total"],
        "Time from commit to durable, of the oldest change of each acknowledgement.", LAG_SECONDS),
    _sink_by("tidemill_change_stage_seconds", "summary", "stage", _stage_sums,
        "The same by stage."),
)
# fmt: on


def buckets(bounds: Sequence[float], counts: HistogramCounts) -> list[tuple[str, float]]:
    """Return the cumulated counts by upper bound."""
    cumulated = 0
    buckets = []
    for bound, count in zip([*(f"{bound:g}" for bound in bounds), "+Inf"], counts.counts, strict=True):
        cumulated += count
        buckets.append((bound, float(cumulated)))
    return buckets
