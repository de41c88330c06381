"""The log of one Iceberg table: its snapshots in a catalog, and commits that are made once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent, ManifestEntry
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.delete_file_index import DeleteFileIndex
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER_ID
from pyiceberg.typedef import Identifier
from pyroaring import BitMap64

from .....errors import SinkError
from .....events import Table as SourceTable
from .....failpoint import reach
from ...store import Store, in_parallel
from ..iceberg_catalog import create_table, explained, load_table
from ..iceberg_expiry import REWRITTEN, remove_files
from ..iceberg_file import data_file, moved, partition_values
from ..iceberg_io import location_of, name_of
from ..iceberg_transaction import IcebergTransaction, commit_number, summary_of
from .columns import keyless
from .files import CopyFiles
from .iceberg_columns import IcebergColumns
from .iceberg_manifests import FileChanges, Manifest, SnapshotWriter
from .log import TABLE, WRITERS, CopyCommit, CopyFile, Snapshot, defined
from .position_deletes import read_deletes, write_deletes

_THREADS: Final = 8
"""Number of delete files that are written at once."""


class Entry(NamedTuple):
    """A data file in a snapshot, and the files that delete rows of it."""

    data: DataFile
    deletes: frozenset[DataFile]


class IcebergSnapshot:
    """A Snapshot of a table in a catalog."""

    def __init__(
        self, name: str, store: Store, folder: str, table: Table | None, known: dict[str, Manifest]
    ) -> None:
        """`name` is for errors. `known` has the manifests that were read, by location."""
        self.table: Final = table
        self._name: Final = name
        self._store: Final = store
        self._folder: Final = folder
        self._known: Final = known
        self._manifests: list[Manifest] | None = None
        self._files: dict[str, CopyFile] | None = None

    @property
    def exists(self) -> bool:
        return self.table is not None

    @property
    def version(self) -> int:
        snapshot = None if self.table is None else self.table.current_snapshot()
        return -1 if snapshot is None else snapshot.snapshot_id

    @property
    def definition(self) -> SourceTable | None:
        return None if self.table is None else defined(self.table.properties)

    @property
    def columns(self) -> IcebergColumns:
        if self.table is None:
            return IcebergColumns(self._name, Schema(), 0)
        return IcebergColumns(self._name, self.table.schema(), self.table.metadata.last_column_id)

    @property
    def shape(self) -> object:
        return None if self.table is None else (self.table.schema(), self.table.spec())

    @property
    def column_names(self) -> list[str]:
        return [] if self.table is None else [field.name for field in self.table.schema().fields]

    @property
    def writers(self) -> dict[str, int]:
        properties = {} if self.table is None else self.table.properties
        return {name: int(number) for name, number in properties.items() if name.startswith(WRITERS)}

    @property
    def manifests(self) -> list[Manifest]:
        """Raises SinkError if there is one that isn't known here."""
        if self._manifests is None:
            self._manifests = list(self._read())
            self._known.clear()
            self._known.update({one.file.manifest_path: one for one in self._manifests})
        return self._manifests

    def _read(self) -> Iterator[Manifest]:
        table = self.table
        snapshot = None if table is None else table.current_snapshot()
        if table is None or snapshot is None:
            return
        self._check(table)
        for file in snapshot.manifests(table.io):
            if file.partition_spec_id:
                raise self._unknown("a partition")
            known = self._known.get(file.manifest_path)
            yield known or Manifest(file, file.fetch_manifest_entry(table.io))

    @property
    def deletes(self) -> set[DataFile]:
        """All files of deleted rows."""
        return {entry.data_file for entry in self._entries(ManifestContent.DELETES)}

    @property
    def files(self) -> Mapping[str, CopyFile]:
        if self._files is None:
            self._files = self._described()
        return self._files

    def _described(self) -> dict[str, CopyFile]:
        index = DeleteFileIndex()
        for entry in self._entries(ManifestContent.DELETES):
            if entry.data_file.content != DataFileContent.POSITION_DELETES:
                raise self._unknown("equality deletes")
            index.add_delete_file(entry)
        files = {}
        for entry in self._entries(ManifestContent.DATA):
            data = entry.data_file
            deletes = index.for_data_file(entry.sequence_number or 0, data)
            name = name_of(self._store, data.file_path)
            path = name.removeprefix(f"{self._folder}/")
            files[path] = CopyFile(
                path,
                name,
                data.file_size_in_bytes,
                data.record_count,
                entry=Entry(data, frozenset(deletes)),
                partition=self._partition(data),
                deleted=sum(one.record_count for one in deletes),
            )
        return files

    def _partition(self, data: DataFile) -> str:
        """Return a file's partition as Iceberg's readers show it."""
        assert self.table is not None
        spec, schema = self.table.spec(), self.table.schema()
        return "/".join(
            field.transform.to_human_string(schema.find_type(field.source_id), value)
            for field, value in zip(spec.fields, partition_values(data), strict=True)
        )

    def _entries(self, content: ManifestContent) -> Iterator[ManifestEntry]:
        for manifest in self.manifests:
            if manifest.file.content == content:
                yield from manifest.entries

    def _check(self, table: Table) -> None:
        if table.format_version != 2:
            raise self._unknown(f"format version {table.format_version}")
        if table.metadata.default_spec_id:
            raise self._unknown("a partition")

    def _unknown(self, what: str) -> SinkError:
        return SinkError(
            f"{self._name}: another program gave the table {what}, which copies can't have: undo that, or "
            "remove the table from its catalog and load it again"
        )


