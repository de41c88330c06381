"""Messages to and from a sink's actor."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from ..events import Checkpoint, Item, TablePosition


class Deliver(Struct, frozen=True, gc=False):
    """To a SinkActor: items in commit order, after those of the previous message.

    Transactions with the same commit ts, which TiDB has, come in one message.
    """

    items: list[Item]


class Flush(Struct, frozen=True):
    """To a SinkActor: flush the sink, which may have new acknowledgements without new items."""


class Review(Struct, frozen=True):
    """To a SinkActor: ask the stages for items that can pass now. To the coordinator: has the feed ended?"""


class Acknowledged(Struct, frozen=True):
    """To the coordinator: `checkpoint` is durable in this sink's target."""

    sink: str
    checkpoint: Checkpoint


class Seek(Struct, frozen=True):
    """To the coordinator: a stage of this sink needs the changes after `at` again."""

    sink: str
    at: TablePosition


ToSink: TypeAlias = Deliver | Flush | Review
FromSink: TypeAlias = Acknowledged | Seek
"""To the coordinator."""
