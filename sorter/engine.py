"""The base of the engines: their tables, and the Merger that all tables flow into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from threading import Lock
from typing import Final, TypeVar

from ..actors import ActorSystem, Failed, PooledRef, Target
from ..events import Changes, Receipts, Sorted, Ts, Wait, WatermarkLog, room_wait
from ..store.plan import CompactionPlan, StepOutcome
from .admission import AdmissionControl, SorterActor
from .arrivals import WAKE, Arrivals, Wake
from .intake import Intake, Spill
from .keyspace import SortKeyspace
from .merge import MergeProgress, Merger, ReadRuns, RunsRead
from .sorter import SorterOptions, SorterStatistics
from .tier import Tier
from .writer import Writer

M = TypeVar("M")

_uids = count(1)

NO_BOUND: Final = 1 << 16
"""Capacity of a mailbox whose senders are bounded otherwise: one wake-up, or one answer per question."""


class Engine:
    """The base of the engines, which spawn their actors and say where a table's changes go."""

    _merger: PooledRef[Wake | RunsRead]
    _intake: PooledRef[Wake]

    def __init__(
        self, options: SorterOptions, system: ActorSystem, supervisor: PooledRef[Failed] | None, tier: Tier
    ) -> None:
        self._options = options
        self._system = system
        self._supervisor = supervisor
        self._tier = tier
        self._arrivals = Arrivals()
        ahead_bytes = min(options.ahead_bytes, (options.max_disk_bytes or 2 * options.ahead_bytes) // 2)
        self._gate = AdmissionControl(tier, self._arrivals, system.clock, ahead_bytes)
        self._progress = MergeProgress()
        self._lock = Lock()  # guards the tables
        self._tables: dict[int, Writer] = {}

    def _spawn(
        self, part: type[SorterActor[M]], *args: object, capacity: int = NO_BOUND, name: str | None = None
    ) -> PooledRef[M]:
        return self._system.spawn(
            part, self._gate, *args, capacity=capacity, name=name, supervisor=self._supervisor
        )

    def _spawn_merger(
        self, downstream: Target[Sorted], readers: Sequence[PooledRef[ReadRuns]] = ()
    ) -> PooledRef[Wake | RunsRead]:
        return self._spawn(
            Merger, self._arrivals, self._tier, self._progress, downstream, readers, self._options.merge_bytes
        )

    def _spawn_intake(self, spill: Spill | None = None) -> None:
        self._set_intake(self._spawn(Intake, self._tier, self._arrivals, self._merger, spill))

    def _set_intake(self, intake: PooledRef[Wake]) -> None:
        self._gate.intake = intake.actor_inbox
        self._intake = intake

    def _new_table(self, table_id: int, uid: int) -> SortKeyspace:
        return SortKeyspace(table_id, uid, 0)

    @property
    def receipts(self) -> Receipts:
        return self._arrivals.receipts

    @property
    def resolved_log(self) -> WatermarkLog:
        return self._progress.resolved_log

    def add_table(self, table_id: int, resolved: Ts = 0) -> PooledRef[Changes]:
        with self._lock:
            if table_id in self._tables:
                raise ValueError(f"table {table_id} is in the sorter already")
            table = self._new_table(table_id, next(_uids))
            writer = self._tables[table_id] = Writer(table, self._gate, self._system)
        self._wake(self._arrivals.add(table, resolved))
        return writer.ref()

    def remove_table(self, table_id: int) -> None:
        with self._lock:
            writer = self._tables.pop(table_id)
        self._wake(self._arrivals.remove(writer.table))
        writer.close()

    def advance(self, resolved: Mapping[int, Ts]) -> None:
        with self._lock:  # by uid from here on: the id may soon be that of a table added again
            tables = self._tables
            by_uid = {tables[id_].table.uid: ts for id_, ts in resolved.items() if id_ in tables}
        self._gate.advance(by_uid)

    def acknowledge(self, ts: Ts) -> None:
        raise NotImplementedError

    def compact(self, plan: CompactionPlan, done: Callable[[list[StepOutcome]], object]) -> None:  # noqa: ARG002
        done([])

    def statistics(self) -> SorterStatistics:
        return SorterStatistics(
            tables=len(self._tables),
            resolved=self._progress.resolved,
            sent=self._progress.sent,
            memory_bytes=self._memory_bytes(),
            flushing_bytes=self._tier.flushing_bytes,
            spilled_bytes=self._tier.spilled_bytes,
            disk_bytes=self._disk_bytes(),
        )

    def _memory_bytes(self) -> int:
        return self._tier.used_bytes

    def _disk_bytes(self) -> int:
        return 0

    def explain(self) -> list[Wait]:
        waits = []
        now = self._system.clock.now()
        progress = self._progress
        slowest = progress.slowest()
        held = self._tier.used_bytes + self._tier.stored_bytes
        if slowest is not None and held and progress.sent == progress.resolved:
            tables = [writer.table for writer in [*self._tables.values()]]
            table_id = next((table.id for table in tables if table.uid == slowest), 0)
            since = now - progress.since_of.get(slowest, now)
            waits.append(Wait("sorter", "table", since, table_id=table_id, ts=progress.resolved))
        waits += self._waiting_writers(now)
        mine = {self._merger.name, self._intake.name}
        waits += (
            room_wait(actor.name, actor.waiting_on, now - (actor.since or 0.0))
            for actor in self._system.statistics().actors
            if actor.waiting_on is not None and actor.name in mine
        )
        return waits

    def _waiting_writers(self, now: float) -> list[Wait]:
        """Return the Writers that wait for admission, and the senders that wait for room in a Writer."""
        since = self._gate.shut_since
        if since is None:
            return []
        writers = list(self._gate.writers)
        waits = [
            Wait(str(writer.name), "memory", now - since, table_id=writer.table.id) for writer in writers
        ]
        waits += [
            room_wait(w.name, w.waiting_on, now - w.since) for writer in writers for w in writer.waiting()
        ]
        return waits

    def close(self) -> None:
        with self._lock:
            writers = list(self._tables.values())
            self._tables.clear()
        self._gate.close()
        self._tier.close()
        for writer in writers:
            writer.close()
        # Not waited for: they may stand before a full mailbox.
        for ref in (self._intake, self._merger):
            ref.stop(block=False)

    def _wake(self, merger_rests: bool) -> None:
        if merger_rests:
            self._merger.offer(WAKE)
