"""Removal of old snapshots of Iceberg tables, and of files that no later one has."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Final, NamedTuple

from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntryStatus, ManifestFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot, ancestors_of

from ..store import in_parallel

REWRITTEN: Final = "tidemill.rewritten-ms"
"""Key of a snapshot's summary: its files were joined here, at a time in Unix milliseconds."""
_THREADS: Final = 8
"""Number of files that are removed at once."""


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

    Only a feed's snapshots and those that added files are removed, and only after the last one of another
    kind: that one, and those before it, belong to the program that rewrote or removed data.
    """
    line = list(ancestors_of(metadata.current_snapshot(), metadata))
    added = list(takewhile(_is_known, line))
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
    """Remove the lists of manifests of removed snapshots, and what only they had: manifests, and files that
    the snapshot after them removed. Raises as the Store does."""
    successor = expired.successor
    if successor is not None and expired.is_alone:
        kept = {manifest.manifest_path for manifest in successor.manifests(io)}
        manifests = {one.manifest_path for one in _manifests(io, expired)} - kept
        in_parallel(_THREADS, io.delete, [*_files(io, expired, successor), *manifests])
    for snapshot in expired.snapshots:
        io.delete(snapshot.manifest_list)


def _manifests(io: FileIO, expired: Expired) -> Iterable[ManifestFile]:
    for snapshot in expired.snapshots:
        for manifest in snapshot.manifests(io):
            if manifest.sequence_number > expired.base_sequence:
                yield manifest


def _files(io: FileIO, expired: Expired, successor: Snapshot) -> Iterable[str]:
    """Yield the files that a removed snapshot had and the one after it hasn't."""
    for snapshot in (successor, *expired.snapshots[:-1]):
        for manifest in snapshot.manifests(io):
            if manifest.added_snapshot_id == snapshot.snapshot_id and manifest.deleted_files_count:
                for entry in manifest.fetch_manifest_entry(io, discard_deleted=False):
                    sequence = entry.file_sequence_number or 0
                    if entry.status == ManifestEntryStatus.DELETED and sequence > expired.base_sequence:
                        yield entry.data_file.file_path


def _is_known(snapshot: Snapshot) -> bool:
    summary = snapshot.summary
    return summary is not None and (
        summary.operation == Operation.APPEND
        or summary["tidemill.commit"] is not None
        or summary[REWRITTEN] is not None
    )
