"""The rows of runs as Arrow columns, straight from their source's bytes."""

from __future__ import annotations

from collections.abc import Sequence

from ..events import Run
from .image import Image
from .mysql.images import event_images
from .mysql.run import EventRun, ResultRun


def read_images(runs: Sequence[Run]) -> tuple[Image, Image] | None:
    """Return the rows before and after all changes of these runs of one table, in their order.

    The columns are int8 to int64 and uint8 to uint64 (mediumint: 32 bits), float, double, decimal128, uint64
    of a bit, int16 of a year, large_string, large_binary, date32, duration[us], timestamp[us], that of a
    timestamp in UTC. Returns None where the changes are to be taken one by one: they aren't all bytes of one
    source, lack columns, or have a value that these types don't hold. Raises SourceError for an event that
    isn't whole.
    """
    first = runs[0]
    if isinstance(first, EventRun | ResultRun):
        return event_images(runs)
    if type(first) is Run:  # decoded already
        return None
    from .tidb.images import tidb_images

    return tidb_images(runs)
