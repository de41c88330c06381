"""Delivery of batches to a sink: they are kept until the sink has made them durable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from msgspec.structs import replace

from ..chain import Barrier, Chain, Stage, StageContext
from ..errors import InvariantViolated, NotReproducible, Retryable, SinkError
from ..events import (
    BATCH_ROWS,
    WHOLE,
    Batch,
    Checkpoint,
    Ddl,
    Histogram,
    Item,
    TablePosition,
    Transaction,
    Wait,
    WatermarkLog,
)
from .batch_cutter import BatchCutter
from .errors import BehindBarrier, LoadRequired, ReplayRequired, table_failed
from .resume_filter import START, ResumeFilter
from .sink import Sink, WorkersProgress
from .table_load import creates_for_snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOptions:
    max_rows: int = 10_000
    """Maximum number of rows of a batch; a free sink gets whatever waits as a smaller one. A larger
    transaction is written in parts, in one commit."""
    max_kept_rows: int = 50_000
    """Maximum number of rows of an open transaction kept in memory, to write them again if the connection is
    lost; the source reads a larger one again."""
    max_waiting_items: int = 1_000
    """Maximum number of items taken while waiting at a barrier."""
    poll_seconds: float = 0.02
    """Interval of looks at a sink that makes rows durable without being waited for."""
    rowless_seconds: float = 1.0
    """Minimum pause between writes of a checkpoint that advances without rows."""
    tables_per_row: int = 8
    """Number of tables whose snapshot progress costs as much to write as a row."""


@dataclass(frozen=True, slots=True)
class DeliveryStatistics:
    name: str
    target: str
    checkpoint: Checkpoint | None
    """The last acknowledged checkpoint."""
    waiting_items: int
    rows: int
    """Rows acknowledged since the start, without those that the sink had before."""
    batches: int
    retries: int
    error: str | None
    """Reason that the sink is waiting; None while it isn't."""
    workers: WorkersProgress | None = None
    """None if the sink has no parallel workers."""
    dead_letters: int = 0
    """Number of changes that the target rejected and that are kept there."""
    dead_letter_tables: Mapping[str, int] = field(default_factory=dict)
    """Number of them by table."""
    safe_mode: Mapping[str, int] = field(default_factory=dict)
    """Reasons for safe mode, each with a count; empty if it isn't active."""


