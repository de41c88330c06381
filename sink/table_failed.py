"""The error that parks a table, so that the other tables of a sink go on."""

from __future__ import annotations

from ..errors import SinkError
from ..events import Checkpoint, Parking, TablePosition, parked_tables


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
