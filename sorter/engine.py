"""What the engines have in common: their tables, and the Merger that all tables flow into."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from threading import Lock
from typing import Any, Final

from ..actors import ActorSystem, PooledRef, Target
from ..events import Ts
from .arrivals import WAKE, Arrivals
from .gate import Gate, Part
from .merge import Merger, Progress
from .run import Table
from .sorter import SorterOptions, SorterStatistics, Wait
from .tier import Tier

_uids = count(1)

NO_BOUND: Final = 1 << 16
"""The capacity of a mailbox whose senders bound themselves: by one wake-up, or one answer a question."""

WRITER_MESSAGES: Final = 64
"""The capacity of a Writer's mailbox: what a source may be ahead of it."""


class Engine:
    """The base of the engines. They spawn their actors, and say what a table's Writer is."""

    _merger: PooledRef[Any]

    def __init__(
        self, options: SorterOptions, system: ActorSystem, supervisor: PooledRef[Any] | None, tier: Tier
    ) -> None:
        self._options = options
        self._system = system
        self._supervisor = supervisor
        self._tier = tier
        self._arrivals = Arrivals()
        self._gate = Gate(tier, self._arrivals)
        self._progress = Progress()
        self._lock = Lock()  # guards the tables
        self._tables: dict[int, tuple[Table, PooledRef[Any]]] = {}

    def _spawn(
        self, part: type[Part], *args: Any, capacity: int = NO_BOUND, name: str | None = None
    ) -> PooledRef[Any]:
        return self._system.spawn(
            part, self._gate, *args, capacity=capacity, name=name, supervisor=self._supervisor
        )

    def _spawn_merger(self, downstream: Target, readers: Sequence[PooledRef[Any]] = ()) -> PooledRef[Any]:
        return self._spawn(
            Merger, self._arrivals, self._tier, self._progress, downstream, readers, self._options.merge_bytes
        )

    def _spawn_writer(self, table: Table, name: str) -> PooledRef[Any]:
        raise NotImplementedError

    def _store_of(self, table_id: int) -> int:
        """The number of the store that a table's changes go to."""
        raise NotImplementedError

    def add_table(self, table_id: int, resolved: Ts = 0) -> PooledRef[Any]:
        with self._lock:
            if table_id in self._tables:
                raise ValueError(f"table {table_id} is in the sorter already")
            now = self._system.clock.now()
            table = Table(table_id, next(_uids), self._store_of(table_id), resolved, now)
            writer = self._spawn_writer(table, f"Writer of table {table_id} ({table.uid})")
            self._tables[table_id] = table, writer
        self._changed(table)
        return writer

    def remove_table(self, table_id: int) -> None:
        with self._lock:
            table, writer = self._tables.pop(table_id)
        table.removed = True
        self._changed(table)
        writer.stop(block=False)

    def acknowledge(self, ts: Ts) -> None:
        raise NotImplementedError

    def statistics(self) -> SorterStatistics:
        return SorterStatistics(
            tables=len(self._tables),
            resolved=self._progress.resolved,
            sent=self._progress.sent,
            memory_bytes=self._tier.used_bytes,
            leaving_bytes=self._tier.leaving_bytes,
            spilled_bytes=self._tier.spilled_bytes,
            disk_bytes=self._disk_bytes(),
        )

    def _disk_bytes(self) -> int:
        return 0

    def explain(self) -> list[Wait]:
        waits = []
        progress = self._progress
        slowest = progress.slowest
        held = self._tier.used_bytes + self._tier.stored_bytes
        if slowest is not None and held and progress.sent == progress.resolved:
            what = f"everything above ts {progress.resolved}"
            waits.append(Wait(what, f"table {slowest.id}, the least resolved", slowest.since))
        mine = {self._merger.name, *(writer.name for _, writer in list(self._tables.values()))}
        waits += (
            Wait(actor.name, actor.waiting_on, actor.since or 0.0)
            for actor in self._system.statistics().actors
            if actor.waiting_on is not None and actor.name in mine
        )
        return waits

    def close(self) -> None:
        with self._lock:
            writers = [writer for _, writer in self._tables.values()]
            self._tables.clear()
        self._gate.close()
        # Not waited for: they may stand before a full mailbox.
        for ref in [*writers, self._merger]:
            ref.stop(block=False)

    def _changed(self, table: Table) -> None:
        if self._arrivals.change(table):
            self._merger.actor_inbox.offer(WAKE)
