"""Errors that end a sink's delivery or delay it.

Retryable
├── ReplayRequired   the source has to deliver again from the sink's checkpoint
└── BehindBarrier    too many items wait at a barrier
LoadRequired         tables have to be loaded again
SinkError
└── TableFailed      one table has to be parked
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import Retryable, SinkError, TidemillError
from ..events import Checkpoint, Parking, TablePosition, parked_tables


class ReplayRequired(Retryable):
    """The sink lost rows of a transaction that was too large to keep: only the source has them.

    To continue, start again from the sink's checkpoint.
    """


class LoadRequired(TidemillError):
    """Tables of a sink must be loaded again; its durable checkpoint says so."""

    def __init__(self, tables: Iterable[str], reason: str) -> None:
        super().__init__(reason)
        self.tables = frozenset(tables)


class BehindBarrier(Retryable):
    """The maximum number of items waits until everything before a barrier is durable."""

    def __init__(self, items: int) -> None:
        super().__init__(f"{items} items wait until what came before them is durable", 0.1)


class TableFailed(SinkError):
    """Nothing more of one table can be written: it is to be parked, and everything else goes on from the
    sink's checkpoint."""

    def __init__(self, error: SinkError, sink: str, parking: Parking) -> None:
        super().__init__(str(error), error.table)
        self.sink = sink
        """Name of the sink."""
        self.parking = parking


def table_failed(error: SinkError, sink: str, durable: Checkpoint, now: float) -> SinkError:
    """Return the error that parks the table, if it is about one that isn't parked yet; else the error itself.

    `durable` is the checkpoint of the target, `now` the time in Unix seconds.
    """
    if not error.table or error.table in parked_tables(durable.loading):
        return error
    position = TablePosition(durable.ts, durable.position)
    return TableFailed(error, sink, Parking("failed", now, position, str(error)))
