"""Manifests of a copy's snapshots: which files are added and removed by a commit, rows and deleted rows.

https://iceberg.apache.org/spec/#manifests
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import uuid4

from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import (
    Operation,
    Snapshot,
    SnapshotSummaryCollector,
    Summary,
    update_snapshot_summaries,
)
from pyiceberg.utils.properties import property_as_int

_CODEC: Final = "deflate"


class Manifest(NamedTuple):
    """A manifest of a snapshot, and its files that aren't removed."""

    file: ManifestFile
    entries: Sequence[ManifestEntry]


class FileChanges(NamedTuple):
    """The files of rows, or of deleted rows, that a commit adds and removes."""

    content: ManifestContent
    added: Sequence[DataFile]
    removed: Collection[DataFile]


class SnapshotWriter:
    """Writes the files of one snapshot's metadata. Raises as the Store does."""

    def __init__(self, table: Table, metadata: TableMetadata) -> None:
        """`metadata` has the columns after the commit."""
        self.written: Final[list[str]] = []
        """Locations of the files."""
        self._io: Final[FileIO] = table.io
        self._folder: Final = table.location_provider()
        self._metadata: Final = metadata
        self._id: Final = metadata.new_snapshot_id()

    def write(
        self,
        present: Sequence[Manifest],
        changes: Sequence[FileChanges],
        summary: Mapping[str, str],
        operation: Operation | None = None,
    ) -> Snapshot:
        """Return a snapshot that follows the one with the present manifests; without an operation that of the
        changes."""
        parent, sequence = self._metadata.current_snapshot(), self._metadata.next_sequence_number()
        parent_id = None if parent is None else parent.snapshot_id
        manifests = [file for one in changes for file in self._manifests(present, one)]
        location = self._location(f"snap-{self._id}-0-{uuid4()}.avro")
        with write_manifest_list(
            2, self._io.new_output(location), self._id, parent_id, sequence, _CODEC
        ) as writer:
            writer.add_manifests(manifests)
        return Snapshot.model_validate(
            {
                "snapshot-id": self._id,
                "parent-snapshot-id": parent_id,
                "manifest-list": location,
                "sequence-number": sequence,
                "summary": self._summary(parent, changes, summary, operation),
                "schema-id": self._metadata.current_schema_id,
            }
        )

    def _manifests(self, present: Sequence[Manifest], changes: FileChanges) -> list[ManifestFile]:
        """Return the manifests of one content: those without a removed file stay as they are."""
        own = [one for one in present if one.file.content == changes.content and one.entries]
        removed = {file.file_path for file in changes.removed}
        left = [one for one in own if not any(entry.data_file.file_path in removed for entry in one.entries)]
        if len(left) >= self._property(
            TableProperties.MANIFEST_MIN_MERGE_COUNT, TableProperties.MANIFEST_MIN_MERGE_COUNT_DEFAULT
        ):
            size = self._property(
                TableProperties.MANIFEST_TARGET_SIZE_BYTES, TableProperties.MANIFEST_TARGET_SIZE_BYTES_DEFAULT
            )
            left = [one for one in left if one.file.manifest_length >= size]
        again = [entry for one in own if one not in left for entry in one.entries]
        files = [one.file for one in left]
        if not again and not changes.added:
            return files
        output = self._io.new_output(self._location(f"{uuid4()}-m0.avro"))
        kind = ManifestWriterV2 if changes.content == ManifestContent.DATA else _DeletesWriter
        schema = self._metadata.schema()
        with kind(self._metadata.spec(), schema, output, self._id, _CODEC) as writer:
            for file in changes.added:
                writer.add(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, data_file=file))
            for entry in again:
                (writer.delete if entry.data_file.file_path in removed else writer.existing)(entry)
        return [writer.to_manifest_file(), *files]

    def _property(self, name: str, default: int) -> int:
        return property_as_int(self._metadata.properties, name, default) or default

    def _location(self, name: str) -> str:
        location = self._folder.new_metadata_location(name)
        self.written.append(location)
        return location

    def _summary(
        self,
        parent: Snapshot | None,
        changes: Sequence[FileChanges],
        summary: Mapping[str, str],
        operation: Operation | None,
    ) -> Summary:
        collector = SnapshotSummaryCollector()
        schema = self._metadata.schema()
        for one in changes:
            for file in one.added:
                collector.add_file(file, schema, self._metadata.spec())
            for file in one.removed:
                collector.remove_file(file, schema, self._metadata.spec())
        only_adds = not any(one.removed for one in changes) and not changes[-1].added
        done = Operation.APPEND if only_adds else Operation.OVERWRITE
        own = Summary(done, **collector.build(), **summary)
        totals = update_snapshot_summaries(own, None if parent is None else parent.summary)
        # pyiceberg counts the totals of a replacement as of an overwrite, and refuses its name.
        return totals if operation is None else Summary(operation, **totals.additional_properties)


class _DeletesWriter(ManifestWriterV2):
    """Writes manifests of deleted rows, as pyiceberg has no writer for them."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}
