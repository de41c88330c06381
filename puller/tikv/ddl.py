"""The actor that orders DDL jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ...actors import PooledActor, Target
from ...codec.blocks import block_of
from ...codec.tidb.job import Job
from ...codec.tidb.job_entry import read_job
from ...errors import SourceError
from ...events import Changes, KvChange, Ts

MAX_BYTES: Final = 256 << 20
"""Limit for jobs above the resolved ts: TiKV takes no entry above 6 MiB, and jobs end one after the other."""

REMEMBERED: Final = 65_536
"""Number of recent jobs that are recognised as duplicates."""


class Follower(Protocol):
    """Receiver of schema changes: the schema history, and the code that follows tables by it."""

    def apply(self, job: Job, ts: Ts) -> None:
        """Apply a job that took effect in the transaction of commit ts `ts`; no row above it has left the
        sorter.

        Called in the DdlPuller's turns, in the order of ts, once for each job; for a multi-schema change also
        earlier, when a part of it takes effect. Must not block. Raises SourceError for a job that can't be
        read.
        """
        ...


class _Effect(Struct, frozen=True, gc=False):
    """A job that has taken effect, above the resolved ts."""

    change: KvChange
    job: Job


def _place(effect: _Effect) -> tuple[Ts, int, int]:
    return effect.change.commit_ts, effect.job.schema_version, effect.job.id


class DdlPuller(PooledActor[Changes]):
    """Processes the changes of the DDL spans, most of which are steps of jobs. When a job takes effect, the
    follower is told first, then `output` (the sorter) gets the change by which it took effect.

    The resolved ts is forwarded only after the follower has acted, so a table that a job creates is in the
    sorter before any change above the job leaves. A job's position is the commit ts of the change by which it
    takes effect (see docs/decisions, the order of DDL jobs). If rows are by the table after the job before it
    is done, that is the step from which they are, and the resolved ts stays below it until the job is done.
    Fails with SourceError for a job that can't be read, or if jobs of more than `max_bytes` wait.
    """

    def __init__(
        self,
        output: Target[Changes],
        follower: Follower,
        *,
        start_ts: Ts,
        schema_version: int = 0,
        max_bytes: int = MAX_BYTES,
        resolved: Callable[[Ts], object] = lambda _ts: None,
    ) -> None:
        """`start_ts` and `schema_version` are those of the follower's initial schema. `resolved` is called
        with each resolved ts, after the follower was told the jobs up to there."""
        self._output = output
        self._follower = follower
        self._schema_version = schema_version
        self._max_bytes = max_bytes
        self._told = resolved
        self._resolved = start_ts
        self._held: list[_Effect] = []
        self._early: dict[int, KvChange] = {}
        """First steps above the resolved ts from which rows are by the table after a job, by its id."""
        self._bytes = 0
        self._known: dict[int, None] = {}
        """Ids of the jobs that were reported as done, oldest first."""
        self._step: tuple[int, Ts] | None = None
        """Job and ts of the last step that was reported before its job is done."""

    def on_receive_batch(self, messages: Sequence[Changes]) -> None:
        resolved = self._resolved
        for message in messages:
            for change in message.changes:
                self._take(change)
            resolved = max(resolved, message.resolved)
        if resolved > self._resolved:
            self._tell(resolved)

    def _take(self, change: KvChange) -> None:
        """Keep the change if a job, or a part of it, takes effect by it and isn't known yet."""
        job = read_job(change)
        if job is None or job.id in self._known or change.commit_ts <= self._resolved:
            return
        if job.shows_in_rows:
            known = self._early.get(job.id, change)
            self._early[job.id] = min(known, change, key=lambda step: step.commit_ts)
        if not job.is_in_effect:
            return
        if job.is_done and 0 < job.schema_version <= self._schema_version:
            return  # the initial schema contains all of it
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
        """Report the jobs at or below the resolved ts, at which all changes up to there have come."""
        done = {effect.job.id: effect for effect in self._held if effect.change.commit_ts <= resolved}
        for job_id, step in self._early.items():
            if job_id not in done:
                resolved = min(resolved, step.commit_ts - 1)
        if resolved <= self._resolved:
            return
        self._resolved = resolved
        self._held = [self._placed(effect) for effect in self._held]
        ready = sorted((effect for effect in self._held if effect.change.commit_ts <= resolved), key=_place)
        changes = []
        for effect in ready:
            if self._is_new(effect):
                self._follower.apply(effect.job, effect.change.commit_ts)
                changes.append(effect.change)
        if ready:
            self._held = [effect for effect in self._held if effect.change.commit_ts > resolved]
            self._bytes = sum(len(effect.change.value) for effect in self._held)
        self._told(resolved)
        self.send(self._output, Changes(block_of(changes), resolved))

    def _placed(self, effect: _Effect) -> _Effect:
        """Return the effect at the step from which rows are by the table after the job."""
        step = self._early.get(effect.job.id)
        if step is None:
            return effect
        return _Effect(replace(step, value=effect.change.value), effect.job)

    def _is_new(self, effect: _Effect) -> bool:
        """True if it wasn't reported yet. Steps of a job that isn't done differ by their ts."""
        job_id = effect.job.id
        if job_id in self._known or self._step == (job_id, effect.change.commit_ts):
            return False
        if not effect.job.is_done:
            self._step = job_id, effect.change.commit_ts
            return True
        self._known[job_id] = None
        self._early.pop(job_id, None)
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return True
