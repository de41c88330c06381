"""Where committed rows go: the protocol of every sink."""

from __future__ import annotations

from typing import Protocol

from ..events import Batch, Checkpoint


class Sink(Protocol):
    """A target. Called by one thread at a time: by the feed to open it, then only by its SinkActor.

    open, then any number of write and flush, then close.
    """

    name: str
    """What the feed, its messages and its checkpoints call this sink."""

    target: str
    """What is written to, spelled one way: two sinks of a feed with the same target are an error."""

    def open(self) -> Checkpoint | None:
        """Connect, and return the checkpoint that the target is at; None if it has none yet.

        Leftovers of a crash are gone when this returns: the target holds exactly what its checkpoint
        says. Raises Retryable if the target can't be reached now; SinkError if it can't be used;
        CheckpointError if its checkpoint is damaged.
        """

    def write(self, batch: Batch) -> None:
        """Accept items in commit order; may buffer.

        All of a batch is applied or nothing of it is. A Ddl is alone in its batch. No item has a
        refusal. A batch without a checkpoint ends inside a transaction: what it holds takes effect
        only with a later batch that has one.

        Raises Retryable if the target can't take it now: everything written since the last flush is
        undone, and comes again from its first batch. Raises SinkError if it can never be written, or
        if the target isn't what the checkpoint says: a row to be changed is missing, one to be
        inserted is there.
        """

    def flush(self) -> Checkpoint | None:
        """Make everything accepted durable; return the checkpoint of what is.

        Resuming from it loses nothing and, where the target keeps the checkpoint with the rows,
        repeats nothing. Inside a transaction it is the one from before. None: nothing was ever
        durable here. Raises as `write` does.
        """

    def has_table(self, schema: str, table: str) -> bool:
        """Whether the target has this table of the source; True where it can't be told.

        Raises as `write` does.
        """

    def close(self) -> None:
        """Let the target go; what wasn't flushed is undone. Doesn't raise; may be called twice."""


class CheckpointStore(Protocol):
    """Keeps the checkpoint of a sink whose target can't."""

    def load(self) -> tuple[Checkpoint, int] | None:
        """The checkpoint and the length that were saved last; None if none ever was."""

    def save(self, checkpoint: Checkpoint, length: int = 0) -> None:
        """Durable once this returns. `length` is the sink's own: how long its file was."""
