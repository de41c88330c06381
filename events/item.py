"""Batches of transactions and schema changes, as sinks receive them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from .checkpoint import Checkpoint, Chunk
from .ddl import Ddl
from .rows import RowChange, Rows, Run, runs_of
from .ts import Ts


class Transaction(Struct, frozen=True, gc=False):
    """Row changes of a source transaction in order; complete, unless it is larger than a batch.

    A transaction larger than a batch comes as several consecutive ones with the same ts; only the last has
    `last` set and a position. One without rows advances the checkpoint.
    """

    commit_ts: Ts
    start_ts: Ts
    source: str
    rows: Sequence[RowChange]
    position: str = ""
    last: bool = True
    chunk: Chunk | None = None
    """Set if the rows are part of a snapshot instead of a transaction of the source."""

    @property
    def runs(self) -> Sequence[Run]:
        """The rows as runs, which need not be decoded."""
        rows = self.rows
        return rows.runs if type(rows) is Rows else runs_of(rows)  # isinstance asks the abstract class


Item: TypeAlias = Transaction | Ddl


class Batch(Struct, frozen=True):
    """To a sink: items in commit order, and the checkpoint that is valid once all are applied.

    `checkpoint` is None while a transaction larger than a batch is still open.
    """

    items: list[Item]
    checkpoint: Checkpoint | None


def row_count(items: Iterable[Item]) -> int:
    """Return the number of row changes in `items`."""
    return sum([len(item.rows) for item in items if isinstance(item, Transaction)])
