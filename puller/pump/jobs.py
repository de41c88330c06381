"""The finished DDL jobs of a cluster, from TiKV."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, Protocol

from ...actors import Clock
from ...codec.tidb import meta
from ...codec.tidb.action import Action
from ...codec.tidb.job import CANCELLED, ROLLBACK_DONE, Job, decode_job
from ...codec.tidb.job_entry import read_job
from ...errors import Retryable, SourceError
from ...events import Ts
from ..grpc.loop import sleep
from ..tikv.renames import job_entries
from ..tikv.schema import OWN_SCHEMAS, Reads
from .renames import with_new_databases

ERRORS: Final = 10
"""Number of failed reads in a row after which a job is given up, as in the original."""

_NO_BINLOG: Final = frozenset(
    (
        Action.LOCK_TABLE,
        Action.UNLOCK_TABLE,
        Action.UPDATE_TIFLASH_REPLICA_STATUS,
        Action.ALTER_TABLE_ALTER_PARTITION,
        Action.ALTER_CACHE_TABLE,
        Action.ALTER_NO_CACHE_TABLE,
        Action.ALTER_TTL_INFO,
        Action.ALTER_TTL_REMOVE,
    )
)
"""Jobs that change no row, of which some version of TiDB writes no binlog (its skipWriteBinlog, and others
that were seen)."""


class Tso(Protocol):
    async def tso(self) -> Ts: ...


class Jobs:
    """Reads jobs by their id. To be used in the loop's thread only."""

    def __init__(self, kv: Reads, pd: Tso, clock: Clock, poll_seconds: float) -> None:
        self._kv = kv
        self._pd = pd
        self._clock = clock
        self._poll_seconds = poll_seconds

    async def wait_for(self, job_id: int) -> tuple[Job, bytes]:
        """Return a job once it is in the history, and its JSON. Raises Retryable and SourceError."""
        key = meta.hash_key(meta.DDL_HISTORY, meta.history_field(job_id))
        failures = 0
        while True:
            try:
                ts = await self._pd.tso()
                data = await self._kv.get(key, ts)
                if data is not None:
                    return await with_new_databases(decode_job(data), self._kv, ts), data
                failures = 0
            except Retryable:
                failures += 1
                if failures >= ERRORS:
                    raise
            await sleep(self._clock, self._poll_seconds)

    async def check(self, after: int, until: int, known: Container[int], above: int) -> None:
        """Check that each job with a schema version in (after, until] is `known` by its id.

        Only jobs with an id above `above` are read. Raises SourceError that names the others.
        """
        start, end = meta.hash_span(meta.DDL_HISTORY)
        if above:
            start = meta.hash_key(meta.DDL_HISTORY, meta.history_field(above))
        missing = []
        async for _, data in self._kv.scan(start, end, await self._pd.tso()):
            job = decode_job(data)
            if after < job.schema_version <= until and job.id not in known and _is_logged(job):
                missing.append(job)
        if missing:
            missing.sort(key=lambda job: job.schema_version)
            named = "; ".join(
                f"{job.id} (schema version {job.schema_version}): {job.query or job.name}"
                for job in missing[:5]
            )
            raise SourceError(
                f"no pump has sent the DDL job {named}. A pump is missing among those that are pulled, or its"
                " binlogs were purged: complete the pumps, or begin again with a new snapshot"
            )

    async def until(self, ts: Ts, apply: Callable[[Job], object]) -> int:
        """Pass on all jobs that were complete at `ts`, in the order of their schema versions; return the last
        version.

        A job that was just ending at `ts` isn't among them.
        """
        jobs, now = [], await self._pd.tso()
        async for _, data in self._kv.scan(*meta.hash_span(meta.DDL_HISTORY), now):
            job = decode_job(data)
            if has_effect(job) and job.outcome is not None and 0 < job.outcome.finished_ts <= ts:
                jobs.append(await with_new_databases(job, self._kv, now))
        jobs.sort(key=lambda job: job.schema_version)
        for job in jobs:
            apply(job)
        return jobs[-1].schema_version if jobs else 0

    async def least_open(self, ts: Ts) -> int:
        """Return an id at or below the ids of all jobs that end after `ts`, at which the schema is
        readable."""
        last = await self._kv.get(meta.string_key(meta.NEXT_GLOBAL_ID), ts)
        least = int(last or b"0")
        async for entry in job_entries(self._kv, ts):
            job = read_job(entry)
            if job is not None:
                least = min(least, job.id)
        return least


def has_effect(job: Job) -> bool:
    """True unless the job was cancelled or rolled back."""
    return job.state not in (CANCELLED, ROLLBACK_DONE) and job.schema_version > 0


def _is_logged(job: Job) -> bool:
    return has_effect(job) and job.type not in _NO_BINLOG and job.schema_name.lower() not in OWN_SCHEMAS
