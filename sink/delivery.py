"""Delivery of items to a sink: batches are cut, and kept until the sink has made them durable."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from msgspec.structs import replace

from ..chain import Barrier, Chain, Element, Lag, Stage, StageContext
from ..errors import InvariantViolated, Retryable, SinkError, TidemillError
from ..events import (
    STALE,
    Batch,
    Checkpoint,
    Ddl,
    Item,
    RenameTables,
    TablePosition,
    Transaction,
    Ts,
    Wait,
    row_count,
)
from .reached import Reached
from .resume_filter import START, ResumeFilter, emptied, without_tables
from .sink import NotReproducible, Sink
from .table_load import tables_of

log = logging.getLogger("tidemill.sink")


class ReplayRequired(Retryable):
    """The sink lost rows of a transaction that was too large to keep: only the source has them.

    To continue, start again from the sink's checkpoint.
    """


class LoadRequired(TidemillError):
    """Tables of a sink must be loaded again; its durable checkpoint says so."""

    def __init__(self, sink: str, tables: Iterable[str], reason: str) -> None:
        super().__init__(reason)
        self.sink = sink
        self.tables = frozenset(tables)


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
        can_reload: bool = False,
    ) -> None:
        """`sink` is open and at `checkpoint`; `source` is the identity in new checkpoints.

        Items pass the resume filter and the open `stages` before they go into batches. `can_reload` is True
        if the source can load single tables again.
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
        self._can_reload = can_reload
        self._reloads: dict[str, str] = {}  # tables to be loaded again, with the reason
        self._requested: list[str] = []  # tables to be loaded again, which no checkpoint lists yet
        self._rows = self._batches = self._retries = 0
        self._error: str | None = None

    def _cannot_seek(self, at: TablePosition) -> None:
        raise SinkError(f"sink {self.sink.name}: nothing here can go back to {at.position} for a stage")

    def accept(self, items: Sequence[Item]) -> None:
        """Accept items; a call of `run` must follow."""
        self._waiting.extend(self._chain.apply(items))

    def load_again(self, table: str) -> None:
        """Load a table again, by its full name; a call of `run` must follow. Raises SinkError if the source
        can't."""
        self._reload([table], f"table {table} is loaded again on request")
        self._requested.append(table)

    def run(self, now: float) -> float | None:
        """Write and flush waiting items; return the seconds until the next call, None if none is needed.

        Raises Retryable, after which nothing is lost and `run` continues; after ReplayRequired, LoadRequired
        or Fatal it can't.
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
            try:
                self.sink.write(batch)
            except NotReproducible as error:
                self._replace_by_reload(error)
                return True
            self._written += 1
            if self._rests() and (self._unflushed_rows or self._reloads or _is_ddl(batch)):
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
        if self._reloads and self._durably_stale():
            raise LoadRequired(self.sink.name, self._reloads, "; ".join(self._reloads.values()))

    def _durably_stale(self) -> bool:
        loading = self._checkpoint.loading if self._checkpoint is not None else None
        return loading is not None and all(loading.get(name) == STALE for name in self._reloads)

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
        if self._requested and self._reached.checkpoint is not None:
            self._reached.load_again(self._requested)
            self._requested = []
            self._marked = True
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
                if isinstance(item, Lag):
                    waiting.popleft()
                    reached.mark(item)
                    self._marked = True
                    continue
                settled = self._settled(item)
                waiting.popleft()
                reached.add(settled)
                items.append(emptied(item) if isinstance(settled, Ddl) and settled.reload else settled)
                break
            waiting.popleft()
            if self._reloads:
                item = without_tables(item, self._reloads)
            reached.add(item)
            items.append(item)
            rows += len(item.rows)
            if rows >= self._options.max_rows and not (item.last and _next_is_at(waiting, item.commit_ts)):
                break
        return items

    def _settled(self, ddl: Ddl) -> Item:
        """Return a transaction without rows for a Ddl without effect on the target.

        Raises SinkError if it is refused.
        """
        if any(name in self._reloads for name in tables_of(ddl)):
            if ddl.actions and isinstance(ddl.actions[0], RenameTables):
                ddl = replace(ddl, reload=f"tables {', '.join(tables_of(ddl))}: one is loaded again")
            else:
                return emptied(ddl)
        if not (ddl.refusal or ddl.reload):
            return ddl
        if ddl.if_exists and not self.sink.has_table(ddl.schema, ddl.table):
            return emptied(ddl)
        if ddl.refusal:
            raise SinkError(ddl.refusal)
        self._reload(tables_of(ddl), ddl.reload)
        return ddl

    def _reload(self, tables: Iterable[str], reason: str) -> None:
        if not self._can_reload:
            raise SinkError(
                f"{reason}; this source can't load a single table again: to go on, give every sink of the "
                "feed an empty target, and a new snapshot is taken"
            )
        log.warning("sink %s: %s", self.sink.name, reason)
        self._reloads |= dict.fromkeys(tables, reason)

    def _replace_by_reload(self, error: NotReproducible) -> None:
        """Put a transaction without rows in place of the unwritten Ddl; all batches are written again."""
        batch = self._kept[self._written]
        (ddl,) = batch.items
        assert isinstance(ddl, Ddl)
        tables = tables_of(ddl)
        self._reload(tables, f"{error}: {ddl.query}")
        self._reached.load_again(tables)
        self._kept[self._written] = Batch([emptied(ddl)], self._reached.checkpoint)
        self._wanted = self._reached.checkpoint or self._wanted
        self._written = 0
        if not self._complete:
            raise ReplayRequired(str(error))


def _is_ddl(batch: Batch) -> bool:
    return bool(batch.items) and isinstance(batch.items[0], Ddl)


def _next_is_at(waiting: deque[Element], commit_ts: Ts) -> bool:
    """Return True if the next transaction has the same ts: no checkpoint may come between the two."""
    following = waiting[0] if waiting else None
    return isinstance(following, (Transaction, Ddl)) and following.commit_ts == commit_ts


def _nobody(_: Checkpoint) -> None:
    pass
