"""The pumps of a TiDB cluster as a pipeline's source: a puller for each, their merged order, the mounter."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final

import pykka

from ..actors import Clock, MailboxFull, PooledRef
from ..chain.selection.tables import TablePatterns
from ..codec.tidb.job import Job
from ..codec.tidb.record import JobRecord
from ..config import Finding
from ..errors import Retryable, TidemillError
from ..events import Changes, Item, Sorted, TablePosition, Ts, Wait
from ..failpoint import reach
from ..mounter import BinlogMounter
from ..puller.puller import Connected, PullerStatistics, Retrying, StopRequested
from ..puller.pump.activity import Activity
from ..puller.pump.collector import Collector
from ..puller.pump.jobs import Jobs
from ..puller.pump.messages import CollectorFailed, JobFound, Pause, PumpsListed, Resume, ToCollector
from ..puller.pump.options import PumpOptions
from ..puller.pump.progress import BinlogMergeProgress, PumpProgress
from ..puller.pump.puller import PumpPuller
from ..puller.pump.pumps import Pumps, PumpStatus, StaticPumps
from ..puller.pump.service.progress import DrainerProgress
from ..puller.tikv.pd.safe_point import Collected, SafePoint
from ..puller.tikv.schema import OWN_SCHEMAS
from ..store.scratch import Scratch
from .tidb import TidbSource, head_of

log = logging.getLogger("tidemill.source")

MAILBOX: Final = 64
"""Capacity of a PumpPuller's and the Collector's mailbox in messages, each of up to 1024 binlogs."""
ACCEPT_SECONDS: Final = 8.0
"""Time for the Collector to accept a list of pumps; a pump waits 10 s for the answer to its notice."""
WAIT_SECONDS: Final = 1.0
"""Time after which a pump that holds the others back, or a job that isn't found, is shown."""
PUMP_LIST: Final = "list of pumps"
"""Name of the list of pumps in retries."""


def open_pumps(options: PumpOptions, clock: Clock) -> Pumps:
    """Return where the options say that the pumps are found.

    Raises ImportError if a package of the registry is missing.
    """
    if options.pumps:
        return StaticPumps(options.pumps)
    from ..puller.pump.registered import RegisteredPumps

    return RegisteredPumps(options.drainer, clock)


