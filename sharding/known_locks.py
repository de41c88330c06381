"""The locks of a feed's merged tables, as they were last seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..events import TableName
from . import shared_lock
from .merged_table import MergedTable
from .shared_lock import LockChange, SharedLock
from .shared_locks import SharedLocks

LOOK_SECONDS: Final = 0.4
"""Minimum pause between looks at a lock without news of this feed."""


class KnownLocks:
    """One lock for each merged table that the feed has joined. Read by any thread, changed by one."""

    def __init__(self, locks: SharedLocks, now: Callable[[], float]) -> None:
        self._locks = locks
        self._now = now
        self._known: dict[TableName, SharedLock] = {}
        self._looked = float("-inf")

    def get(self, target: TableName) -> SharedLock | None:
        return self._known.get(target)

    def __getitem__(self, target: TableName) -> SharedLock:
        return self._known[target]

    def next_change(self, merged: MergedTable) -> LockChange | None:
        """Return the first change that the merged table doesn't have; None if nobody reported it."""
        lock = self._known.get(merged.target)
        return None if lock is None else lock.change(merged.number + 1)

    def change(self, merged: MergedTable, transition: Callable[[SharedLock], SharedLock]) -> SharedLock:
        """Change the lock of a table, also where somebody removed it meanwhile."""
        feed, number, table = self._locks.feed, merged.number, merged.table
        return self.join(
            merged.target, lambda lock: transition(lock or shared_lock.rejoin(None, feed, number, table))
        )

    def join(self, target: TableName, transition: Callable[[SharedLock | None], SharedLock]) -> SharedLock:
        """Change a lock, which there may not be yet."""
        lock = self._locks.change(target, transition)
        self._known = {**self._known, target: lock}
        return lock

    def read(self) -> None:
        """Read all locks, unless that was done a moment ago."""
        now = self._now()
        if now - self._looked >= LOOK_SECONDS:
            locks = self._locks.read()
            self._known = {target: locks.get(".".join(target), lock) for target, lock in self._known.items()}
            self._looked = now