class IcebergLog:
    """A CopyLog of an Iceberg table.

    The number of the last commit is a property of the table with the writer's name, as in histories.
    """

    def __init__(
        self, catalog: Catalog, identifier: Identifier, store: Store, folder: str, keep_snapshots: int
    ) -> None:
        self.name: Final = ".".join(identifier)
        self._catalog: Final = catalog
        self._identifier: Final = identifier
        self._store: Final = store
        self._folder: Final = folder
        self._location: Final = f"{location_of(store)}/{folder}"
        self._keep: Final = keep_snapshots
        self._known: Final[dict[str, Manifest]] = {}

    def refusal(self, table: SourceTable) -> str:
        return keyless(table)

    def latest(self) -> IcebergSnapshot:
        with explained(self.name):
            return IcebergSnapshot(self.name, self._store, self._folder, self._loaded(), self._known)

    def _loaded(self) -> Table | None:
        return load_table(self._catalog, self._identifier)

    def number(self, snapshot: Snapshot, writer: str) -> int:
        assert isinstance(snapshot, IcebergSnapshot)
        assert snapshot.table is not None
        return commit_number(self.name, snapshot.table, writer)

    def vector(self, file: CopyFile) -> BitMap64:
        entry: Entry = file.entry
        return read_deletes(self._store, entry.deletes, entry.data.file_path)

    def add(self, base: Snapshot, commit: CopyCommit) -> int | None:
        assert isinstance(base, IcebergSnapshot)
        assert isinstance(commit.columns, IcebergColumns)
        with explained(self.name):
            table = base.table or self._created(commit, commit.columns.schema)
            transaction = IcebergTransaction(table)
            transaction.define(commit.columns.schema)
            self._set_properties(transaction, commit)
            summary = summary_of(commit.writer, commit.number, commit.made_ms)
            return self._commit(table, transaction, base, commit.files, None, summary)

    def rewrite(self, base: Snapshot, files: CopyFiles, made_ms: int) -> int | None:
        assert isinstance(base, IcebergSnapshot)
        assert base.table is not None
        with explained(self.name):
            summary = {REWRITTEN: str(made_ms)}
            transaction = IcebergTransaction(base.table)
            return self._commit(base.table, transaction, base, files, Operation.REPLACE, summary)

    def _commit(
        self,
        table: Table,
        transaction: IcebergTransaction,
        base: IcebergSnapshot,
        files: CopyFiles,
        operation: Operation | None,
        summary: Mapping[str, str],
    ) -> int | None:
        changes = [self._rows(files, transaction.table_metadata), self._deletes(base, files)]
        writer = SnapshotWriter(table, transaction.table_metadata)
        snapshot = writer.write(base.manifests, changes, summary, operation)
        transaction.add_snapshot(snapshot)
        old = transaction.expire(self._keep)
        reach("copy.committing")
        try:
            transaction.commit_transaction()
        except CommitFailedException:
            if not self._has(snapshot.snapshot_id):
                for location in (*writer.written, *[file.file_path for file in changes[-1].added]):
                    table.io.delete(location)
                return None
        remove_files(table.io, old)
        return snapshot.snapshot_id

    def _has(self, snapshot_id: int) -> bool:
        """Return True if the table has a snapshot, though the catalog says no."""
        table = self._loaded()
        return table is not None and table.metadata.snapshot_by_id(snapshot_id) is not None

    def _created(self, commit: CopyCommit, schema: Schema) -> Table:
        return create_table(
            self._catalog, self._identifier, schema, self._location, commit.writer, commit.number
        )

    def _set_properties(self, transaction: IcebergTransaction, commit: CopyCommit) -> None:
        properties = {commit.writer: str(commit.number)}
        if commit.table is not None:
            properties[TABLE] = msgspec.json.encode(commit.table).decode()
        elif TABLE in transaction.table_metadata.properties:
            transaction.remove_properties(TABLE)
        transaction.set_properties(properties)

    def _rows(self, files: CopyFiles, metadata: TableMetadata) -> FileChanges:
        added = []
        for file in files.added:
            location = f"{self._location}/{file.path}"
            if file.metadata is None:
                added.append(moved(file.entry.data, location))
            elif file.like is None:
                added.append(data_file(location, file.size, file.metadata, metadata))
            else:
                like: DataFile = file.like.data
                order = like.sort_order_id or UNSORTED_SORT_ORDER_ID
                added.append(
                    data_file(location, file.size, file.metadata, metadata, partition_values(like), order)
                )
        return FileChanges(ManifestContent.DATA, added, [file.entry.data for file in files.removed])

    def _deletes(self, base: IcebergSnapshot, files: CopyFiles) -> FileChanges:
        """Write the deleted rows of each file that gets other ones."""
        own = {path: file.entry.deletes for path, file in base.files.items()}
        removed = base.deletes.difference(*own.values())  # of files that others removed
        touched = [path for path in own if path in files.changed or path not in files]
        while touched:
            removed.update(*[own[path] for path in touched])
            # A file of others can have deleted rows of several files: each gets a file of its own.
            touched = [
                path
                for path, deletes in own.items()
                if path in files and path not in files.changed and deletes & removed
            ]
            for path in touched:
                files.delete(path, ())
        added: list[DataFile] = []

        def write(path: str) -> None:
            entry: Entry | None = files[path].entry if path in base.files else None
            location = f"{self._location}/{path}" if entry is None else entry.data.file_path
            like: Entry | None = entry or files[path].like
            partition = None if like is None else like.data.partition
            added.append(write_deletes(self._store, self._folder, location, files.changed[path], partition))

        in_parallel(_THREADS, write, list(files.changed))
        return FileChanges(ManifestContent.DELETES, added, removed)
