"""The source's own word about offsets, whichever kind it is."""

from __future__ import annotations

from ...events import Ts
from ..read.options import ReadOptions
from .offset import Limit, Offset, Offsets


def open_offsets(options: ReadOptions) -> Offsets:
    """Connected. Raises Retryable and Fatal."""
    return options.reading.open_offsets(options)


def batch_range(options: ReadOptions, offsets: Offsets) -> tuple[Offset, Offset]:
    """Where the changes that a batch is told to read begin and end. Raises ConfigError."""
    start = _at(offsets, options.from_position, options.from_ts)
    end = _at(offsets, options.to_position, options.to_ts)
    # A binlog's end has a ts only for whoever has read up to it.
    return start, offsets.following(start, end, Limit())


def _at(offsets: Offsets, position: str, ts: Ts) -> Offset:
    """The source's end where neither is given."""
    if position:
        return offsets.at_position(position)
    return offsets.at(ts) if ts else offsets.latest()
