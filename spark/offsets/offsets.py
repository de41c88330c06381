"""Offsets of any kind of source."""

from __future__ import annotations

from ...events import Ts
from ..read.options import ReadOptions
from .offset import Limit, Offset, Offsets


def open_offsets(options: ReadOptions) -> Offsets:
    """Connect to the source. Raises Retryable and Fatal."""
    return options.reading.open_offsets(options)


def batch_range(options: ReadOptions, offsets: Offsets) -> tuple[Offset, Offset]:
    """Return the start and the end of the changes that a batch reads. Raises ConfigError."""
    start = _at(offsets, options.from_position, options.from_ts)
    end = _at(offsets, options.to_position, options.to_ts)
    # The ts of a binlog's end is known only after reading up to it.
    return start, offsets.following(start, end, Limit())


def _at(offsets: Offsets, position: str, ts: Ts) -> Offset:
    """Return the offset of the position or ts; the source's end if neither is given."""
    if position:
        return offsets.at_position(position)
    return offsets.at(ts) if ts else offsets.latest()