class PumpSource(TidbSource):
    """One keyspace of the sorter for each pump, merged by commit ts."""

    _identity_prefix = "tidb binlog of cluster"

    def __init__(
        self,
        options: PumpOptions,
        tables: TablePatterns,
        name: str,
        directory: Path,
        clock: Clock,
        pumps: Pumps | None = None,
        *,
        details: bool = False,
    ) -> None:
        """`pumps` replaces those that the options name."""
        super().__init__(options, tables, name, directory, clock, details=details)
        self._pump_options = options
        self._pumps = pumps or open_pumps(options, clock)
        self._names: dict[int, str] = {}
        """Names of pumps by the number of their keyspaces."""
        self._own_tables: set[int] = set()
        self._collector: PooledRef[ToCollector] | None = None
        self._merge = BinlogMergeProgress(0)
        self._activity = Activity(clock)
        self._lacks_list = False
        """True if the last look at the pumps failed."""
        self._found: Sequence[PumpStatus] | None = None
        """The pumps, before they are followed."""
        self._follows = False
        self._found_lock = Lock()
        """Guards both, and keeps lists of pumps in order on their way to the Collector."""

    def _survey(self) -> Iterator[Finding]:
        for pump in self._pumps.read():
            yield Finding("ok", f"pump {pump.node_id} at {pump.host}: {pump.state}")

    # --- the schema ------------------------------------------------------------------------------

    def _read_history(self, safe_point: SafePoint, ts: Ts, loading: bool) -> None:
        client = self._client
        self._jobs = Jobs(client.kv, client.pd, self._clock, self._pump_options.job_seconds)
        self._readable_ts = ts
        try:
            client.run(safe_point.start(ts))
        except Collected:
            if loading:
                raise
            self._readable_ts = self._end
            client.run(safe_point.start(self._end))
            log.info("the schema of ts %d is made of the DDL jobs until then", ts)
            self._schema_version = client.run(self._jobs.until(ts, partial(self._apply, ts)))
            self._least_job = 0
        else:
            self._schema_version = client.run(self._read_schema(ts, self._own_tables))
            self._least_job = client.run(self._jobs.least_open(ts))

    def _needed_ts(self) -> Ts:
        return max(self._acknowledged, self._readable_ts)

    def _apply(self, ts: Ts, job: Job) -> None:
        if job.schema_name.lower() in OWN_SCHEMAS and job.table_id:
            self._own_tables.add(job.table_id)
        self._history.apply(job, ts)

    def _check_version(self, version: int, ts: Ts) -> None:
        """Raise SourceError if a job up to this version wasn't applied before `ts`."""
        checking = self._jobs.check(self._schema_version, version, self._merge.applied, self._least_job)
        try:
            self._client.run(checking)
        except Retryable:
            raise
        except TidemillError as error:
            raise type(error)(f"before the binlog of commit ts {ts}: {error}") from error

    # --- its work --------------------------------------------------------------------------------

    def _begin(self, scratch: Scratch, ts: Ts) -> None:  # noqa: ARG002
        self._merge = BinlogMergeProgress(ts)
        self._mounter = BinlogMounter(
            self._history,
            self._identity,
            self._tables,
            own_tables=self._own_tables,
            check_version=self._check_version,
            pump_name=lambda number: self._names.get(number, f"pump {number}"),
            details=self._details,
        )
        context, options = self._context, self._pump_options
        self._collector = context.compute.spawn(
            Collector,
            self,
            self._merge,
            self._schema_version,
            drops=options.on_disorder == "drop",
            name="collector",
            capacity=MAILBOX,
            supervisor=context.coordinator,
        )
        self._pumps.start(self)

    def _follow(self, ts: Ts) -> None:  # noqa: ARG002
        with self._found_lock:
            self._follows = True
            if self._found is not None:
                self._tell(PumpsListed(self._found))

    # --- as a drainer, in threads of its pumps ---------------------------------------------------

    def accept(self, pumps: Sequence[PumpStatus]) -> None:
        with self._found_lock:
            self._found = pumps
            if not self._follows or self._collector is None:
                return  # the merged ts stays until they are followed
            try:
                self._collector.ask(PumpsListed(pumps), timeout=ACCEPT_SECONDS)
            except pykka.ActorDeadError:
                raise Retryable("the feed ends") from None
            except (pykka.Timeout, MailboxFull):
                raise Retryable(f"the feed is busy: no answer for {ACCEPT_SECONDS:g} s") from None

    def looked(self, error: Exception | None, seconds: float) -> None:
        inbox = self._context.coordinator.actor_inbox
        if error is not None:
            inbox.post(Retrying(str(error), seconds, PUMP_LIST))
        elif self._lacks_list:
            inbox.post(Connected(self._identity, PUMP_LIST, PUMP_LIST))
        self._lacks_list = error is not None

    def progress(self) -> DrainerProgress:
        merge, activity = self._merge, self._activity
        return DrainerProgress(
            pump_positions={pump.node_id: pump.last for pump in merge.pumps},
            commit_ts=self._acknowledged,
            checkpoint_ts=self._acknowledged,
            last_success=activity.last_success,
            disorders=sum(pump.unsorted + pump.disordered for pump in merge.pumps),
            events=dict(activity.events),
            errors={"pull": sum(pump.retries for pump in merge.pumps)},
            ddl_jobs=len(merge.applied),
        )

    def ask_to_stop(self) -> None:
        self._context.coordinator.post(StopRequested())

    def _failed(self, error: BaseException) -> None:
        if self._collector is not None:
            self._tell(CollectorFailed(error))
        else:
            super()._failed(error)

    def lost(self, error: TidemillError) -> None:
        self._tell(CollectorFailed(error))

    def acknowledged(self, ts: Ts) -> None:
        super().acknowledged(ts)
        self._activity.acknowledged(ts)

    def _tell(self, message: CollectorFailed | PumpsListed | JobFound) -> None:
        if self._collector is not None:
            self._collector.post(message)

    def mount(self, released: Sorted) -> list[Item]:
        items = self._mounter.mount(released)
        self._activity.delivered(items)
        reach("pump.mounted")
        return self._until(items, released.resolved, continues=released.continues)

    # --- for the Collector, in its turns ---------------------------------------------------------

    def apply(self, job: Job, ts: Ts) -> None:
        self._apply(ts, job)

    def add(self, number: int, resolved: Ts) -> PooledRef[Changes]:
        return self._context.sorter.add_table(number, resolved)

    def remove(self, number: int) -> None:
        self._context.sorter.remove_table(number)

    def sent(self) -> Ts:
        return self._context.sorter.statistics().sent

    def pull(self, number: int, progress: PumpProgress) -> PooledRef[Pause | Resume]:
        context = self._context
        again = progress.name in self._names.values()
        self._names[number] = progress.name
        return context.compute.spawn(
            PumpPuller,
            self._client,
            self._pump_options,
            number,
            progress,
            self._collector,
            context.coordinator,
            self._identity,
            name=f"{progress.name}, {number}" if again else progress.name,
            capacity=MAILBOX,
            supervisor=context.coordinator,
        )

    def fetch(self, node_id: str, number: int, step: JobRecord) -> None:
        self._client.loop.submit(self._fetch(node_id, number, step), f"DDL job {step.job_id}")

    async def _fetch(self, node_id: str, number: int, step: JobRecord) -> None:
        try:
            job, data = await self._jobs.wait_for(step.job_id)
        except TidemillError as error:
            self._tell(CollectorFailed(error))
        else:
            self._tell(JobFound(node_id, number, step, job, data))

    # --- what it says of itself ------------------------------------------------------------------

    def statistics(self) -> PullerStatistics | None:
        merge = self._merge
        if self._collector is None:
            return None
        pumps = merge.pumps
        binlogs = sum(pump.binlogs for pump in pumps)
        return PullerStatistics(
            state=self._state,
            position=str(merge.merged),
            bytes=sum(pump.bytes for pump in pumps),
            events=binlogs,
            row_events=binlogs,
            transactions=binlogs,
            ingress_ts=max((pump.last for pump in pumps), default=0),
            resolved_ts=merge.merged,
            connected_at=self._connected_at,
            retries=sum(pump.retries for pump in pumps),
            head=head_of(merge.merged, self._clock_offset),
        )

    def hours_left(self, place: TablePosition, age_seconds: float) -> float | None:
        left = super().hours_left(place, age_seconds)
        if not (days := self._pump_options.gc_days):
            return left
        return min(max(0.0, 24 * days - age_seconds / 3600), left if left is not None else 24 * days)

    def waits(self) -> list[Wait]:
        """Return waits for the pump that holds the others back, and for DDL jobs."""
        merge = self._merge
        if self._collector is None:
            return []
        now, waits = self._clock.now(), []
        slowest = merge.slowest()
        if slowest is not None and now - slowest.since > WAIT_SECONDS:
            waits.append(
                Wait("sorter", "source", now - slowest.since, on=_state_of(slowest), ts=merge.merged)
            )
        for pump in merge.pumps:
            for job_id, since in list(pump.jobs_since.items()):
                if now - since > WAIT_SECONDS:
                    on = f"TiKV, whose job history has no DDL job {job_id} yet"
                    waits.append(Wait("source", "answer", now - since, on=on))
        if not merge.pumps:
            waits.append(Wait("source", "answer", now - self._connected_at, on="the first pump to join"))
        return waits

    def table_name(self, table_id: int) -> str:
        return self._names.get(table_id, "")

    # --- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        self.stop()
        self._pumps.stop()
        super().close()


def _state_of(pump: PumpProgress) -> str:
    """Return a pump's name with what is notable about it."""
    notes: list[str] = [] if pump.state == "online" else [pump.state]
    notes += [] if pump.connected_at else ["not connected"]
    for number, what in (
        (pump.unsorted, "unsorted"),
        (pump.duplicates, "duplicates"),
        (pump.disordered, "out of order"),
    ):
        if number:
            notes.append(f"{number} {what}")
    return f"{pump.name}: {', '.join(notes)}" if notes else pump.name
