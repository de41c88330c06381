"""From what waits to what is durable: cutting batches, and keeping them until the sink has them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import Retryable, SinkError
from ..events import Batch, Checkpoint, Ddl, Item, Transaction, Ts, row_count
from .resume_filter import ResumeFilter
from .sink import Sink


class ReplayRequired(Retryable):
    """The sink lost rows of a transaction that was too large to keep: only the source has them.

    Going on takes a new start from the sink's checkpoint.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOptions:
    max_rows: int = 10_000
    """A batch is written once it has this many rows; what waits when the sink is free makes a batch,
    however small. A transaction larger than that is written in pieces, in one commit."""
    max_kept_rows: int = 50_000
    """Rows of an open transaction that are kept in memory to be written again, should the target be
    lost; beyond that the source reads them again."""
    rowless_seconds: float = 1.0
    """A checkpoint that moves without any rows is written no more often than this."""


@dataclass(frozen=True, slots=True)
class DeliveryStatistics:
    name: str
    target: str
    checkpoint: Checkpoint | None
    """The last one acknowledged."""
    waiting_items: int
    rows: int
    """Rows acknowledged since the start; those that the sink had already are not among them."""
    batches: int
    retries: int
    error: str | None
    """What the sink is held up by; None while it isn't."""


class Delivery:
    """One sink's work. Survives its actor: after Retryable, `run` goes on where it was.

    Used by one thread at a time; `statistics` by any.
    """

    def __init__(
        self,
        sink: Sink,
        checkpoint: Checkpoint | None,
        source: str = "",
        options: DeliveryOptions | None = None,
    ) -> None:
        """`sink` is open and at `checkpoint`; `source` is the identity that new checkpoints carry."""
        self.sink = sink
        self.acknowledged: Callable[[Checkpoint], None] = _nobody
        """Called with each checkpoint that became durable."""
        self._gate = ResumeFilter(checkpoint, source)
        self._options = options or DeliveryOptions()
        self._waiting: deque[Item] = deque()
        self._kept: list[Batch] = []  # cut since the last flush, in order; the first `_written` are written
        self._written = 0
        self._complete = True  # whether `_kept` has all that was cut since the last flush
        self._unflushed_rows = 0
        self._next_rowless = 0.0
        self._checkpoint = checkpoint
        self._rows = self._batches = self._retries = 0
        self._error: str | None = None

    def accept(self, items: Iterable[Item]) -> None:
        """Take items; for no longer than it takes to `run`, which must follow."""
        self._waiting.extend(items)

    def run(self, now: float) -> float | None:
        """Write what waits and flush it. Returns in how many seconds to run again, if at all.

        Raises Retryable, after which nothing is lost and `run` goes on; ReplayRequired and Fatal end it.
        """
        with self._undone_by_retryable():
            while (batch := self._next_batch()) is not None:
                self.sink.write(self._settled(batch))
                self._written += 1
                if self._rests() and (self._unflushed_rows or isinstance(batch.items[0], Ddl)):
                    self._flush(now)
            if self._rests() and now >= self._next_rowless:
                self._flush(now)
        self._error = None
        return max(0.0, self._next_rowless - now) if self._rests() else None

    def _rests(self) -> bool:
        """Whether all that was cut is written, ends with a checkpoint, and is still to be flushed."""
        return 0 < self._written == len(self._kept) and self._kept[-1].checkpoint is not None

    def flush(self, now: float) -> None:
        """Make durable what is written, and report what is. Raises as `run` does."""
        if self._written < len(self._kept):
            return  # it is undone, and comes again
        with self._undone_by_retryable():
            self._flush(now)

    def _flush(self, now: float) -> None:
        checkpoint = self.sink.flush()
        if not self._kept or self._kept[-1].checkpoint is not None:
            self._batches += len(self._kept)
            self._rows += self._unflushed_rows
            self._kept.clear()
            self._written = self._unflushed_rows = 0
            self._complete = True
            self._next_rowless = now + self._options.rowless_seconds
        if checkpoint is not None and checkpoint != self._checkpoint:
            self._checkpoint = checkpoint
            self.acknowledged(checkpoint)

    @contextmanager
    def _undone_by_retryable(self) -> Iterator[None]:
        try:
            yield
        except Retryable as error:
            self._retries += 1
            self._error = str(error)
            self._written = 0
            if not self._complete:
                raise ReplayRequired(str(error), error.wait) from error
            raise

    def close(self) -> None:
        self.sink.close()

    def statistics(self) -> DeliveryStatistics:
        return DeliveryStatistics(
            self.sink.name,
            self.sink.target,
            self._checkpoint,
            len(self._waiting),
            self._rows,
            self._batches,
            self._retries,
            self._error,
        )

    # --- batches

    def _next_batch(self) -> Batch | None:
        """The first one that isn't written, or a new one."""
        if self._written < len(self._kept):
            return self._kept[self._written]
        items = self._cut()
        if not items:
            return None
        batch = Batch(items, self._gate.checkpoint)
        self._unflushed_rows += row_count(items)
        self._kept.append(batch)
        if self._unflushed_rows > self._options.max_kept_rows and batch.checkpoint is None:
            self._complete = False
        if not self._complete:
            self._kept = [batch]
            self._written = 0
        return batch

    def _cut(self) -> list[Item]:
        """Items for one batch, with what the target has already taken out."""
        waiting = self._waiting
        items: list[Item] = []
        rows = 0
        while waiting and not (items and isinstance(waiting[0], Ddl)):
            item = self._gate.admit(waiting.popleft())
            if item is None:
                continue
            items.append(item)
            if isinstance(item, Ddl):
                if item.refusal and not item.if_exists:
                    raise SinkError(item.refusal)
                break
            rows += len(item.rows)
            if rows >= self._options.max_rows and not (item.last and _next_is_at(waiting, item.commit_ts)):
                break
        return items

    def _settled(self, batch: Batch) -> Batch:
        """With a transaction without rows in place of a refused Ddl that did nothing."""
        ddl = batch.items[0]
        if not isinstance(ddl, Ddl) or not ddl.refusal:
            return batch
        if self.sink.has_table(ddl.schema, ddl.table):
            raise SinkError(ddl.refusal)
        nothing = Transaction(ddl.commit_ts, ddl.start_ts, ddl.source, [], ddl.position, ddl.last)
        return Batch([nothing], batch.checkpoint)


def _next_is_at(waiting: deque[Item], commit_ts: Ts) -> bool:
    """Whether the next transaction has this ts too: no checkpoint lies between the two."""
    return bool(waiting) and waiting[0].commit_ts == commit_ts


def _nobody(_: Checkpoint) -> None:
    pass
