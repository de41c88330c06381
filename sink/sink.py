"""The protocol of sinks, which take committed rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, Protocol

from ..errors import SinkError
from ..events import Batch, Checkpoint, Wait


class Sink(Protocol):
    """A target. Called by one thread at a time: by the feed to open it, then only by its SinkActor.

    The order of calls is `open`, any number of `write` and `flush`, `close`.
    """

    name: str
    """Name of this sink in the feed, its messages and its checkpoints."""

    target: str
    """Canonical name of the target; two sinks of a feed with the same target are an error."""

    reads_rows: bool
    """True if the sink reads rows as tuples: then they are decoded before `write`. A sink without this
    attribute counts as True."""

    def open(self) -> Checkpoint | None:
        """Connect, and return the checkpoint that the target is at; None if it has none yet.

        After it returns, leftovers of a crash are removed: the target matches its checkpoint exactly. Raises
        Retryable if the target can't be reached now; SinkError if it can't be used; CheckpointError if its
        checkpoint is damaged.
        """

    def write(self, batch: Batch) -> None:
        """Accept items in commit order; may buffer.

        A batch is applied atomically. A Ddl is alone in its batch. No item has a refusal. A batch without a
        checkpoint ends inside a transaction: it takes effect only with a later batch that has one.

        Raises Retryable if the target is unavailable: everything written since the last flush is rolled back,
        and comes again from its first batch. Raises SinkError if it can never be written, or if the target
        doesn't match the checkpoint: a row to be changed is missing, or one to be inserted exists. Raises
        NotReproducible for a Ddl, before anything of it is applied: earlier batches that end a transaction
        are durable then, and the sink can be used further.
        """

    def flush(self) -> Checkpoint | None:
        """Make everything accepted durable; return the durable checkpoint.

        Resuming from it loses nothing and, if the target stores the checkpoint with the rows, repeats
        nothing. Inside a transaction it is the checkpoint before that. None if nothing was ever durable here.
        Raises as `write` does.
        """

    def has_table(self, schema: str, table: str) -> bool:
        """Return True if the target has this table of the source, or if that is unknown.

        Raises as `write` does.
        """

    def close(self) -> None:
        """Release the target; unflushed batches are rolled back. May be called twice.

        Raises SinkError if the target can't finish what it acknowledged; it is released nevertheless.
        """


@contextmanager
def closing(sink: Sink) -> Iterator[None]:
    """Close the sink after the body, whose error is the one that is raised."""
    try:
        yield
    except BaseException:
        with suppress(SinkError):
            sink.close()
        raise
    sink.close()


class WorkersProgress(NamedTuple):
    """State of the connections that apply transactions in parallel."""

    units: int
    """Transactions that aren't durable."""
    rows: int
    """Their rows."""
    workers: int
    busy: int


class PipelinedSink(Sink, Protocol):
    """A sink that makes rows durable while it accepts others."""

    def progress(self) -> Checkpoint | None:
        """Start to make everything accepted durable, without waiting; return the durable checkpoint.

        It is called in place of `flush` unless the feed must wait. Batches above the checkpoint that it
        returns are written again after Retryable. Raises as `write` does.
        """

    def waits(self) -> list[Wait]:
        """Return what the sink waits for. Any thread."""

    def workers(self) -> WorkersProgress:
        """Return the state of its workers. Any thread."""


class CheckpointStore(Protocol):
    """Stores the checkpoint of a sink whose target can't."""

    def load(self) -> tuple[Checkpoint, int] | None:
        """Return the last saved checkpoint and length; None if there is none."""

    def save(self, checkpoint: Checkpoint, length: int = 0) -> None:
        """Save a checkpoint durably. `length` is for the sink: the length of its file."""
