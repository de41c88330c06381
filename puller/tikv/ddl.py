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
        """A job took effect in the transaction of commit ts `ts`: no row above it has left the sorter.

        Called in the DdlPuller's turns, in the order of ts, once for each job, and for a multi-schema
        change also before, when a part of it takes effect. Must not wait for anything. Raises SourceError
        for a job that can't be read.
        """
        ...


class _Effect(Struct, frozen=True, gc=False):
    """A job that has taken effect, above the resolved ts."""

    change: KvChange
    job: Job


def _place(effect: _Effect) -> tuple[Ts, int, int]:
    return effect.change.commit_ts, effect.job.schema_version, effect.job.id


class DdlPuller(PooledActor):
    """Takes the changes of the DDL spans, of which most are steps of jobs. When a job takes effect it tells
    first the follower and then, with the change that says so, `output`: the sorter.

    What is resolved is told on only after the follower has acted. So a table that a job makes is in the
    sorter before anything above the job leaves. A job's place is the commit ts of the change by which it
    takes effect (see docs/decisions, the order of DDL jobs). Fails with SourceError for a job that can't be
    read or more than `max_bytes` of them at once.
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
        self._held: list[_Effect] = []
        self._bytes = 0
        self._known: dict[int, None] = {}
        """The ids of the jobs that were told as done, oldest first."""
        self._step: tuple[int, Ts] | None = None
        """Job and ts of the last that was told before it is done."""

    def on_receive_batch(self, messages: Sequence[Changes]) -> None:
        resolved = self._resolved
        for message in messages:
            for change in message.changes:
                self._take(change)
            resolved = max(resolved, message.resolved)
        if resolved > self._resolved:
            self._tell(resolved)

    def _take(self, change: KvChange) -> None:
        """Keep the change if with it a job, or a part of it, takes effect and that isn't known."""
        job = read_job(change)
        if job is None or not job.is_in_effect or job.id in self._known or change.commit_ts <= self._resolved:
            return
        if job.is_done and 0 < job.schema_version <= self._schema_version:
            return  # all of it is in the schema that was read
        self._held.append(_Effect(change, job))
        self._bytes += len(change.value)
        if self._bytes > self._max_bytes:
            first = min(self._held, key=_place)
            raise SourceError(
                f"{len(self._held)} DDL jobs with {self._bytes} bytes wait for the resolved ts to pass"
                f" {first.change.commit_ts}, where job {first.job.id} took effect ({first.job.query!r}): no"
                f" more than {self._max_bytes} bytes are held. Something keeps the resolved ts of the DDL"
                " keys from rising, a lock most likely; begin again once it is gone"
            )

    def _tell(self, resolved: Ts) -> None:
        """Act on what is resolved now."""
        self._resolved = resolved
        ready = sorted((effect for effect in self._held if effect.change.commit_ts <= resolved), key=_place)
        changes = []
        for effect in ready:
            if self._is_new(effect):
                self._follower.apply(effect.job, effect.change.commit_ts)
                changes.append(effect.change)
        if ready:
            self._held = [effect for effect in self._held if effect.change.commit_ts > resolved]
            self._bytes = sum(len(effect.change.value) for effect in self._held)
        self.send(self._output, Changes(changes, resolved))

    def _is_new(self, effect: _Effect) -> bool:
        """Whether it wasn't told. Steps of a job that isn't done differ by their ts."""
        job_id = effect.job.id
        if job_id in self._known or self._step == (job_id, effect.change.commit_ts):
            return False
        if not effect.job.is_done:
            self._step = job_id, effect.change.commit_ts
            return True
        self._known[job_id] = None
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return True
