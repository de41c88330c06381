"""Upkeep of Iceberg tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot as IcebergVersion
from pyiceberg.table.update.snapshot import ExpireSnapshots

from .....errors import Retryable
from ...store import Store, in_parallel
from ..copies.iceberg_log import IcebergLog, IcebergSnapshot
from ..copies.log import Snapshot
from ..iceberg_catalog import explained
from ..iceberg_io import name_of
from ..iceberg_transaction import IcebergTransaction
from .table import ATTEMPTS, Growth

_METADATA: Final = "metadata"
_THREADS: Final = 8
"""Number of manifests that are read at once."""


class IcebergUpkeep:
    """A TableUpkeep of an Iceberg table."""

    has_checkpoints = False

    def __init__(self, store: Store, folder: str, log: IcebergLog) -> None:
        self.log: Final = log
        self._store: Final = store
        self._folder: Final = folder
        self._manifests: Final[dict[str, list[ManifestFile]]] = {}  # by the location of their list
        self._files: Final[dict[str, list[str]]] = {}  # by the location of their manifest

    def exists(self) -> bool:
        return self.log.latest().exists

    def growth(self, snapshot: Snapshot, cutoff_ms: int) -> Growth:
        table = _table(snapshot)
        size = sum(file.size for file in self._store.listed(f"{self._folder}/{_METADATA}"))
        present = table.current_snapshot()
        with explained(self.log.name):
            manifests = 0 if present is None else len(present.manifests(table.io))
        old = _old(table.metadata, cutoff_ms)
        return Growth(len(table.metadata.snapshots), len(old), size, manifests)

    def kept(self, snapshot: Snapshot, cutoff_ms: int) -> set[str]:
        table = _table(snapshot)
        prefix = f"{self._folder}/"
        with explained(self.log.name):
            names = {name_of(self._store, location) for location in self._locations(table, cutoff_ms)}
        return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}

    def is_log(self, path: str) -> bool:  # noqa: ARG002
        return False

    def expire(self, cutoff_ms: int) -> None:
        with explained(self.log.name):
            for _ in range(ATTEMPTS):
                table = _table(self.log.latest())
                old = [one.snapshot_id for one in _old(table.metadata, cutoff_ms)]
                if not old:
                    return
                commit = IcebergTransaction(table)
                ExpireSnapshots(commit).by_ids(old).commit()
                try:
                    commit.commit_transaction()
                except CommitFailedException:
                    continue  # a feed's commit came first
                return
        raise Retryable(f"{self.log.name}: other programs change the table all the time", 1.0)

    def shorten_log(self) -> None:
        pass

    def _locations(self, table: Table, cutoff_ms: int) -> Iterator[str]:
        """Yield the locations of all files that the present metadata and its kept snapshots need."""
        metadata = table.metadata
        yield table.metadata_location
        yield from (one.metadata_file for one in metadata.metadata_log)
        yield from (one.statistics_path for one in [*metadata.statistics, *metadata.partition_statistics])
        old = {one.snapshot_id for one in _old(metadata, cutoff_ms)}
        snapshots = [one for one in metadata.snapshots if one.snapshot_id not in old]
        yield from (one.manifest_list for one in snapshots)
        manifests = self._read_lists(table, snapshots)
        self._read_manifests(table, manifests)
        for manifest in manifests:
            yield manifest.manifest_path
            yield from self._files[manifest.manifest_path]

    def _read_lists(self, table: Table, snapshots: Sequence[IcebergVersion]) -> list[ManifestFile]:
        """Return the manifests of all snapshots, each once. Lists and manifests never change."""

        def read(snapshot: IcebergVersion) -> None:
            self._manifests[snapshot.manifest_list] = snapshot.manifests(table.io)

        in_parallel(_THREADS, read, [one for one in snapshots if one.manifest_list not in self._manifests])
        found = [manifest for one in snapshots for manifest in self._manifests[one.manifest_list]]
        return [*{one.manifest_path: one for one in found}.values()]

    def _read_manifests(self, table: Table, manifests: Sequence[ManifestFile]) -> None:
        def read(manifest: ManifestFile) -> None:
            entries = manifest.fetch_manifest_entry(table.io)
            self._files[manifest.manifest_path] = [entry.data_file.file_path for entry in entries]

        in_parallel(_THREADS, read, [one for one in manifests if one.manifest_path not in self._files])


def _table(snapshot: Snapshot) -> Table:
    assert isinstance(snapshot, IcebergSnapshot)
    assert snapshot.table is not None
    return snapshot.table


def _old(metadata: TableMetadata, cutoff_ms: int) -> list[IcebergVersion]:
    """Return the snapshots before a time that no branch and no tag names."""
    named = {ref.snapshot_id for ref in metadata.refs.values()}
    return [
        one for one in metadata.snapshots if one.timestamp_ms < cutoff_ms and one.snapshot_id not in named
    ]
