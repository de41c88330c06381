"""Timestamps: TiDB TSOs, which are physical milliseconds << 18 | logical counter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from ..errors import CheckpointError

Ts: TypeAlias = int
LOGICAL_BITS: Final = 18
MAX_LOGICAL: Final = (1 << LOGICAL_BITS) - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def compose_ts(physical_ms: int, logical: int = 0) -> Ts:
    """Return the TSO of a time in Unix milliseconds."""
    return physical_ms << LOGICAL_BITS | logical


def physical_ms(ts: Ts) -> int:
    """Return the Unix milliseconds of a TSO."""
    return ts >> LOGICAL_BITS


def parse_ts(text: str) -> Ts:
    """Return the TSO that a TiKV position is. Raises CheckpointError for anything but digits."""
    if not text.isascii() or not text.isdecimal():
        raise CheckpointError(f"{text!r} is not a position of TiKV: a TSO is a number")
    return int(text)


def timestamp(ts: Ts) -> datetime:
    """Return the time of a TSO, to the millisecond, as an aware datetime in UTC."""
    return _EPOCH + timedelta(milliseconds=physical_ms(ts))
