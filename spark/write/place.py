"""The rows that a task writes, and those that its target already has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from pyspark import TaskContext

from ...errors import InvariantViolated, Retryable, SinkError
from ...events import Checkpoint, Item, SparkBatch
from .options import WriteOptions

QUERY: Final = "sql.streaming.queryId"
EPOCH: Final = "streaming.sql.batchId"
"""Spark's local properties with a task's query and batch."""


class Overtaken(Retryable):
    """Another attempt at the task has already written the rows."""

    def __init__(self, feed: str) -> None:
        super().__init__(f"another attempt at {feed} has written its rows", 0.0)


class BatchPartition(Struct, frozen=True):
    """One partition of one batch of a query. All attempts at it have the same place."""

    feed: str
    """Name under which the target stores this partition's checkpoint."""
    query: str
    epoch: int
    partition: int
    is_stream: bool = False
    """True for a stream, whose batches are consecutive from 0, each with a partition 0."""

    @property
    def begins(self) -> bool:
        """True for the first partition of a stream: its checkpoint is stored also without rows."""
        return self.is_stream and not self.partition and not self.epoch

    def check_new(self, target: str) -> None:
        """Check a target without a checkpoint. Raises SinkError if it should have one."""
        if self.is_stream and not self.partition and self.epoch:
            raise SinkError(
                f"{target} has nothing of the batches before {self.mark}, so their rows would be missing: go "
                "back to the sink that the query had, or give it a checkpointLocation of its own"
            )

    @property
    def mark(self) -> str:
        """Readable description, stored as the checkpoint's position."""
        return f"batch {self.epoch} of {self.query}"

    @property
    def task(self) -> str:
        """Readable description of the partition."""
        return f"{self.mark}, partition {self.partition}"

    @property
    def owner(self) -> SparkBatch:
        """Owner of the checkpoints written for this place."""
        return SparkBatch(self.query, self.epoch)

    @property
    def start(self) -> Checkpoint:
        """Checkpoint of a target that has no rows of this partition."""
        return Checkpoint(0, "", None, f"spark {self.query}")


def task_place(options: WriteOptions, job: str) -> BatchPartition:
    """Return the place of the current task. `job` replaces the query's id for a batch; empty for a stream."""
    context = TaskContext.get()
    if context is None:
        raise InvariantViolated("a writer was called outside of a task")
    query = context.getLocalProperty(QUERY) or job
    epoch = int(context.getLocalProperty(EPOCH) or 0)
    partition = context.partitionId()
    of = f"-of-{options.partitions}" if options.partitions else ""
    return BatchPartition(f"{options.id or query}/{partition}{of}", query, epoch, partition, not job)


class BatchProgress:
    """The progress of a target with the checkpoint `stored` within a batch; raises if it is unknown.

    Commit timestamps ascend within a partition and from batch to batch, so the stored ts shows which rows
    were written. Rows up to it are dropped only if they are known to be the same.
    """

    def __init__(self, stored: Checkpoint, place: BatchPartition) -> None:
        self._place = place
        self._ts = stored.ts
        owner = stored.owner
        before = owner if isinstance(owner, SparkBatch) and owner.query == place.query else None
        self._is_same_query = before is not None
        self.is_over = before is not None and before.batch > place.epoch
        """True if the target has a later batch, and so all of this one."""
        self.is_repeat = before is not None and before.batch == place.epoch and stored.ts > 0
        self._first: int | None = None
        self._has_stored = False  # True if a row has the stored ts
        self._passed = stored.ts == 0

    def check(self, items: Iterable[Item]) -> None:
        """Check the next items; called with all of them, in order. Raises SinkError."""
        if self._passed:
            return
        for item in items:
            if self._first is None:
                self._first = item.commit_ts
                self._check_first()
            self._has_stored |= item.commit_ts == self._ts
            if item.commit_ts > self._ts:
                self._pass()
                return

    def end(self) -> None:
        """Finish the checks after the last item. Raises SinkError."""
        if not self._passed and self.is_repeat:
            self._pass()

    def _check_first(self) -> None:
        first = self._first
        if self._is_same_query and not self.is_repeat and first is not None and first <= self._ts:
            raise SinkError(
                f"{self._place.task}, begins with commit_ts {first}, and "
                f"batches before it went up to {self._ts}: the rows of a query must come in commit order "
                "from batch to batch, and a table's always in the same partition"
            )

    def _pass(self) -> None:
        self._passed = True
        overlaps = self._first is not None and self._first <= self._ts
        if not self._has_stored and (self.is_repeat or overlaps):
            raise SinkError(
                f"{self._place.task}, has other rows than when it was "
                f"written first, up to commit_ts {self._ts}: a batch must be repeated with the same rows in "
                "the same number of partitions (a snapshot of MariaDB is another one each time: empty the "
                "target and write it again)"
            )
