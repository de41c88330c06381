"""Delivery of items to a sink: batches are cut, and kept until the sink has made them durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from msgspec.structs import replace

from ..chain import Barrier, Chain, Element, Lag, Stage, StageContext
from ..errors import InvariantViolated, Retryable, SinkError
from ..events import Batch, Checkpoint, Ddl, Item, TablePosition, Transaction, Ts, Wait, row_count
from .reached import Reached
from .resume_filter import START, ResumeFilter
from .sink import Sink


class ReplayRequired(Retryable):
    """The sink lost rows of a transaction that was too large to keep: only the source has them.

    To continue, start again from the sink's checkpoint.
    """


class BehindBarrier(Retryable):
    """The maximum number of items waits until everything before a barrier is durable."""

    def __init__(self, items: int) -> None:
        super().__init__(f"{items} items wait until what came before them is durable", 0.1)


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
    rowless_seconds: float = 1.0
    """Minimum pause between writes of a checkpoint that advances without rows."""


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
    ) -> None:
        """`sink` is open and at `checkpoint`; `source` is the identity in new checkpoints.

        Items pass the resume filter and the open `stages` before they go into batches.
        """
        self.sink = sink
        self.acknowledged: Callable[[Checkpoint], None] = _nobody
        """Callback for each durable checkpoint."""
        self.seek: Callable[[TablePosition], None] = self._cannot_seek
        """Callback for a position from which a stage needs the source read again."""
        self._options = options or DeliveryOptions()
        self._start = replace(checkpoint or START, source=source or (checkpoint or START).source)
        self._reached = Reached(self._start)
        self._chain = Chain([ResumeFilter(), *stages])
        self._now = now
        self._chain.open(
            StageContext(
                feed=feed,
                sink=sink.name,
                checkpoint=self._start,
                now=now,
                seek=lambda at: self.seek(at),
            )
        )
        self._waiting: deque[Element] = deque()
        self._kept: list[Batch] = []  # cut since the last flush, in order; the first `_written` are written
        self._written = 0
        self._complete = True  # True if `_kept` has all batches cut since the last flush
        self._unflushed_rows = 0
        self._next_rowless = 0.0
        self._checkpoint = checkpoint
        self._wanted: Checkpoint | None = None  # of the last batch; durable once the sink reports it
        self._marked = False  # True if the tables differ from those in the last batch's checkpoint
        self._barrier_since: float | None = None
        self._rows = self._batches = self._retries = 0
        self._error: str | None = None

    def _cannot_seek(self, at: TablePosition) -> None:
        raise SinkError(f"sink {self.sink.name}: nothing here can go back to {at.position} for a stage")

    def accept(self, items: Sequence[Item]) -> None:
        """Accept items; a call of `run` must follow."""
        self._waiting.extend(self._chain.apply(items))

    def run(self, now: float) -> float | None:
        """Write and flush waiting items; return the seconds until the next call, None if none is needed.

        Raises Retryable, after which nothing is lost and `run` continues; after ReplayRequired or Fatal it
        can't.
        """
        with self._undone_by_retryable():
            while self._step(now):
                pass
        self._error = None
        if self._waiting:  # for a barrier
            self._barrier_since = now if self._barrier_since is None else self._barrier_since
            if len(self._waiting) > self._options.max_waiting_items:
                raise BehindBarrier(len(self._waiting))
            return self._options.rowless_seconds
        self._barrier_since = None
        return max(0.0, self._next_rowless - now) if self._rests() else None

    def _step(self, now: float) -> bool:
        """Write a batch, flush, or pass a barrier; return False if there is nothing to do now."""
        if (batch := self._next_batch()) is not None:
            self.sink.write(self._settled(batch))
            self._written += 1
            if self._rests() and (self._unflushed_rows or _is_ddl(batch)):
                self._flush(now)
            return True
        at_barrier = bool(self._waiting)
        if self._rests() and (at_barrier or now >= self._next_rowless):
            self._flush(now)
            return True
        return at_barrier and self._pass_barrier(now)

    def _pass_barrier(self, now: float) -> bool:
        if self._kept:
            raise InvariantViolated("a stage set a barrier inside a transaction")
        if not self._is_durable():
            self._flush(now)
        if not self._is_durable():
            return False
        self._waiting.popleft()
        self._waiting.extend(self._chain.durable(self._checkpoint or self._start))
        return True

    def _is_durable(self) -> bool:
        """Return True if everything written is durable in the target."""
        wanted, have = self._wanted, self._checkpoint
        return wanted is None or (have is not None and have.includes(wanted))

    def _rests(self) -> bool:
        """Return True if all cut batches are written, end with a checkpoint, and aren't flushed yet."""
        return 0 < self._written == len(self._kept) and self._kept[-1].checkpoint is not None

    def flush(self, now: float) -> None:
        """Make written batches durable, and report the checkpoint. Raises as `run` does."""
        if self._written < len(self._kept):
            return  # rolled back; it is written again
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
            self._waiting.extend(self._chain.durable(checkpoint))

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
        self._chain.close()
        self.sink.close()

    def waits(self) -> list[Wait]:
        """Return the waits of its stages, and its own at a barrier. Any thread."""
        waits = self._chain.waits()
        if (since := self._barrier_since) is not None:
            seconds = self._now() - since
            waits.append(Wait(f"sink {self.sink.name}", "barrier", seconds, count=len(self._waiting)))
        return waits

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
        """Return the first unwritten batch, or cut a new one; None if nothing waits."""
        if self._written < len(self._kept):
            return self._kept[self._written]
        items = self._cut()
        if not items and not self._marked:
            return None
        batch = Batch(items, self._reached.checkpoint)
        self._wanted = batch.checkpoint or self._wanted
        self._marked = False
        self._unflushed_rows += row_count(items)
        self._kept.append(batch)
        if self._unflushed_rows > self._options.max_kept_rows and batch.checkpoint is None:
            self._complete = False
        if not self._complete:
            self._kept = [batch]
            self._written = 0
        return batch

    def _cut(self) -> list[Item]:
        """Take items for one batch: up to a barrier, a Ddl or `max_rows`."""
        waiting, reached = self._waiting, self._reached
        items: list[Item] = []
        rows = 0
        while waiting:
            item = waiting[0]
            if not isinstance(item, Transaction):
                if isinstance(item, Barrier) or (items and isinstance(item, Ddl)):
                    break
                waiting.popleft()
                if isinstance(item, Lag):
                    reached.mark(item)
                    self._marked = True
                    continue
                reached.add(item)
                items.append(item)
                if item.refusal and not item.if_exists:
                    raise SinkError(item.refusal)
                break
            waiting.popleft()
            reached.add(item)
            items.append(item)
            rows += len(item.rows)
            if rows >= self._options.max_rows and not (item.last and _next_is_at(waiting, item.commit_ts)):
                break
        return items

    def _settled(self, batch: Batch) -> Batch:
        """Replace a refused Ddl that did nothing by a transaction without rows."""
        ddl = batch.items[0] if batch.items else None
        if not isinstance(ddl, Ddl) or not ddl.refusal:
            return batch
        if self.sink.has_table(ddl.schema, ddl.table):
            raise SinkError(ddl.refusal)
        nothing = Transaction(ddl.commit_ts, ddl.start_ts, ddl.source, [], ddl.position, ddl.last)
        return Batch([nothing], batch.checkpoint)


def _is_ddl(batch: Batch) -> bool:
    return bool(batch.items) and isinstance(batch.items[0], Ddl)


def _next_is_at(waiting: deque[Element], commit_ts: Ts) -> bool:
    """Return True if the next transaction has the same ts: no checkpoint may come between the two."""
    following = waiting[0] if waiting else None
    return isinstance(following, (Transaction, Ddl)) and following.commit_ts == commit_ts


def _nobody(_: Checkpoint) -> None:
    pass
