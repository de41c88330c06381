"""The base class of sinks, which take committed rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ..errors import SinkError
from ..events import Batch, Checkpoint, Table, Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkTraits:
    """Abilities and needs of a sink; the same as long as it lives."""

    reads_rows: bool = True
    """True if it reads rows as tuples: then a source may decode them before `write`."""
    needs_key: bool = True
    """True if it finds rows by their key: then a stage must not drop or change columns of a key."""
    computes_columns: bool = False
    """True if `write` takes a Ddl that adds generated columns, and raises NotReproducible if the target can't
    compute their values; otherwise the table is loaded again."""
    copies_definitions: bool = False
    """True if it executes changes of indexes, comments and the like: then it takes `ChangeDetails`."""
    tells_definitions: bool = False
    """True if it passes them on: then it takes `ChangeDetails` too."""
    loads_tables: bool = True
    """True if its checkpoint tells which tables are being loaded: then single ones can be loaded again."""
    is_pipelined: bool = False
    """True if it makes rows durable while it accepts others: then `progress` is called in place of `flush`,
    and batches above the checkpoint that it returns are written again after Retryable."""
    needs_flush_before_ddl: bool = False
    """True if all batches before one with a Ddl must be durable when it is written."""
    adopts_merged: bool = False
    """True if its checkpoint may be that of something else that merged tables and doesn't say which."""


class WorkersProgress(NamedTuple):
    """State of the connections that apply transactions in parallel."""

    units: int
    """Transactions that aren't durable."""
    rows: int
    """Their rows."""
    workers: int
    busy: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkStatistics:
    """Figures that only the sink knows."""

    workers: WorkersProgress | None = None
    """None if it has no parallel workers."""
    dead_letters: int = 0
    """Number of changes that the target rejected and that are kept there, as of the last look at them."""
    dead_letter_tables: Mapping[str, int] = field(default_factory=dict)
    """Number of them by table."""
    safe_mode: Mapping[str, int] = field(default_factory=dict)
    """Reasons for safe mode, each with a count; empty if it isn't active."""


class Sink(ABC):
    """A target. Called by one thread at a time: by the feed to open it, then only by its SinkActor.

    The order of calls is `open`, any number of `write` and `flush`, `close`. A sink derives from this class;
    members with a body are those of a plain sink.
    """

    name: str
    """Name of this sink in the feed, its messages and its checkpoints."""

    target: str
    """Canonical name of the target; two sinks of a feed with the same target are an error."""

    @property
    def traits(self) -> SinkTraits:
        return SinkTraits()

    @abstractmethod
    def open(self) -> Checkpoint | None:
        """Connect, and return the checkpoint that the target is at; None if it has none yet.

        After it returns, leftovers of a crash are removed: the target matches its checkpoint exactly. Raises
        Retryable if the target can't be reached now; SinkError if it can't be used; CheckpointError if its
        checkpoint is damaged.
        """

    @abstractmethod
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

    @abstractmethod
    def flush(self) -> Checkpoint | None:
        """Make everything accepted durable; return the durable checkpoint.

        Resuming from it loses nothing and, if the target stores the checkpoint with the rows, repeats
        nothing. Inside a transaction it is the checkpoint before that. None if nothing was ever durable here.
        Raises as `write` does.
        """

    def progress(self) -> Checkpoint | None:
        """Start to make everything accepted durable, without waiting; return the durable checkpoint.

        Called in place of `flush` if the sink is pipelined, unless the feed must wait. Raises as `write`
        does.
        """
        return self.flush()

    def wakes(self) -> float | None:
        """Return the seconds until `progress` is to be called though everything is durable, 0 if it is due;
        None if it isn't to be called."""
        return None

    @abstractmethod
    def has_table(self, schema: str, table: str) -> bool:
        """Return True if the target has this table of the source, or if that is unknown.

        Raises as `write` does.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the target; unflushed batches are rolled back. May be called twice.

        Raises SinkError if the target can't finish what it acknowledged; it is released nevertheless.
        """

    def waits(self) -> list[Wait]:
        """Return what the sink waits for. Any thread."""
        return []

    def statistics(self) -> SinkStatistics:
        """Return what only the sink can count. Any thread."""
        return SinkStatistics()

    def check_adopted(self, table: Table) -> str:  # noqa: ARG002
        """Return how the target's copy differs from a table, as a phrase after "it"; empty if it doesn't.

        Called if the sink adopts merged tables.
        """
        return ""


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


class CheckpointStore(Protocol):
    """Stores the checkpoint of a sink whose target can't."""

    def load(self) -> tuple[Checkpoint, int] | None:
        """Return the last saved checkpoint and length; None if there is none."""

    def save(self, checkpoint: Checkpoint, length: int = 0) -> None:
        """Save a checkpoint durably. `length` is for the sink: the length of its file."""
