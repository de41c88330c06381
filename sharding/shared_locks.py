"""The locks of merged tables in a store that several feeds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from ..errors import CheckpointError, Retryable
from ..events import TableName
from .shared_lock import SharedLock


class Revisions(Protocol):
    """One connection to a store. Any thread; every method raises Retryable if the store can't be reached."""

    def get(self, key: str) -> tuple[bytes, int] | None:
        """Return value and revision; None if there is none, or its time has passed."""

    def list(self, prefix: str) -> Mapping[str, tuple[bytes, int]]:
        """Return all records whose key begins with `prefix`."""

    def put(self, key: str, value: bytes, revision: int, ttl_seconds: int = 0) -> int | None:
        """Write the value and return its revision, if the present one is `revision` (0: there is none).

        Return None, writing nothing, if it isn't. With `ttl_seconds` the record is gone after that time.
        """

    def delete(self, key: str, revision: int) -> bool:
        """Remove the record if its revision is `revision`; return True if it is removed."""

    def close(self) -> None:
        """Release the connection. Doesn't raise."""


_LOCKS = "lock/"
_ATTEMPTS = 100
"""Writes in a row that other feeds may be faster with."""


class SharedLocks:
    """Reads and changes locks by compare-and-set. Used by one thread at a time."""

    def __init__(
        self,
        revisions: Revisions,
        feed: str,
        time: Callable[[], float] = float,
        running: Callable[[], frozenset[str]] = frozenset,
        find_running: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """`time` is in Unix seconds. `running` returns the feeds that ran a few seconds ago, and
        `find_running` those that run now, from the store."""
        self.feed = feed
        self.time = time
        self.running = running
        self.find_running = find_running
        self._revisions = revisions

    def read(self) -> dict[str, SharedLock]:
        """Return all locks by the merged table's full name. Raises as `change`."""
        entries = self._revisions.list(_LOCKS)
        return {key.removeprefix(_LOCKS): _decoded(key, value) for key, (value, _) in entries.items()}

    def change(self, target: TableName, transition: Callable[[SharedLock | None], SharedLock]) -> SharedLock:
        """Replace a lock by what `transition` makes of it, and return that.

        Raises Retryable, and CheckpointError if the lock is damaged.
        """
        for _ in range(_ATTEMPTS):
            before, revision = self._get(target)
            after = transition(before)
            if after == before:
                return after
            if self._revisions.put(_key(target), msgspec.json.encode(after), revision) is not None:
                return after
        raise Retryable(f"lock of {'.'.join(target)}: other feeds change it all the time")

    def _get(self, target: TableName) -> tuple[SharedLock | None, int]:
        entry = self._revisions.get(_key(target))
        return (None, 0) if entry is None else (_decoded(_key(target), entry[0]), entry[1])


def _key(target: TableName) -> str:
    return f"{_LOCKS}{'.'.join(target)}"


def _decoded(key: str, value: bytes) -> SharedLock:
    try:
        return msgspec.json.decode(value, type=SharedLock)
    except msgspec.DecodeError as error:
        raise CheckpointError(f"the record {key} of merged tables is damaged: {error}") from error
