"""What every puller tells its coordinator about itself, besides the changes that it sends on.

A puller is an actor that sends `Changes` to one Writer, in the source's order. It ends by failing
(its supervisor gets the error) or by being stopped.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ..events import Ts


class Connected(Struct, frozen=True):
    """The source answers."""

    source: str
    """Its identity: what belongs into `Checkpoint.source`."""
    description: str
    """For people: program, version, address."""


class Retrying(Struct, frozen=True):
    """Something failed that may succeed later; what was sent so far stays valid."""

    error: str
    seconds: float
    """Until the next attempt."""


class SnapshotReport(Struct, frozen=True):
    table: str
    """Full name of the table being read; empty once all are."""
    rows: int
    """Read so far, of all tables."""
    rows_estimated: int
    """In all tables, by the source's own statistics: may be off by some tens of percent."""
    tables_done: int
    tables: int


State: TypeAlias = Literal["connecting", "snapshot", "catching up", "following"]


class PullerStatistics(Struct, frozen=True):
    """Counts since the start; the answer to `Statistics()`."""

    state: State
    position: str
    """After the last complete transaction that was sent on; empty before the first."""
    bytes: int
    """Read of the log."""
    events: int
    row_events: int
    transactions: int
    ingress_ts: Ts
    """The source's time of the latest transaction that was read; 0 before the first."""
    resolved_ts: Ts
    """Everything at or below was sent on."""
    connected_at: float
    """The actor clock's now() when the present connection was made; 0 while there is none."""
    retries: int


class Statistics(Struct, frozen=True):
    """Ask a puller for its PullerStatistics."""
