"""The one model of lag: how far each sink is behind its source, and which stage its changes are in.

The lag of a sink is the age of the oldest change that isn't durable in its target. It is divided by the times
at which this change passed the stages, so the part of the stage that it is in grows. The source's clock is
known by its offset to the monotonic clock of this machine: a clock that jumps makes no lag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple, replace

from ..events import BATCH_ROWS, Checkpoint, Histogram, HistogramCounts, Ts, WatermarkLog, physical_ms
from ..puller.puller import PullerStatistics, SourceHead
from ..sink import Delivery
from ..sorter import EventSorter
from .lag import LAG_SECONDS, Lag, SinkHistograms

RECENT_SECONDS: Final = 5.0
"""Maximum age of the last look at the source's end at which a feed that has everything is idle."""

Moment: TypeAlias = tuple[float, float]
"""The clock's now(), and its time()."""


class Arrived(Struct, frozen=True):
    """Counts of the changes received since the feed's process has started."""

    changes: int = 0
    bytes: int = 0
    last_at: float | None = None
    """The clock's now() at the last change; None before the first."""


class _Sink:
    """Checkpoint, log and histograms of one sink."""

    def __init__(self) -> None:
        self.checkpoint: Checkpoint | None = None
        self.moved_at: float | None = None
        self.written = WatermarkLog()
        self.batch_rows = Histogram(BATCH_ROWS)
        self.lags = [Histogram(LAG_SECONDS) for _ in Lag.__struct_fields__]

    @property
    def ts(self) -> Ts:
        """The ts of the checkpoint; 0 before there is one."""
        return self.checkpoint.ts if self.checkpoint is not None else 0


