"""The actor that merges the pumps: it knows how far all of them have come, and which there are."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Final, Protocol, assert_never

from msgspec import Struct

from ...actors import PooledActor, PooledRef
from ...codec.blocks import NOTHING, block_of
from ...codec.tidb.action import Action
from ...codec.tidb.job import DELETE_ONLY, Job
from ...codec.tidb.record import JobRecord, job_change
from ...errors import SourceError
from ...events import Changes, KvChange, Ts
from .jobs import has_effect
from .messages import CollectorFailed, JobFound, Pause, Pulled, PumpsListed, Resume, ToCollector
from .progress import BinlogMergeProgress, PumpProgress
from .pumps import PumpStatus

log = logging.getLogger("tidemill.puller")

REMEMBERED: Final = 65_536
"""Number of a pump's last binlogs, and of jobs, that are recognised as duplicates."""

_DROPS_COLUMN: Final = (Action.DROP_COLUMN, Action.DROP_COLUMNS)
_SETVAL: Final = "select setval"
"""Begin of the statement of a sequence's step, which is no job."""


class Follower(Protocol):
    """Receiver of schema changes, and maker of what a pump needs."""

    def apply(self, job: Job, ts: Ts) -> None:
        """Apply a job at the commit ts of its binlog; called in the order of ts, once for each job.

        No row above `ts` has left the sorter. Raises SourceError for a job that can't be read.
        """

    def add(self, number: int, resolved: Ts) -> PooledRef[Changes]:
        """Begin a keyspace of the sorter; return its Writer."""

    def remove(self, number: int) -> None:
        """End a keyspace."""

    def sent(self) -> Ts:
        """Return the ts up to which all changes have left the sorter."""

    def pull(self, number: int, progress: PumpProgress) -> PooledRef[Pause | Resume]:
        """Return a new PumpPuller."""

    def fetch(self, node_id: str, number: int, step: JobRecord) -> None:
        """Have the job of a step sent as JobFound, or an error as Broken."""


class _Pump:
    """A pump and its keyspace."""

    __slots__ = ("found", "number", "progress", "puller", "recent", "remembered", "start", "steps", "writer")

    def __init__(
        self,
        number: int,
        writer: PooledRef[Changes],
        puller: PooledRef[Pause | Resume],
        progress: PumpProgress,
    ) -> None:
        self.number = number
        self.writer = writer
        self.puller = puller
        self.progress = progress
        self.start = progress.last
        """It is pulled above this ts."""
        self.recent: deque[list[Ts]] = deque()
        """Commit timestamps of its last binlogs, by message."""
        self.remembered = 0
        self.steps: dict[Ts, int] = {}
        """Jobs that are fetched, by the commit ts of their step."""
        self.found: list[tuple[JobRecord, Job, bytes]] = []
        """Jobs above the merged ts."""

    def remember(self, timestamps: list[Ts]) -> None:
        if timestamps:
            self.recent.append(timestamps)
            self.remembered += len(timestamps)
            while self.remembered - len(self.recent[0]) >= REMEMBERED:
                self.remembered -= len(self.recent.popleft())

    def unknown(self, timestamps: Iterable[Ts]) -> list[Ts]:
        """Return those of binlogs that weren't delivered before, and aren't from before the start."""
        later = [ts for ts in timestamps if ts > self.start]
        left = set(later)
        for known in self.recent if left else ():
            left.difference_update(known)
        return [ts for ts in later if ts in left]


class _Later(Struct, frozen=True):
    """The binlogs of a message that are above the merged ts."""

    changes: list[KvChange]
    jobs: list[JobRecord]


