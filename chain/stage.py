"""The protocol of stages in a sink's chain, and the marks that they put between items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from msgspec import Struct

from ..events import Checkpoint, Item, TablePosition, Wait


class Barrier(Struct, frozen=True):
    """A mark between items: everything before it becomes durable before anything after it is written.

    Never between the parts of a transaction. `durable` tells the stage that sent it when it is passed.
    """

    passed: Callable[[], object] | None = None
    """Called in the sink's thread when everything before it is durable, before `durable`."""


class Lag(Struct, frozen=True):
    """A mark between items: `table` lags, applied only up to `at`, while other tables continue.

    The sink's checkpoint contains this, so that after a restart the table's changes after `at` come again.
    Later items of the table, with a commit ts below that of passed items, advance its position. `at` None
    means that the table has caught up. A stage that holds items of a table consumes Lags of earlier stages
    for that table, and reports it as caught up only when they have too.
    """

    table: str
    """Origin name of the table."""
    at: TablePosition | None


class Keep(Struct, frozen=True):
    """A mark between items: the checkpoint contains this state of a stage from the next item on."""

    key: str
    """Unique among all stages of a chain, and the same after a restart."""
    state: str
    """Empty to remove it."""


Mark: TypeAlias = Barrier | Lag | Keep
Element: TypeAlias = Item | Mark
"""An element that passes through a chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageContext:
    """The arguments of a stage's `open`."""

    feed: str
    sink: str
    """Name of the sink of this chain."""
    checkpoint: Checkpoint
    """Checkpoint of the sink's target; items that the target has are dropped before a stage sees them."""
    now: Callable[[], float]
    """Clock, in seconds."""
    seek: Callable[[TablePosition], None]
    """Request that the source is read again after a position at or below the sink's checkpoint.

    All stages and sinks are then opened again at their checkpoints: for tables that a stage needs again it
    must have sent a Lag, which is in the checkpoint. Returns at once. If the source can't go back, the feed
    ends with a SourceError.
    """


class Stage(Protocol):
    """One step between decoding and a sink. A stage derives from this class; members with a body are those of
    a stage that holds no items.

    The order of calls is `open`, any number of `apply` and `durable`, `close`; after that it may be opened
    again. Called by one thread at a time, the sink's, except for `waits`. A stage keeps a bounded number of
    items: beyond it, it sends a Lag and drops items, and seeks once it can pass them.
    """

    name: str

    def open(self, context: StageContext) -> None:  # noqa: ARG002
        """Begin at `context.checkpoint`. Drop items held before: they come again."""
        return

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        """Return the elements that pass, in order; may hold items back, and add Barriers and Lags.

        Parts of a transaction stay together, and items of the same commit ts pass in one batch. A dropped
        item must be replaced by a transaction without rows; otherwise the checkpoint stays before it. The
        checkpoint never passes a held item: a stage that passes later items sends a Lag first.
        """

    def durable(self, checkpoint: Checkpoint) -> Sequence[Element]:  # noqa: ARG002
        """Note the target's durable checkpoint; return the elements that can pass now."""
        return ()

    def waits(self) -> Sequence[Wait]:
        """Return waits for held items, for `status` and `explain`. Any thread."""
        return ()

    def close(self) -> None:
        """Drop all held items: they come again after a restart. May be called twice."""
        return


class Chain:
    """Stages in the order in which items pass them. Has the methods of a Stage."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = tuple(stages)

    def open(self, context: StageContext) -> None:
        for stage in self._stages:
            stage.open(context)

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        for stage in self._stages:
            if not batch:
                break
            batch = stage.apply(batch)
        return batch

    def durable(self, checkpoint: Checkpoint) -> Sequence[Element]:
        """Notify every stage. Items that a stage releases pass the later stages, after items held there."""
        released: Sequence[Element] = ()
        for stage in self._stages:
            own = stage.durable(checkpoint)
            released = [*own, *stage.apply(released)] if released else own
        return released

    def waits(self) -> list[Wait]:
        return [wait for stage in self._stages for wait in stage.waits()]

    def close(self) -> None:
        for stage in self._stages:
            stage.close()
