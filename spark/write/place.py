"""Which rows of a query a task writes, and which of them its target has already."""

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
"""The properties in which Spark tells a task what it works for."""


class Overtaken(Retryable):
    """Another attempt at a task has written what this one was about to write."""

    def __init__(self, feed: str) -> None:
        super().__init__(f"another attempt at {feed} has written its rows", 0.0)


class Place(Struct, frozen=True):
    """One partition of one batch of a query. All attempts at it have the same place."""

    feed: str
    """Under which the target keeps what it has of this partition."""
    query: str
    epoch: int
    partition: int
    is_stream: bool = False
    """Whose batches come one after the other, from the first on, and each has a first partition."""

    @property
    def begins(self) -> bool:
        """The target learns of the query by it, with or without rows."""
        return self.is_stream and not self.partition and not self.epoch

    def check_new(self, target: str) -> None:
        """To be asked where `target` knows nothing of it. Raises SinkError if it should."""
        if self.is_stream and not self.partition and self.epoch:
            raise SinkError(
                f"{target} has nothing of the batches before {self.mark}, so their rows would be missing: go "
                "back to the sink that the query had, or give it a checkpointLocation of its own"
            )

    @property
    def mark(self) -> str:
        """Stands for a position in the checkpoint, for people."""
        return f"batch {self.epoch} of {self.query}"

    @property
    def owner(self) -> SparkBatch:
        """Of the checkpoints that are written for it."""
        return SparkBatch(self.query, self.epoch)

    @property
    def start(self) -> Checkpoint:
        """Of a target that has nothing of this partition."""
        return Checkpoint(0, "", None, f"spark {self.query}")


def task_place(options: WriteOptions, job: str) -> Place:
    """Of the task that this is. `job` stands for the query where there is none, and is empty for a stream."""
    context = TaskContext.get()
    if context is None:
        raise InvariantViolated("a writer was called outside of a task")
    query = context.getLocalProperty(QUERY) or job
    epoch = int(context.getLocalProperty(EPOCH) or 0)
    partition = context.partitionId()
    of = f"-of-{options.partitions}" if options.partitions else ""
    return Place(f"{options.id or query}/{partition}{of}", query, epoch, partition, not job)


class Progress:
    """What a target that is at `stored` lacks of a batch; raises where that can't be told.

    Commit timestamps say what it has: they rise within a partition, and from batch to batch. Rows up to the
    stored ts are dropped only where they are known to be those that were written.
    """

    def __init__(self, stored: Checkpoint, place: Place) -> None:
        self._place = place
        self._ts = stored.ts
        owner = stored.owner
        before = owner if isinstance(owner, SparkBatch) and owner.query == place.query else None
        self._is_same_query = before is not None
        self.is_over = before is not None and before.batch > place.epoch
        """A later batch is there, so this one is."""
        self.is_repeat = before is not None and before.batch == place.epoch and stored.ts > 0
        self._first: int | None = None
        self._has_stored = False  # whether the stored ts is among the rows
        self._passed = stored.ts == 0

    def check(self, items: Iterable[Item]) -> None:
        """To be shown all items, in order. Raises SinkError."""
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
        """There are no more. Raises SinkError."""
        if not self._passed and self.is_repeat:
            self._pass()

    def _check_first(self) -> None:
        first = self._first
        if self._is_same_query and not self.is_repeat and first is not None and first <= self._ts:
            raise SinkError(
                f"{self._place.mark}, partition {self._place.partition}, begins with commit_ts {first}, and "
                f"batches before it went up to {self._ts}: the rows of a query must come in commit order "
                "from batch to batch, and a table's always in the same partition"
            )

    def _pass(self) -> None:
        self._passed = True
        overlaps = self._first is not None and self._first <= self._ts
        if not self._has_stored and (self.is_repeat or overlaps):
            raise SinkError(
                f"{self._place.mark}, partition {self._place.partition}, has other rows than when it was "
                f"written first, up to commit_ts {self._ts}: a batch must be repeated with the same rows in "
                "the same number of partitions (a snapshot of MariaDB is another one each time: empty the "
                "target and write it anew)"
            )
