"""The protocol of a table's upkeep: what the lake's format decides."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from ..copies.log import CopyLog, Snapshot

ATTEMPTS: Final = 10
"""Number of commits of others before which a commit of upkeep may be too late."""


class Growth(NamedTuple):
    """Files and commits that have accumulated around a table's rows."""

    versions: int
    """Versions that can be read: commits of a Delta log, or snapshots."""
    old_versions: int
    """Of these, snapshots that no longer have to be kept; in Delta they end with their files."""
    log_bytes: int
    """Bytes of the log, or of the metadata."""
    replayed: int
    """Files of it that a reader opens first: commits since the last checkpoint, or manifests."""


class TableUpkeep(Protocol):
    """One table of a lake. Raises as Store does, and SinkError if the table can't be used."""

    @property
    def log(self) -> CopyLog: ...

    @property
    def has_checkpoints(self) -> bool:
        """True if `shorten_log` writes a checkpoint."""
        ...

    def exists(self) -> bool:
        """Return True if the folder has a table, whether or not it can be read here."""
        ...

    def growth(self, snapshot: Snapshot, cutoff_ms: int) -> Growth:
        """Count. Versions before `cutoff_ms`, in Unix milliseconds, need not be kept."""
        ...

    def kept(self, snapshot: Snapshot, cutoff_ms: int) -> set[str]:
        """Return the paths in the table's folder of all files that the kept versions need; without those that
        `is_log` says are the log's."""
        ...

    def is_log(self, path: str) -> bool:
        """Return True for a file of the folder that only the log's own commands remove."""
        ...

    def expire(self, cutoff_ms: int) -> None:
        """Forget the old versions. Raises Retryable if others change the table all the time."""
        ...

    def shorten_log(self) -> None:
        """Write a checkpoint of the log, and remove what expired of it; nothing without checkpoints."""
        ...
