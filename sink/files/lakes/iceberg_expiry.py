"""Removal of old snapshots of Iceberg tables, whose files the present one has too."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot, ancestors_of


class Expired(NamedTuple):
    """Snapshots that a commit removes, and what decides which of their files nothing else has."""

    snapshots: tuple[Snapshot, ...] = ()
    successor: Snapshot | None = None
    """The oldest snapshot that stays after them."""
    base_sequence: int = 0
    """Manifests up to this sequence number may belong to snapshots before them."""
    is_alone: bool = True
    """False if there are snapshots that aren't in the line of the present one."""

    @property
    def ids(self) -> list[int]:
        return [snapshot.snapshot_id for snapshot in self.snapshots]


def expired(metadata: TableMetadata, keep: int) -> Expired:
    """Return which snapshots to remove, so that `keep` are left.

    Only snapshots that added files are removed, and only after the last one of another kind: all their data
    files are in the present snapshot, so none of them needs to be found and removed. The rest belongs to the
    program that rewrote or removed data.
    """
    line = list(ancestors_of(metadata.current_snapshot(), metadata))
    added = list(takewhile(_only_adds, line))
    named = {ref.snapshot_id for ref in metadata.refs.values()}
    old = [snapshot for snapshot in added[keep:] if snapshot.snapshot_id not in named]
    if not old:
        return Expired()
    return Expired(
        tuple(old),
        added[keep - 1],
        (line[len(added)].sequence_number or 0) if len(line) > len(added) else 0,
        metadata.refs.keys() == {MAIN_BRANCH} and len(line) == len(metadata.snapshots),
    )


def remove_files(io: FileIO, expired: Expired) -> None:
    """Remove the lists of manifests of removed snapshots, and manifests that only they had. Raises as the
    Store does."""
    successor = expired.successor
    if successor is not None and expired.is_alone:
        kept = {manifest.manifest_path for manifest in successor.manifests(io)}
        for path in {one.manifest_path for one in _manifests(io, expired)} - kept:
            io.delete(path)
    for snapshot in expired.snapshots:
        io.delete(snapshot.manifest_list)


def _manifests(io: FileIO, expired: Expired) -> Iterable[ManifestFile]:
    for snapshot in expired.snapshots:
        for manifest in snapshot.manifests(io):
            if manifest.sequence_number > expired.base_sequence:
                yield manifest


def _only_adds(snapshot: Snapshot) -> bool:
    return snapshot.summary is not None and snapshot.summary.operation == Operation.APPEND
