"""The protocol of databases for parallel workers, besides that of targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

from ..events import Ts
from .applied import Applied, AppliedStore
from .database import Database


class Advance(NamedTuple):
    """The checkpoint to store, if the stored one is of `previous_ts`."""

    previous_ts: Ts
    ts: Ts
    text: str


class Start(NamedTuple):
    """Records that a worker writes before its rows, in the same SQL transaction."""

    applied: Applied | None = None
    """Its transactions above the checkpoint."""
    forget: Sequence[Ts] = ()
    """Records by their first ts that the checkpoint covers."""
    advance: Advance | None = None


class WorkerDatabase(Database, Protocol):
    """A connection of one worker. Used by the worker's thread only, except for `interrupt`."""

    @property
    def store(self) -> AppliedStore:
        """The records of the feed."""

    def another(self) -> Self:
        """Return a database object for another connection to the same database, not connected."""

    def connect_worker(self) -> None:
        """Connect, where the tables of the feed exist already; locks are waited for a few seconds."""

    def begin_work(self, start: Start) -> bool:
        """Begin a SQL transaction with a savepoint, and write these records first.

        Return False if the stored checkpoint isn't the one to be advanced.
        """

    def rollback(self) -> None: ...

    def is_contention(self, error: Exception) -> bool:
        """Return True if the SQL transaction met another one: it can be tried again on this connection."""

    def interrupt(self) -> None:
        """Make a statement fail that another thread waits for. Doesn't raise."""
