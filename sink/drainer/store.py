"""A drainer's checkpoint as the checkpoint of a sink."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from ...actors import Clock
from ...errors import CheckpointError, ConfigError
from ...events import Checkpoint
from ...store.disk import replace
from .checkpoint import DrainerCheckpoint, Medium
from .content import DrainerState, from_toml, to_toml

KINDS = ("mysql", "tidb", "file")
MODE: Final = 0o644
"""Permissions of a checkpoint's file."""


class CheckpointToml:
    """A TOML file, replaced atomically."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.where = str(path)

    def load(self) -> DrainerState | None:
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{self.where} is not a checkpoint of a drainer: {error.reason}") from None
        return from_toml(text, self.where)

    def save(self, state: DrainerState) -> None:
        replace(self._path, to_toml(state).encode(), mode=MODE)

    def close(self) -> None:
        pass


def open_checkpoint(
    kind: str,
    location: str,
    clock: Clock,
    *,
    present_ts: Callable[[], int],
    initial_commit_ts: int = -1,
    cluster_id: int = 0,
) -> DrainerCheckpoint:
    """Return the checkpoint of a kind of KINDS, at a URL or a file's path; nothing is loaded yet.

    Raises ConfigError for another kind.
    """
    medium: Medium
    match kind:
        case "mysql" | "tidb":
            from .table import CheckpointTable

            medium = CheckpointTable(location, cluster_id)
        case "file":
            medium = CheckpointToml(Path(location))
        case _:
            raise ConfigError(f"unsupported checkpoint type {kind!r}; accepted: {', '.join(KINDS)}")
    return DrainerCheckpoint(medium, clock, initial_commit_ts=initial_commit_ts, present_ts=present_ts)


class DrainerStore:
    """A CheckpointStore. Its positions are commit timestamps, and it holds nothing else."""

    def __init__(self, checkpoint: DrainerCheckpoint, source: str) -> None:
        """`source` is the source's identity in the checkpoints that are loaded."""
        self._checkpoint = checkpoint
        self._source = source

    def load(self) -> tuple[Checkpoint, int] | None:
        """Return the stored or the initial checkpoint; None if both are 0."""
        self._checkpoint.load()
        ts = self._checkpoint.ts
        return (Checkpoint(ts, str(ts), None, self._source), 0) if ts else None

    def save(self, checkpoint: Checkpoint, length: int = 0) -> None:
        """Store the ts. Raises CheckpointError for a checkpoint that is more than a ts."""
        if checkpoint.loading is not None or checkpoint.tables or length:
            raise CheckpointError(
                "a drainer's checkpoint holds a commit ts only, no snapshot's progress, single tables or "
                "length of a file: use tidemill's own checkpoint for this sink"
            )
        self._checkpoint.save(checkpoint.ts)
