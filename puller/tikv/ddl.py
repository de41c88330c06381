"""The actor that puts DDL jobs into their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from ...actors import PooledActor, Target
from ...codec.tidb.job import Job
from ...codec.tidb.job_entry import read_job
from ...errors import SourceError
from ...events import Changes, KvChange, Ts

MAX_BYTES: Final = 256 << 20
"""Of jobs above the resolved ts: TiKV takes no entry above 6 MiB, and jobs end one after the other."""

REMEMBERED: Final = 65_536
"""So many of the last jobs are recognised when they come again."""


class Follower(Protocol):
    """Who acts on schema changes: the schema history, and whoever follows tables by it."""

    def apply(self, job: Job, ts: Ts) -> None:
        """A job has ended in the transaction of commit ts `ts`: no row above it has left the sorter.

        Called in the DdlPuller's turns, in the order of ts, once for each job; must not wait for
        anything. Raises SourceError for a job that can't be read.
        """
        ...


class _Ended(Struct, frozen=True, gc=False):
    """A job that has ended, above the resolved ts."""

    change: KvChange
    job: Job


def _place(ended: _Ended) -> tuple[Ts, int]:
    return ended.change.commit_ts, ended.job.schema_version


class DdlPuller(PooledActor):
    """Takes the changes of the DDL spans, of which many are steps of jobs. Of each job that has ended it
    tells first the follower and then, with the change that says so, `output`: the sorter.

    What is resolved is told on only after the follower has acted. So a table that a job makes is in the
    sorter before anything above the job leaves. A job's place is the commit ts of the change by which it
    ends (see docs/decisions, the order of DDL jobs). Fails with SourceError for a job that can't be read
    or more than `max_bytes` of them at once.
    """

    def __init__(
        self,
        output: Target,
        follower: Follower,
        *,
        start_ts: Ts,
        schema_version: int = 0,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`start_ts` and `schema_version` are those of the schema that the follower begins with."""
        self._output = output
        self._follower = follower
        self._schema_version = schema_version
        self._max_bytes = max_bytes
        self._resolved = start_ts
        self._ended: list[_Ended] = []
        self._bytes = 0
        self._known: dict[int, None] = {}
        """The ids of the jobs that were told, oldest first."""

    def on_receive_batch(self, messages: Sequence[Changes]) -> None:
        resolved = self._resolved
        for message in messages:
            for change in message.changes:
                self._take(change)
            resolved = max(resolved, message.resolved)
        if resolved > self._resolved:
            self._tell(resolved)

    def _take(self, change: KvChange) -> None:
        """Keep the change if a job ends with it that isn't known."""
        job = read_job(change)
        if job is None or not job.is_done or job.id in self._known or change.commit_ts <= self._resolved:
            return
        if 0 < job.schema_version <= self._schema_version:
            return  # written once more since
        self._ended.append(_Ended(change, job))
        self._bytes += len(change.value)
        if self._bytes > self._max_bytes:
            first = min(self._ended, key=_place)
            raise SourceError(
                f"{len(self._ended)} DDL jobs with {self._bytes} bytes wait for the resolved ts to pass"
                f" {first.change.commit_ts}, where job {first.job.id} ended ({first.job.query!r}): no more"
                f" than {self._max_bytes} bytes are held. Something keeps the resolved ts of the DDL keys"
                " from rising, a lock most likely; begin again once it is gone"
            )

    def _tell(self, resolved: Ts) -> None:
        """Act on what is resolved now."""
        self._resolved = resolved
        ready = sorted((ended for ended in self._ended if ended.change.commit_ts <= resolved), key=_place)
        changes = []
        for ended in ready:
            if self._remember(ended.job.id):
                self._follower.apply(ended.job, ended.change.commit_ts)
                changes.append(ended.change)
        if ready:
            self._ended = [ended for ended in self._ended if ended.change.commit_ts > resolved]
            self._bytes = sum(len(ended.change.value) for ended in self._ended)
        self.send(self._output, Changes(changes, resolved))

    def _remember(self, job_id: int) -> bool:
        """Whether the job is a new one."""
        if job_id in self._known:
            return False
        self._known[job_id] = None
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return True
