"""The metrics of feeds: each declared once, for Prometheus, for OpenTelemetry and for docs/monitoring.md.

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


def _value(read: Callable[[FeedStatus], float | None]) -> Callable[[FeedStatus], Iterator[Sample]]:
    def samples(status: FeedStatus) -> Iterator[Sample]:
        if (value := read(status)) is not None:
            yield (), value

    return samples


def _of_sinks(
    read: Callable[[SinkStatus], float | HistogramCounts | None],
) -> Callable[[FeedStatus], Iterator[Sample]]:
    def samples(status: FeedStatus) -> Iterator[Sample]:
        for sink in status.sinks:
            if (value := read(sink)) is not None:
                yield (sink.name,), value

    return samples


def _of_sinks_by(
    read: Callable[[SinkStatus], Mapping[str, float | HistogramCounts | None]],
) -> Callable[[FeedStatus], Iterator[Sample]]:
    def samples(status: FeedStatus) -> Iterator[Sample]:
        for sink in status.sinks:
            for label, value in read(sink).items():
                if value is not None:
                    yield (sink.name, label), value

    return samples


def _one_hot(state: State) -> dict[str, float]:
    return {name: float(name == state) for name in get_args(State)}


def _states(status: FeedStatus) -> Iterator[Sample]:
    for state, value in _one_hot(status.state).items():
        yield (state,), value


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


def _waits(status: FeedStatus) -> Iterator[Sample]:
    longest: dict[str, float] = {}
    for wait in status.waits:
        longest[wait.kind] = max(longest.get(wait.kind, 0.0), wait.seconds)
    for kind, seconds in sorted(longest.items()):
        yield (kind,), seconds


def _worst_letters(sink: SinkStatus) -> dict[str, float]:
    return dict(nlargest(WORST, sink.dead_letter_tables.items(), key=lambda entry: entry[1]))


METRICS: Final = (
    Metric(
        name="tidemill_feed_state",
        kind="gauge",
        text="1 for the state that the feed is in, 0 for the others.",
        labels=("state",),
        samples=_states,
    ),
    Metric(
        name="tidemill_feed_idle",
        kind="gauge",
        text="1 if the source's end was seen recently and everything up to it is durable.",
        samples=_value(lambda status: status.idle),
    ),
    Metric(
        name="tidemill_source_connected",
        kind="gauge",
        text="1 if the source is connected.",
        samples=_value(lambda status: status.connected),
    ),
    Metric(
        name="tidemill_lag_seconds",
        kind="gauge",
        text="Time that the oldest change that isn't durable has spent in each stage; stage total: its age.",
        labels=("sink", "stage"),
        samples=_of_sinks_by(_lags),
    ),
    Metric(
        name="tidemill_checkpoint_timestamp_seconds",
        kind="gauge",
        text="Time of the sink's checkpoint, in Unix seconds of the source's clock.",
        labels=("sink",),
        samples=_of_sinks(lambda sink: physical_ms(sink.ts) / 1000 if sink.ts else None),
    ),
    Metric(
        name="tidemill_head_timestamp_seconds",
        kind="gauge",
        text="Time at which the source's end was last seen, in Unix seconds of the source's clock.",
        samples=_value(lambda status: status.head_time),
    ),
    Metric(
        name="tidemill_last_event_seconds",
        kind="gauge",
        text="Time since a change was last received.",
        samples=_value(lambda status: status.last_event_seconds),
    ),
    Metric(
        name="tidemill_checkpoint_moved_seconds",
        kind="gauge",
        text="Time since the checkpoint moved, of the sink for which that is longest ago.",
        samples=_value(lambda status: status.checkpoint_moved_seconds),
    ),
    Metric(
        name="tidemill_log_hours_left",
        kind="gauge",
        text="Hours until the source discards what comes after the lowest checkpoint.",
        samples=_value(lambda status: status.log_hours_left),
    ),
    Metric(
        name="tidemill_wait_seconds",
        kind="gauge",
        text="Longest present wait of each kind.",
        labels=("kind",),
        samples=_waits,
    ),
    Metric(
        name="tidemill_process_memory_bytes",
        kind="gauge",
        text="Resident memory of the feed's process.",
        samples=_value(lambda status: status.memory_bytes),
    ),
    Metric(
        name="tidemill_sorter_memory_bytes",
        kind="gauge",
        text="Changes that the sorter holds in memory.",
        samples=_value(lambda status: status.sorter_memory_bytes),
    ),
    Metric(
        name="tidemill_sorter_memory_quota_bytes",
        kind="gauge",
        text="Quota of the sorter's memory; 0: none.",
        samples=_value(lambda status: status.memory_quota_bytes),
    ),
    Metric(
        name="tidemill_sorter_disk_bytes",
        kind="gauge",
        text="Changes that the sorter holds on disk.",
        samples=_value(lambda status: status.sorter_disk_bytes),
    ),
    Metric(
        name="tidemill_sorter_disk_quota_bytes",
        kind="gauge",
        text="Quota of the sorter's disk; 0: none.",
        samples=_value(lambda status: status.disk_quota_bytes),
    ),
    Metric(
        name="tidemill_snapshot_rows",
        kind="gauge",
        text="Rows read by the snapshot that is under way.",
        samples=_value(lambda status: None if status.snapshot is None else status.snapshot.rows),
    ),
    Metric(
        name="tidemill_snapshot_rows_estimated",
        kind="gauge",
        text="Rows of all its tables, by the source's statistics.",
        samples=_value(lambda status: None if status.snapshot is None else status.snapshot.rows_estimated),
    ),
    Metric(
        name="tidemill_received_changes",
        kind="counter",
        text="Changes received from the source; a change of a binlog may have many rows.",
        samples=_value(lambda status: status.received.changes),
    ),
    Metric(
        name="tidemill_received_bytes",
        kind="counter",
        text="Bytes of the changes received.",
        samples=_value(lambda status: status.received.bytes),
    ),
    Metric(
        name="tidemill_log_bytes",
        kind="counter",
        text="Bytes of the source's log that were read.",
        samples=_value(lambda status: status.received.log_bytes),
    ),
    Metric(
        name="tidemill_source_retries",
        kind="counter",
        text="Failed connections and requests of the source that were repeated.",
        samples=_value(lambda status: status.received.retries),
    ),
    Metric(
        name="tidemill_source_reconnects",
        kind="counter",
        text="Connections of the source after a failure.",
        samples=_value(lambda status: status.received.reconnects),
    ),
    Metric(
        name="tidemill_rows",
        kind="counter",
        text="Row changes passed to the sinks.",
        samples=_value(lambda status: status.rows),
    ),
    Metric(
        name="tidemill_transactions",
        kind="counter",
        text="Transactions with rows passed to the sinks.",
        samples=_value(lambda status: status.transactions),
    ),
    Metric(
        name="tidemill_sink_state",
        kind="gauge",
        text="1 for the state that the sink is in, 0 for the others.",
        labels=("sink", "state"),
        samples=_of_sinks_by(lambda sink: _one_hot(sink.state)),
    ),
    Metric(
        name="tidemill_sink_rows",
        kind="counter",
        text="Row changes that are durable in the target.",
        labels=("sink",),
        samples=_of_sinks(lambda sink: sink.rows),
    ),
    Metric(
        name="tidemill_sink_batches",
        kind="counter",
        text="Batches that are durable in the target.",
        labels=("sink",),
        samples=_of_sinks(lambda sink: sink.batches),
    ),
    Metric(
        name="tidemill_sink_retries",
        kind="counter",
        text="Times that what wasn't durable was rolled back, to be written again.",
        labels=("sink",),
        samples=_of_sinks(lambda sink: sink.retries),
    ),
    Metric(
        name="tidemill_sink_workers_busy",
        kind="gauge",
        text="Connections that apply a transaction.",
        labels=("sink",),
        samples=_of_sinks(lambda sink: sink.workers_busy if sink.workers else None),
    ),
    Metric(
        name="tidemill_sink_transactions_waiting",
        kind="gauge",
        text="Transactions that the connections have and that aren't durable.",
        labels=("sink",),
        samples=_of_sinks(lambda sink: sink.transactions_waiting if sink.workers else None),
    ),
    Metric(
        name="tidemill_dead_letters",
        kind="gauge",
        text="Changes that the target rejected, and that wait for a decision.",
        labels=("sink",),
        samples=_of_sinks(lambda sink: sink.dead_letters),
    ),
    Metric(
        name="tidemill_dead_letters_of_table",
        kind="gauge",
        text=f"The same by table, of the {WORST} tables with the most.",
        labels=("sink", "table"),
        samples=_of_sinks_by(_worst_letters),
    ),
    Metric(
        name="tidemill_safe_mode",
        kind="gauge",
        text="Number of times that safe mode was entered and not left, by reason.",
        labels=("sink", "reason"),
        samples=_of_sinks_by(lambda sink: sink.safe_mode),
    ),
    Metric(
        name="tidemill_batch_rows",
        kind="histogram",
        text="Rows of each batch that was written.",
        labels=("sink",),
        samples=_of_sinks(lambda sink: None if sink.histograms is None else sink.histograms.batch_rows),
        bounds=BATCH_ROWS,
    ),
    Metric(
        name="tidemill_change_lag_seconds",
        kind="histogram",
        text="Time from commit to durable, of the oldest change of each acknowledgement.",
        labels=("sink",),
        samples=_of_sinks(lambda sink: None if sink.histograms is None else sink.histograms.lag["total"]),
        bounds=LAG_SECONDS,
    ),
    Metric(
        name="tidemill_change_stage_seconds",
        kind="summary",
        text="The same by stage.",
        labels=("sink", "stage"),
        samples=_of_sinks_by(_stage_sums),
    ),
)


def buckets(bounds: Sequence[float], counts: HistogramCounts) -> list[tuple[str, float]]:
    """Return the cumulated counts by upper bound."""
    cumulated = 0
    buckets = []
    for bound, count in zip([*(f"{bound:g}" for bound in bounds), "+Inf"], counts.counts, strict=True):
        cumulated += count
        buckets.append((bound, float(cumulated)))
    return buckets