class Delivery:
    """The work of one sink. Survives its actor: after Retryable, `run` continues where it stopped.

    Used by one thread at a time, except for `statistics` and `waits`.
    """

    def __init__(
        self,
        sink: Sink,
        checkpoint: Checkpoint | None,
        source: str = "",
        options: DeliveryOptions | None = None,
        *,
        stages: Sequence[Stage] = (),
        feed: str = "",
        now: Callable[[], float] = float,
        can_reload: bool = False,
        is_end: Callable[[Checkpoint], bool] = lambda _: False,
        acknowledged: Callable[[Checkpoint], object] = lambda _: None,
        seek: Callable[[TablePosition], None] | None = None,
        batch_rows: Histogram | None = None,
        rowless_seconds: Callable[[], float] | None = None,
    ) -> None:
        """`sink` is open and at `checkpoint`; `source` is the identity in new checkpoints.

        Items pass the resume filter and the open `stages` before they go into batches. `can_reload` is True
        if the source can load single tables again. `is_end` returns True for the checkpoint of a feed's end:
        a sink that makes rows durable by itself doesn't wait until they are due there. `acknowledged` is
        called with each durable checkpoint, `seek` with a position after which a stage needs the source read
        again; without it that is an error. `batch_rows`, with the bounds BATCH_ROWS, gets the number of rows
        of each batch. `rowless_seconds` returns the pause in place of that of the options.
        """
        self.sink = sink
        self.written = WatermarkLog()
        """Log of the ts up to which everything was written, durable or not."""
        self._batch_rows = batch_rows or Histogram(BATCH_ROWS)
        self._is_end = is_end
        self._acknowledged = acknowledged
        self._options = options or DeliveryOptions()
        self._rowless_seconds = rowless_seconds or (lambda: self._options.rowless_seconds)
        self._start = replace(checkpoint or START, source=source or (checkpoint or START).source)
        self._cutter = BatchCutter(sink, self._start, self._options.max_rows, can_reload=can_reload)
        self._chain = Chain([ResumeFilter(), *stages])
        self._now = now
        self._chain.open(
            StageContext(
                feed=feed,
                sink=sink.name,
                checkpoint=self._start,
                now=now,
                seek=seek or self._cannot_seek,
            )
        )
        self._kept: list[Batch] = []  # not durable yet, in order; the first `_written` are written
        self._kept_rows: list[int] = []  # number of rows of each; the first one's with those no longer kept
        self._written = 0
        self._flushed = 0  # number of flushed batches, for a sink that doesn't wait
        self._is_pipelined = sink.traits.is_pipelined
        self._complete = True  # True if `_kept` has all batches that aren't durable
        self._unflushed_rows = 0
        self._next_rowless = 0.0
        self._checkpoint = checkpoint
        self._wanted: Checkpoint | None = None  # of the last batch; durable once the sink reports it
        self._barrier_since: float | None = None
        self._open_since: float | None = None
        """Time of the first batch of a transaction that comes in several; None if none is open."""
        self._rows = self._batches = self._retries = 0
        self._error: str | None = None

    def _cannot_seek(self, place: TablePosition) -> None:
        raise SinkError(f"sink {self.sink.name}: nothing here can go back to {place.position} for a stage")

    def accept(self, items: Sequence[Item]) -> None:
        """Accept items; a call of `run` must follow. Raises ReplayRequired if a stage can't take them now."""
        try:
            self._cutter.waiting.extend(self._chain.apply(items))
        except Retryable as error:
            raise ReplayRequired(str(error), error.wait) from error

    def review(self) -> None:
        """Accept items that a stage lets pass on request; a call of `run` must follow."""
        self._cutter.waiting.extend(self._chain.durable(self._checkpoint or self._start))

    def table_failed(self, error: SinkError, now: float) -> SinkError:
        """Return the error that parks the table that an error is about, if it is about one. `now` is in Unix
        seconds."""
        return table_failed(error, self.sink.name, self._checkpoint or self._start, now)

    def run(self, now: float) -> float | None:
        """Write and flush waiting items; return the seconds until the next call, None if none is needed.

        Raises Retryable, after which nothing is lost and `run` continues; after ReplayRequired, LoadRequired
        or Fatal it can't.
        """
        with self._undone_by_retryable():
            if self._flushed or self.sink.wakes() == 0:
                self._look()
            while self._step(now):
                pass
        self._error = None
        if self._cutter.waiting:  # for a barrier
            self._barrier_since = now if self._barrier_since is None else self._barrier_since
            if len(self._cutter.waiting) > self._options.max_waiting_items:
                raise BehindBarrier(len(self._cutter.waiting))
            return self._options.poll_seconds if self._flushed else self._options.rowless_seconds
        self._barrier_since = None
        pauses = [self.sink.wakes()]
        if self._rests():
            pauses.append(max(0.0, self._next_rowless - now))
        if self._flushed and not self._is_durable():
            pauses.append(self._options.poll_seconds)
        return min([pause for pause in pauses if pause is not None], default=None)

    def _step(self, now: float) -> bool:
        """Write a batch, flush, or pass a barrier; return False if there is nothing to do now."""
        if (batch := self._next_batch()) is not None:
            if _is_ddl(batch) and self.sink.traits.needs_flush_before_ddl:
                self._flush_before(batch)
            try:
                self.sink.write(batch)
            except NotReproducible as error:
                self._replace_by_reload(error)
                return True
            if batch.checkpoint is not None:
                self.written.note(batch.checkpoint.ts, self._now())
            self._batch_rows.add(self._kept_rows[self._written])
            self._written += 1
            if self._rests() and (self._cutter.reloads or self._is_due(batch)):
                self._flush(now)
            return True
        at_barrier = bool(self._cutter.waiting)
        if self._rests() and (at_barrier or now >= self._next_rowless):
            self._flush(now)
            return True
        return at_barrier and self._pass_barrier(now)

    def _flush_before(self, batch: Batch) -> None:
        """Make everything before an unwritten batch durable."""
        if self._kept[0] is not batch:
            self._note(self.sink.flush())
            if self._kept[0] is not batch:
                raise InvariantViolated(f"sink {self.sink.name}: a flush left rows before a schema change")

    def _is_due(self, batch: Batch) -> bool:
        """Return True if the last batch is flushed now, not `rowless_seconds` after the last flush.

        Each flush writes the progress of all tables that are being loaded. While they are many, it is due
        once as much was written as it costs: so the start of a feed takes a time proportional to its tables.
        """
        if not (self._unflushed_rows or _is_ddl(batch)):
            return False
        loading = batch.checkpoint.loading if batch.checkpoint is not None else None
        if loading is None or not _is_of_snapshot(batch):
            return True
        written = self._unflushed_rows + len(self._kept)
        return written * self._options.tables_per_row >= len(loading)

    def _pass_barrier(self, now: float) -> bool:
        if self._kept and self._kept[-1].checkpoint is None:
            raise InvariantViolated("a stage set a barrier inside a transaction")
        if not self._is_durable():
            self._flush(now)
        if not self._is_durable():
            return False
        barrier = self._cutter.waiting.popleft()
        assert isinstance(barrier, Barrier)
        if barrier.passed is not None:
            barrier.passed()
        self._cutter.waiting.extend(self._chain.durable(self._checkpoint or self._start))
        return True

    def _is_durable(self) -> bool:
        """Return True if everything written is durable in the target."""
        wanted, have = self._wanted, self._checkpoint
        return wanted is None or (have is not None and have.includes(wanted))

    def _rests(self) -> bool:
        """Return True if all cut batches are written, end with a checkpoint, and aren't flushed yet."""
        written = self._written
        return self._flushed < written == len(self._kept) and self._kept[-1].checkpoint is not None

    def flush(self, now: float) -> None:
        """Make written batches durable, and report the checkpoint. Raises as `run` does."""
        if self._written < len(self._kept):
            return  # rolled back; it is written again
        with self._undone_by_retryable():
            self._flush(now, wait=True)

    def _flush(self, now: float, *, wait: bool = False) -> None:
        """Flush the sink; without `wait` it may go on by itself, and `_look` finds out how far it is."""
        wait = wait or (self._wanted is not None and self._is_end(self._wanted))
        checkpoint = self.sink.progress() if self._is_pipelined and not wait else self.sink.flush()
        if not self._kept or self._kept[-1].checkpoint is not None:
            self._flushed = len(self._kept)
            self._unflushed_rows = 0
            self._next_rowless = now + self._rowless_seconds()
            if not self._is_pipelined:
                self._forget(len(self._kept))
        self._note(checkpoint)

    def _look(self) -> None:
        """Note what a sink that doesn't wait has made durable since."""
        self._note(self.sink.progress())

    def _note(self, checkpoint: Checkpoint | None) -> None:
        if self._is_pipelined and checkpoint is not None:
            ends = [batch.checkpoint for batch in self._kept[: self._written]]
            is_past = [end is not None and checkpoint.includes(end) for end in ends]
            self._forget(len(ends) - is_past[::-1].index(True) if True in is_past else 0)
        if checkpoint is not None and checkpoint != self._checkpoint:
            self._checkpoint = checkpoint
            self._acknowledged(checkpoint)
            self._cutter.waiting.extend(self._chain.durable(checkpoint))
        if self._cutter.reloads and self._durably_stale():
            raise LoadRequired(self._cutter.reloads, "; ".join(self._cutter.reloads.values()))

    def _forget(self, count: int) -> None:
        """Drop the first kept batches, which are durable."""
        self._batches += count
        self._rows += sum(self._kept_rows[:count])
        del self._kept[:count], self._kept_rows[:count]
        self._written -= count
        self._flushed = max(0, self._flushed - count)
        self._complete = self._complete or not self._kept

    def _durably_stale(self) -> bool:
        loading = self._checkpoint.loading if self._checkpoint is not None else None
        listed = [] if loading is None else [loading.get(name, WHOLE) for name in self._cutter.reloads]
        return bool(listed) and all(have.stale or have.pending or have.parked is not None for have in listed)

    @contextmanager
    def _undone_by_retryable(self) -> Iterator[None]:
        try:
            yield
        except Retryable as error:
            self._retries += 1
            self._error = str(error)
            self._written = self._flushed = 0
            if not self._complete:
                raise ReplayRequired(str(error), error.wait) from error
            raise

    def close(self) -> None:
        self._chain.close()
        self.sink.close()

    def waits(self) -> list[Wait]:
        """Return the waits of its stages, and its own at a barrier. Any thread."""
        waits = self._chain.waits() + self.sink.waits()
        if (since := self._barrier_since) is not None:
            seconds = self._now() - since
            waits.append(Wait(f"sink {self.sink.name}", "barrier", seconds, count=len(self._cutter.waiting)))
        if (since := self._open_since) is not None:
            seconds = self._now() - since
            waits.append(Wait(f"sink {self.sink.name}", "transaction", seconds, count=self._unflushed_rows))
        return waits

    def statistics(self) -> DeliveryStatistics:
        of_sink = self.sink.statistics()
        return DeliveryStatistics(
            self.sink.name,
            self.sink.target,
            self._checkpoint,
            len(self._cutter.waiting),
            self._rows,
            self._batches,
            self._retries,
            self._error,
            of_sink.workers,
            of_sink.dead_letters,
            of_sink.dead_letter_tables,
            of_sink.safe_mode,
        )

    # --- batches

    def _next_batch(self) -> Batch | None:
        """Return the first unwritten batch, or cut a new one; None if nothing waits."""
        if self._written < len(self._kept):
            return self._kept[self._written]
        batch = self._cutter.cut()
        if batch is None:
            return None
        self._wanted = batch.checkpoint or self._wanted
        if batch.checkpoint is None:
            self._open_since = self._now() if self._open_since is None else self._open_since
        else:
            self._open_since = None
        self._unflushed_rows += self._cutter.rows
        self._kept.append(batch)
        self._kept_rows.append(self._cutter.rows)
        if self._unflushed_rows > self._options.max_kept_rows and batch.checkpoint is None:
            self._complete = False
        if not self._complete:
            self._kept, self._kept_rows = [batch], [sum(self._kept_rows)]
            self._written = self._flushed = 0
        return batch

    def _replace_by_reload(self, error: NotReproducible) -> None:
        """Put a transaction without rows in place of the unwritten Ddl; all batches are written again."""
        batch = self._kept[self._written] = self._cutter.replaced(self._kept[self._written], error)
        self._wanted = batch.checkpoint or self._wanted
        self._written = self._flushed = 0
        if not self._complete:
            raise ReplayRequired(str(error))


def _is_ddl(batch: Batch) -> bool:
    return bool(batch.items) and isinstance(batch.items[0], Ddl)


def _is_of_snapshot(batch: Batch) -> bool:
    return all(
        item.chunk is not None if isinstance(item, Transaction) else creates_for_snapshot(item)
        for item in batch.items
    )
