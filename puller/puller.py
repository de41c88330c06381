"""The messages of every puller to its coordinator, besides the changes that it sends.

A puller is an actor that sends `Changes` to one Writer in the source's order. It ends by failing (its
supervisor gets the error) or by being stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from ..events import Ts


class Connected(Struct, frozen=True):
    """The source is connected."""

    source: str
    """The source's identity, for `Checkpoint.source`."""
    description: str
    """Program, version and address, for people."""
    who: str = "source"
    """Which of several sources."""


class Retrying(Struct, frozen=True):
    """A failure that a retry may fix; changes sent before stay valid."""

    error: str
    seconds: float
    """Seconds until the next attempt."""
    who: str = "source"
    """Which of several sources."""


class StopRequested(Struct, frozen=True):
    """Somebody has asked the source to have the feed stopped cleanly."""


class SnapshotReport(Struct, frozen=True):
    table: str
    """Full name of the table being read; empty after the last one."""
    rows: int
    """Rows read, of all tables."""
    rows_estimated: int
    """Rows in all tables by the source's statistics, which may be off by some tens of percent."""
    tables_done: int
    tables: int
    estimates: Mapping[str, int] = {}
    """Rows by the full names of tables, by the source's statistics; it may change while it is read."""


SourceReport: TypeAlias = Connected | Retrying | StopRequested | SnapshotReport
"""Messages of a source to the coordinator."""

State: TypeAlias = Literal["connecting", "snapshot", "catching up", "following"]


class SourceHead(Struct, frozen=True):
    """End of a source, and how far it is read towards its end."""

    position: str = ""
    """The end as last seen; empty before that."""
    read_until: float | None = None
    """Source's time, in Unix seconds, up to which everything was received; None before anything was."""
    caught_up_at: float | None = None
    """The actor clock's now() when the source had nothing more; None before that."""
    clock_offset: float | None = None
    """Source's time, in Unix seconds, minus the actor clock's now(); None before it is known."""
    resolution_seconds: float = 0.0
    """Steps of the commit times."""


class PullerStatistics(Struct, frozen=True):
    """Counts since the start."""

    state: State
    position: str
    """Position after the last complete transaction that was sent; empty before the first."""
    bytes: int
    """Bytes of the log read."""
    events: int
    row_events: int
    transactions: int
    ingress_ts: Ts
    """Source time of the latest transaction read; 0 before the first."""
    resolved_ts: Ts
    """Everything at or below this ts was sent."""
    connected_at: float
    """The actor clock's now() when the current connection was opened; 0 without a connection."""
    retries: int
    head: SourceHead = SourceHead()