class Collector(PooledActor[ToCollector]):
    """Gives each pump a keyspace of the sorter, and resolves all of them at the merged ts: the lowest last
    commit ts of all pumps, except those that are offline.

    So nothing leaves the sorter before every pump has come so far, and a pump that joins begins at the
    merged ts. A DDL job holds the merged ts until it is found; it is applied before anything above it
    leaves. A binlog below an earlier one of its pump is accepted if it is above the merged ts.
    """

    def __init__(
        self, follower: Follower, merge: BinlogMergeProgress, schema_version: int, *, drops: bool = False
    ) -> None:
        """`schema_version` is that of the follower's schema at the ts of `merge`.

        With `drops`, binlogs that come too late are dropped and counted; else the first one raises
        SourceError.
        """
        self._follower = follower
        self._merge = merge
        self._schema_version = schema_version
        self._drops = drops
        self._pumps: dict[str, _Pump] = {}
        self._leaving: list[_Pump] = []
        """Pumps that are offline, until all their changes have left the sorter."""
        self._numbers = count(1)

    def on_receive_batch(self, messages: Sequence[ToCollector]) -> None:
        for message in messages:
            self._handle(message)
        self._advance()

    def on_receive(self, message: ToCollector) -> None:
        self._handle(message)
        self._advance()

    def _handle(self, message: ToCollector) -> None:
        match message:
            case Pulled():
                pump = self._of(message.node_id, message.origin)
                if pump is not None:
                    self._pulled(pump, message)
            case PumpsListed(pumps):
                for status in pumps:
                    self._update(status)
                self._merge.pumps = tuple([pump.progress for pump in self._pumps.values()])
            case JobFound(node_id, origin, step, job, data):
                pump = self._of(node_id, origin)
                if pump is not None:
                    del pump.steps[step.commit_ts]
                    pump.progress.jobs_since.pop(step.job_id, None)
                    pump.found.append((step, job, data))
            case CollectorFailed(error):
                raise error
            case _:
                assert_never(message)

    def _of(self, node_id: str, number: int) -> _Pump | None:
        """Return a pump, also one that is leaving; None if it has left."""
        pump = self._pumps.get(node_id)
        if pump is not None and pump.number == number:
            return pump
        return next((pump for pump in self._leaving if pump.number == number), None)

    # --- which pumps there are -------------------------------------------------------------------

    def _update(self, status: PumpStatus) -> None:
        pump = self._pumps.get(status.node_id)
        if pump is None:
            if status.state == "offline":
                return
            pump = self._join(status)
        pump.progress.state = status.state
        match status.state:
            case "paused":
                self.send(pump.puller, Pause())
            case "online":
                self.send(pump.puller, Resume(status.host))
            case "offline":
                pump.puller.stop(block=False)
                self._leaving.append(self._pumps.pop(status.node_id))

    def _join(self, status: PumpStatus) -> _Pump:
        number, merged = next(self._numbers), self._merge.merged
        progress = PumpProgress(status.node_id, status.host, status.state, merged, self.clock.now())
        writer = self._follower.add(number, merged)
        pump = _Pump(number, writer, self._follower.pull(number, progress), progress)
        self._pumps[status.node_id] = pump
        log.info("%s is pulled from ts %d on", progress.name, merged)
        return pump

    # --- what they send --------------------------------------------------------------------------

    def _pulled(self, pump: _Pump, message: Pulled) -> None:
        changes, jobs = message.changes, message.jobs
        if message.least <= self._merge.merged:
            later = self._later(pump, message)
            changes, jobs = later.changes, later.jobs
        if changes:
            self.send(pump.writer, Changes(block_of(changes)))
        for step in jobs:
            if not step.query.lstrip().lower().startswith(_SETVAL) and step.commit_ts not in pump.steps:
                pump.steps[step.commit_ts] = step.job_id
                pump.progress.jobs_since.setdefault(step.job_id, self.clock.now())
                self._follower.fetch(message.node_id, pump.number, step)
        pump.remember([change.commit_ts for change in changes] + [step.commit_ts for step in jobs])
        if message.last > pump.progress.last:
            pump.progress.last = message.last
            pump.progress.since = self.clock.now()

    def _later(self, pump: _Pump, message: Pulled) -> _Later:
        """Drop binlogs at or below the merged ts: those that were delivered before, or that are lost.

        Raises SourceError for the first one that is lost, unless it is to be dropped.
        """
        merged, progress = self._merge.merged, pump.progress
        late = [ts for ts in _timestamps(message) if ts <= merged]
        lost = pump.unknown(late)
        progress.duplicates += len(late) - len(lost)
        for ts in lost:
            progress.disordered += 1
            said = (
                f"{progress.name} sent the binlog of commit ts {ts} after everything up to {merged} was"
                " delivered: it went back in time, or joined unnoticed, and this transaction is lost"
            )
            if not self._drops:
                raise SourceError(
                    f'{said}; begin again with a new snapshot, or set on_disorder = "drop" to go on without'
                    " it, as the original drainer does"
                )
            log.error("%s", said)
        return _Later(
            [change for change in message.changes if change.commit_ts > merged],
            [step for step in message.jobs if step.commit_ts > merged],
        )

    # --- the merged ts ---------------------------------------------------------------------------

    def _advance(self) -> None:
        """Resolve all keyspaces up to the merged ts; apply the jobs up to it before."""
        if not self._pumps:
            return
        pumps = [*self._pumps.values(), *self._leaving]
        merged = min(pump.progress.last for pump in self._pumps.values())
        steps = [min(pump.steps) for pump in pumps if pump.steps]
        merged = min([merged, *(ts - 1 for ts in steps)])
        if merged <= self._merge.merged:
            return
        ready = [(step.commit_ts, pump, step, job, data) for pump in pumps for step, job, data in pump.found]
        for ts, pump, step, job, data in sorted(ready, key=lambda one: one[0]):
            if ts <= merged and self._apply(step, job):
                self.send(pump.writer, Changes(block_of([job_change(step, data, pump.number)])))
        for pump in pumps:
            if pump.found:
                pump.found = [one for one in pump.found if one[0].commit_ts > merged]
            self.send(pump.writer, Changes(NOTHING, merged))
        self._merge.merged = merged
        if self._leaving:
            self._let_go()

    def _apply(self, step: JobRecord, job: Job) -> bool:
        """Return True if the job takes effect by this step.

        A column that is dropped is no longer in rows from the step before the last on.
        """
        if job.id in self._merge.applied or not has_effect(job) or job.schema_version <= self._schema_version:
            return False
        if step.state == DELETE_ONLY and job.type not in _DROPS_COLUMN:
            return False
        self._follower.apply(job, step.commit_ts)
        self._merge.applied[job.id] = None
        return True

    def _let_go(self) -> None:
        """Remove the keyspaces of pumps that are offline and all of whose changes have left the sorter."""
        sent = self._follower.sent()
        for pump in [pump for pump in self._leaving if pump.progress.last <= sent and not pump.found]:
            self._leaving.remove(pump)
            self._follower.remove(pump.number)
            log.info("%s is offline, and all that it sent is delivered", pump.progress.name)


def _timestamps(message: Pulled) -> Iterator[Ts]:
    yield from (change.commit_ts for change in message.changes)
    yield from (step.commit_ts for step in message.jobs)
