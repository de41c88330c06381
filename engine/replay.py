"""Replay of a relay: its items are applied to a sink once more, without the source."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from threading import Event
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..actors import Clock
from ..chain.selection.rule import only
from ..chain.selection.stage import SelectionStage
from ..chain.selection.tables import TablePatterns
from ..errors import CheckpointError, Retryable, StoreError
from ..events import Checkpoint, Ddl, Item, Transaction, Ts, row_count
from ..sink import Delivery, ReplayRequired, Sink
from ..sink.relay.reader import Relay
from ..sink.relay.writer import LOCK
from ..store.disk import lock
from .failures import pause_seconds
from .teardown import Teardown

BATCH_ROWS: Final = 10_000
"""Rows, or items, that are handed to the sink at once."""
TRIES: Final = 10
"""Number of failures in a row of a target that is away, after which the replay ends."""


class ReplayProgress(Struct, frozen=True):
    transactions: int = 0
    rows: int = 0
    ddls: int = 0
    ts: Ts = 0
    """Everything up to this ts is in the target."""
    bytes: int = 0
    """Number of bytes of the relay read."""
    total_bytes: int = 0


class Summary(Struct, frozen=True):
    """Changes that a replay would apply."""

    begin_ts: Ts
    end_ts: Ts
    transactions: int
    changes: dict[str, dict[str, int]]
    """Numbers of changes by table and operation."""
    ddls: list[str]


class Replay:
    """Applies the items of a relay above the sink's checkpoint, in commit order.

    The checkpoint advances with them, as in a feed: what is interrupted goes on where it was, and a feed of
    the same name goes on after it.
    """

    def __init__(
        self, directory: Path, clock: Clock, *, until: Ts | None = None, tables: TablePatterns | None = None
    ) -> None:
        """Transactions after `until` are left out. Raises StoreError if the relay can't be read."""
        if not directory.is_dir():
            raise StoreError(f"relay {directory}: no such directory")
        self.relay = Relay(directory)
        if not self.relay.contents:
            raise StoreError(f"relay {directory} is empty")
        self._clock = clock
        self._until = until
        self._tables = tables
        self.progress = ReplayProgress(total_bytes=self.relay.bytes)

    def summary(self, after: Ts = 0) -> Summary:
        """Return what there is to apply above a ts."""
        stages = self._stages()
        changes: dict[str, Counter[str]] = {}
        ddls, transactions = [], 0
        for item, _ in self._items(after):
            for one in stages[0].apply([item]) if stages else [item]:
                if isinstance(one, Ddl):
                    ddls.append(one.query or f"create {one.full_name}")
                elif isinstance(one, Transaction):
                    transactions += _is_transaction(one)
                    for run in one.runs:
                        changes.setdefault(run.table.full_name, Counter())[run.op] += len(run)
        begin, end = max(after, self.relay.begin_ts), self.relay.end_ts
        end = end if self._until is None else min(self._until, end)
        return Summary(
            begin, end, transactions, {name: dict(counts) for name, counts in changes.items()}, ddls
        )

    def run(
        self, sink: Sink, feed: str, stop: Event, *, at: Ts | None = None, show: Callable[[], object] = int
    ) -> None:
        """Apply until the end, or until `stop` is set; `show` is called after each batch.

        `feed` is the name by which the target has its checkpoint. A target without one has the source's rows
        as of `at`; without `at`, nothing. Raises CheckpointError if the relay doesn't continue the target,
        and the sink's errors.
        """
        held = self._lock()
        with Teardown() as teardown:
            teardown.add(lambda: os.close(held))
            teardown.add(sink.close)
            start = self._start(sink, sink.open(), at)
            delivery = Delivery(
                sink,
                start,
                self.relay.source,
                stages=self._stages(),
                feed=feed,
                now=self._clock.now,
                acknowledged=self._note,
            )
            self.progress = replace(self.progress, ts=0 if start is None else start.ts)
            self._apply(delivery, 0 if start is None else start.ts, stop, show)

    def _stages(self) -> list[SelectionStage]:
        return [] if self._tables is None else [SelectionStage([only(self._tables)], keys=())]

    def _lock(self) -> int:
        directory = self.relay.directory
        try:
            return lock(directory / LOCK)
        except BlockingIOError:
            raise StoreError(f"relay {directory}: a feed uses it: stop the feed first") from None
        except OSError as error:
            raise StoreError(f"relay {directory}: {error.strerror}") from error

    def _start(self, sink: Sink, stored: Checkpoint | None, ts: Ts | None) -> Checkpoint | None:
        relay = self.relay
        where = f"relay {relay.directory}"
        if stored is None or not stored.position:
            if ts is None:
                if relay.begins_empty:
                    return None
                raise CheckpointError(
                    f"{where} begins after ts {relay.begin_ts}, and sink {sink.name} has no checkpoint: "
                    "restore a backup of the target with its checkpoint, or give --at, the ts as of which it "
                    "has the rows"
                )
            stored = Checkpoint(ts, str(ts), None, relay.source)
        elif ts is not None and ts != stored.ts:
            raise CheckpointError(f"sink {sink.name} is at ts {stored.ts}, not at {ts}: leave out --at")
        if stored.owner is not None:
            raise CheckpointError(f"sink {sink.name} is written by Spark: it can't be replayed into")
        if stored.source not in ("", relay.source):
            raise CheckpointError(
                f"{where} has what came from {relay.source}, sink {sink.name} what came from "
                f"{stored.source}: name the relay of this target"
            )
        if stored.ts < relay.begin_ts:
            raise CheckpointError(
                f"{where} begins after ts {relay.begin_ts}, and sink {sink.name} is at {stored.ts}: what is "
                "between is gone; restore a newer backup of the target"
            )
        return stored

    def _items(self, after: Ts) -> Iterator[tuple[Item, int]]:
        for item, read in self.relay.items(after):
            if self._until is not None and item.commit_ts > self._until:
                return
            yield item, read

    def _apply(self, delivery: Delivery, after: Ts, stop: Event, show: Callable[[], object]) -> None:
        batch: list[Item] = []
        size = read = 0
        for item, end in self._items(after):
            is_cut = batch and (not batch[-1].last or batch[-1].commit_ts != item.commit_ts)
            if is_cut and size >= BATCH_ROWS:
                self._deliver(delivery, batch, read, stop)
                show()
                batch, size = [], 0
                if stop.is_set():
                    break
            batch.append(item)
            size += 1 + row_count([item])
            read = end
        else:
            self._deliver(delivery, batch, self.relay.bytes if self._until is None else read, stop)
        self._retry(lambda: delivery.flush(self._clock.now()), stop)
        show()

    def _deliver(self, delivery: Delivery, batch: list[Item], read: int, stop: Event) -> None:
        delivery.accept(batch)
        self._retry(lambda: delivery.run(self._clock.now()), stop)
        done = self.progress
        self.progress = replace(
            done,
            transactions=done.transactions + sum(_is_transaction(item) for item in batch),
            rows=done.rows + row_count(batch),
            ddls=done.ddls + sum(isinstance(item, Ddl) for item in batch),
            bytes=read,
        )

    def _retry(self, work: Callable[[], object], stop: Event) -> None:
        """Call until it isn't Retryable any more. Raises the last error after TRIES, or once stopped."""
        for failures in count(1):
            try:
                work()
                return
            except ReplayRequired:
                raise
            except Retryable as error:
                if failures == TRIES or stop.wait(max(error.wait or 0.0, pause_seconds(failures))):
                    raise

    def _note(self, checkpoint: Checkpoint) -> None:
        self.progress = replace(self.progress, ts=checkpoint.ts)


def _is_transaction(item: Item) -> bool:
    """Return True for a transaction with rows, or the end of one."""
    return isinstance(item, Transaction) and item.last and bool(item.rows)