class LagModel:
    """Lags of a feed, over all its pipelines.

    `acknowledged` is called in the Coordinator's turns, the rest in the feed's threads.
    """

    def __init__(self) -> None:
        self._sinks: dict[str, _Sink] = {}
        self._sorter: EventSorter | None = None
        self._earlier = Arrived()  # by earlier pipelines
        self._head = SourceHead()
        self._pulled = WatermarkLog()  # resolved ts by the puller, also while the sorter waits for sinks

    # --- a pipeline's life -----------------------------------------------------------------------

    def open(self, checkpoints: Mapping[str, Checkpoint | None]) -> None:
        """Note the checkpoints of targets, by the sink's name."""
        for name, checkpoint in checkpoints.items():
            self._sink(name).checkpoint = checkpoint

    def begin(self, sorter: EventSorter, deliveries: Sequence[Delivery]) -> None:
        """Follow a pipeline, which reads from the sinks' checkpoints on."""
        self._pulled = WatermarkLog()
        for delivery in deliveries:
            self._sink(delivery.sink.name).written = delivery.written
        self._sorter = sorter

    def leave(self) -> None:
        """Note the end of the pipeline: what isn't durable will be read again."""
        self._earlier, self._sorter = self.arrived, None
        self._head = SourceHead(clock_offset=self._head.clock_offset)

    def batch_rows(self, name: str) -> Histogram:
        """Return the histogram that the Delivery of a sink adds to."""
        return self._sink(name).batch_rows

    def look(self, puller: PullerStatistics, now: float) -> None:
        """Take a puller's statistics as of `now`."""
        head = puller.head
        if head.clock_offset is None:
            head = replace(head, clock_offset=self._head.clock_offset)
        self._head = head
        self._pulled.note(puller.resolved_ts, now)

    def acknowledged(self, name: str, checkpoint: Checkpoint, moment: Moment) -> None:
        """Note that a sink has made everything up to a checkpoint durable."""
        sink, sorter = self._sink(name), self._sorter
        if sorter is not None:
            oldest = sorter.receipts.oldest(sink.ts)
            if oldest is not None and oldest.first <= checkpoint.ts:
                lag = self._divided(sorter, sink, oldest.first, oldest.at, moment)
                for histogram, seconds in zip(sink.lags, astuple(lag), strict=True):
                    histogram.add(seconds)
        if sink.checkpoint != checkpoint:
            sink.checkpoint, sink.moved_at = checkpoint, moment[0]
        if sorter is not None:
            sorter.receipts.forget(min(one.ts for one in self._sinks.values()))

    def _sink(self, name: str) -> _Sink:
        sink = self._sinks.get(name)
        if sink is None:
            sink = _Sink()
            self._sinks = {**self._sinks, name: sink}
        return sink

    # --- what it says ----------------------------------------------------------------------------

    @property
    def head(self) -> str:
        """The source's end as last seen; empty before that."""
        return self._head.position

    @property
    def head_time(self) -> float | None:
        """Source's time, in Unix seconds, when its end had been reached last; None before that."""
        caught_up_at, offset = self._head.caught_up_at, self._head.clock_offset
        return None if caught_up_at is None or offset is None else caught_up_at + offset

    @property
    def arrived(self) -> Arrived:
        earlier, sorter = self._earlier, self._sorter
        if sorter is None:
            return earlier
        new = sorter.receipts
        last_at = earlier.last_at if new.last_at is None else new.last_at
        return Arrived(earlier.changes + new.changes, earlier.bytes + new.bytes, last_at)

    def source_time(self, moment: Moment) -> float:
        """Return the source's time, in Unix seconds: this machine's while the source's clock isn't known."""
        now, time = moment
        offset = self._head.clock_offset
        return time if offset is None else now + offset

    def histograms(self, name: str) -> SinkHistograms:
        sink = self._sink(name)
        of_stages: dict[str, HistogramCounts] = {
            stage: histogram.counts for stage, histogram in zip(Lag.__struct_fields__, sink.lags, strict=True)
        }
        return SinkHistograms(sink.batch_rows.counts, of_stages)

    def checkpoint_moved_at(self) -> float | None:
        """Return the clock's now() when the checkpoint moved of the sink for which that is longest ago; None
        if there is one that hasn't moved."""
        moved = [sink.moved_at for sink in self._sinks.values()]
        known = [moved_at for moved_at in moved if moved_at is not None]
        return min(known) if known and len(known) == len(moved) else None

    def lag(self, name: str, moment: Moment) -> Lag:
        """Return the lag of a sink."""
        sink, sorter = self._sink(name), self._sorter
        if not sink.ts:
            return Lag()
        if sorter is not None:
            waiting = self._waiting(sorter, sink, moment[0])
            if waiting is not None:
                return self._divided(sorter, sink, *waiting, moment)
        unread = self._unread(sink.ts, moment)
        return Lag(unread, 0.0, 0.0, 0.0, unread)

    def is_idle(self, now: float) -> bool:
        """Return True if the source's end was seen recently and everything up to it is durable."""
        sorter = self._sorter
        return (
            sorter is not None
            and self._is_caught_up(now)
            and all(
                _is_whole(sink) and self._waiting(sorter, sink, now) is None for sink in self._sinks.values()
            )
        )

    def _waiting(self, sorter: EventSorter, sink: _Sink, now: float) -> tuple[Ts, float] | None:
        """Return the ts of the oldest change that was received and isn't durable, and when it was received;
        None if there is none. A resolved ts counts as one that waits for longer than a checkpoint takes."""
        oldest = sorter.receipts.oldest(sink.ts)
        if oldest is not None:
            return oldest.first, oldest.at
        since = sorter.resolved_log.reached(sink.ts + 1)
        return (sink.ts + 1, since) if since is not None and now - since > RECENT_SECONDS else None

    def _divided(self, sorter: EventSorter, sink: _Sink, ts: Ts, received_at: float, moment: Moment) -> Lag:
        """Return the lag of a sink by the change of this ts: until now it isn't durable."""
        now = moment[0]
        reached = [log.reached(ts) for log in (sorter.resolved_log, self._pulled)]
        resolved_at = max(received_at, min([now, *(time for time in reached if time is not None)]))
        written_at = sink.written.reached(ts)
        written_at = now if written_at is None else max(resolved_at, written_at)
        source_time = self.source_time((received_at, moment[1] - (now - received_at)))
        committed = max(0.0, source_time - physical_ms(ts) / 1000 - self._head.resolution_seconds)
        return Lag(
            committed,
            resolved_at - received_at,
            written_at - resolved_at,
            now - written_at,
            committed + now - received_at,
        )

    def _is_caught_up(self, now: float) -> bool:
        caught_up_at = self._head.caught_up_at
        return caught_up_at is not None and now - caught_up_at <= RECENT_SECONDS

    def _unread(self, ts: Ts, moment: Moment) -> float:
        """Return the greatest possible age of the oldest change that wasn't received, 0 if the source's end
        was seen recently. Everything up to `ts` was received earlier."""
        now, head = moment[0], self._head
        if self._is_caught_up(now):
            return 0.0
        source_time = self.source_time(moment)
        ages = [] if head.caught_up_at is None else [now - head.caught_up_at]
        if head.read_until is not None:
            ages.append(source_time - head.read_until - head.resolution_seconds)
        return max(0.0, min(ages, default=source_time - physical_ms(ts) / 1000))


def _is_whole(sink: _Sink) -> bool:
    """Return True if the target has all tables at the checkpoint."""
    checkpoint = sink.checkpoint
    return (
        checkpoint is not None
        and checkpoint.loading is None
        and all(own.ts >= checkpoint.ts for own in checkpoint.tables.values())
    )
