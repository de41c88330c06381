"""The condition of a feed: its status in one word, for the person who looks at it."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from .status import FeedStatus, State

Condition: TypeAlias = State | Literal["stalled", "behind", "loading", "idle"]
"""A state; or, in place of normal:

- stalled: the target is behind, and nothing is written;
- behind: the target is behind, and rows are written;
- loading: tables are being loaded;
- idle: everything is written.

A warning may also be about a failed table.
"""
STALLED_SECONDS: Final = 30.0
"""Lag from which a feed that writes nothing is stalled."""
BEHIND_SECONDS: Final = 60.0
"""Lag from which a feed that writes is behind."""


def condition_of(status: FeedStatus) -> Condition:
    """Return the condition of a feed."""
    if status.state != "normal":
        return status.state
    if status.table_states.get("failed"):
        return "warning"
    if status.table_states.get("loading"):
        return "loading"
    lag = max((sink.lag_seconds or 0.0 for sink in status.sinks), default=0.0)
    is_writing = status.rows_per_second > 0
    if lag >= STALLED_SECONDS and not is_writing:
        return "stalled"
    if lag >= BEHIND_SECONDS:
        return "behind"
    return "idle" if status.idle and not is_writing else "normal"
