"""What is said to a sink's actor, and what it says."""

from __future__ import annotations

from msgspec import Struct

from ..events import Checkpoint, Item, TablePosition


class Deliver(Struct, frozen=True, gc=False):
    """To a SinkActor: items in commit order, following those of the message before.

    Transactions with the same commit ts (TiDB has such) come in one message.
    """

    items: list[Item]


class Flush(Struct, frozen=True):
    """To a SinkActor: the sink may have something to acknowledge without having been given anything."""


class Acknowledged(Struct, frozen=True):
    """To the coordinator: this sink's target durably holds what `checkpoint` says."""

    sink: str
    checkpoint: Checkpoint


class Seek(Struct, frozen=True):
    """To the coordinator: a stage of this sink wants what came after `at` again."""

    sink: str
    at: TablePosition
