"""The decision when a change that all own shards have made is passed, and who executes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..chain import Element
from ..events import Checkpoint, Table, TableName
from .merged_table import MergedTable
from .status import FeedWait
from .unlock import Unlock


class Passage(NamedTuple):
    """A change that is passed now."""

    executes: bool
    """True if this feed executes it; else the target has it."""
    table: Table | None = None
    """Definition of the merged table after it; None: by this feed's own statement."""
    number: int | None = None
    """`Ddl.shared`."""


class Creation(NamedTuple):
    """A merged table that is created with this feed's first shard."""

    table: Table
    number: int | None = None
    """Number of its last change; None if no other feed may write into it."""
    is_older: bool = False
    """True if it was there before several feeds wrote into it."""


class Agreement(Protocol):
    """One way to agree with others. `join`, `open` and `look` may wait for a store, the rest doesn't."""

    is_shared: bool
    """True if other feeds may write into a merged table of which this feed has no shard."""

    def open(self) -> list[Element]:
        """Continue from the checkpoint; return marks for it. Raises Retryable and SinkError."""

    def create(self, target: TableName, table: Table) -> Creation:
        """Join with the first shard, routed as `table`. Raises Retryable and SinkError."""

    def is_ready(self, merged: MergedTable) -> bool:
        """Return True if the active change needs no further shard of this feed."""

    def passage(self, merged: MergedTable) -> Passage | None:
        """Return how a change that is ready is passed; None if it waits for other feeds."""

    def look(self, checkpoint: Checkpoint) -> bool:
        """Report what this durable checkpoint has, and decide; return True if the feed must start again from
        it. Raises SinkError."""

    def force(self, merged: MergedTable, request: Unlock) -> bool:
        """Resolve a change by request; return True if it is left to the other feeds to agree."""

    def is_undecided(self, merged: MergedTable) -> bool:
        """Return True if a change that is ready wasn't looked at since. Any thread."""

    def waits(self, merged: MergedTable) -> Sequence[FeedWait]:
        """Return the other feeds of a change that waits. Any thread."""


class Alone:
    """One feed has all shards: a change is passed at once."""

    is_shared = False

    def open(self) -> list[Element]:
        return []

    def create(self, target: TableName, table: Table) -> Creation:  # noqa: ARG002
        return Creation(table)

    def is_ready(self, merged: MergedTable) -> bool:
        return merged.lock.is_synced

    def passage(self, merged: MergedTable) -> Passage | None:  # noqa: ARG002
        return Passage(executes=True)

    def look(self, checkpoint: Checkpoint) -> bool:  # noqa: ARG002
        return False

    def force(self, merged: MergedTable, request: Unlock) -> bool:  # noqa: ARG002
        return False

    def is_undecided(self, merged: MergedTable) -> bool:  # noqa: ARG002
        return False

    def waits(self, merged: MergedTable) -> Sequence[FeedWait]:  # noqa: ARG002
        return ()
