"""What a stage of a sink's chain is, and what it can say between items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from msgspec import Struct

from ..events import Checkpoint, Item, TablePosition, Wait


class Barrier(Struct, frozen=True):
    """Between items: all before it is durable in the target before anything after it is written.

    Never between the pieces of a transaction. The stage that sent it hears from `durable` when it is
    passed.
    """


class Lag(Struct, frozen=True):
    """Between items: from here on `table` is only applied up to `at`, though other tables go on.

    The sink's checkpoint says so, so that a restart brings the table's changes after `at` again. Items
    of the table that come later, below the commit ts of those that went on, raise its position. With
    `at` None the table has caught up. A stage that holds items of a table takes the Lags of stages
    before it for that table to itself, and says that the table has caught up only when they have too.
    """

    table: str
    """Full name."""
    at: TablePosition | None


Element: TypeAlias = Item | Barrier | Lag
"""What flows through a chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageContext:
    """What a stage is opened with."""

    feed: str
    sink: str
    """Name of the sink in whose chain it is."""
    checkpoint: Checkpoint
    """What the sink's target holds: all of that has been dropped before a stage sees it."""
    now: Callable[[], float]
    """The clock, in seconds."""
    seek: Callable[[TablePosition], None]
    """Ask the source to be read again after a position at or below the sink's checkpoint.

    All stages and sinks are then opened again, at their checkpoints; so a stage must have sent a Lag,
    which is in the checkpoint, for the tables that it wants to see again. Returns at once. A source
    that can't go back ends the feed with a SourceError.
    """


class Stage(Protocol):
    """One step between decoding and a sink.

    `open`, then any number of `apply` and `durable`, then `close`; after that it may be opened again.
    Called by one thread at a time, the sink's, except for `waits`. A stage keeps a bounded number of
    items: beyond that it forgets them, having sent a Lag, and seeks when it can let them pass.
    """

    name: str

    def open(self, context: StageContext) -> None:
        """Begin at `context.checkpoint`. Items that it held before come again: forget them."""

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        """Return what goes on, in order; may hold items back and add Barriers and Lags.

        Pieces of a transaction stay together, and what shares a commit ts leaves in one batch. An item
        that is dropped leaves a transaction without rows in its place, or the checkpoint stays before it.
        The checkpoint never passes an item that is held: a stage that lets later items pass sends a Lag
        first.
        """

    def durable(self, checkpoint: Checkpoint) -> Sequence[Element]:
        """Hear what the target durably holds; return what can go on by that."""

    def waits(self) -> Sequence[Wait]:
        """What it holds back, for `status` and `explain`. Any thread."""

    def close(self) -> None:
        """Let go of everything held: it comes again after a restart. May be called twice."""
