"""One Iceberg table: created, widened, and given files, each commit of a feed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import Final

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertTableUUID, TableUpdate
from pyiceberg.table.update.snapshot import ExpireSnapshots
from pyiceberg.typedef import Identifier, Record

from ....errors import Retryable, SinkError
from .columns import united
from .iceberg_catalog import create_namespace, explained
from .iceberg_expiry import expired, remove_files
from .iceberg_schema import iceberg_schema, order, partitions
from .layout import DataFile

_PROPERTIES: Final = {
    TableProperties.FORMAT_VERSION: "2",
    TableProperties.MANIFEST_MERGE_ENABLED: "true",
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: "10",
}
"""Properties of a new table, so that its metadata stays small. Users may change them."""
_EPOCH: Final = date(1970, 1, 1)


class Iceberg:
    """A LakeTable in a catalog.

    The number of the last commit is a property of the table, set in the same commit as its snapshot; so it
    outlives the snapshot.
    """

    def __init__(self, catalog: Catalog, identifier: Identifier, location: str, keep_snapshots: int) -> None:
        """`location` is the URL of the table's folder."""
        self._catalog: Final = catalog
        self._identifier: Final = identifier
        self._name: Final = ".".join(identifier)
        self._location: Final = location
        self._keep: Final = keep_snapshots
        self._attempted: set[int] = set()
        """Snapshots whose commits have had no answer."""

    def add(
        self, writer: str, number: int, made_ms: int, find_files: Callable[[], Iterable[DataFile]]
    ) -> int:
        with explained(self._name):
            table = self._latest()
            if table is not None and self._number(table, writer) >= number:
                return self._version(table)
            files = list(find_files())
            columns = united(self._name, "Iceberg", [file.schema for file in files])
            if table is None:
                table = self._created(writer, number, columns)
            return self._added(table, writer, number, made_ms, files, columns)

    def _latest(self) -> Table | None:
        """Return the table as it is now; None if there is none."""
        try:
            return self._catalog.load_table(self._identifier)
        except NoSuchTableError:
            return None

    def _number(self, table: Table, writer: str) -> int:
        number = table.properties.get(_key(writer))
        if number is None:
            raise SinkError(
                f"{self._name} is an Iceberg table that another program or feed made: remove it, or give "
                "another catalog or namespace"
            )
        return int(number)

    def _version(self, table: Table) -> int:
        snapshot = table.current_snapshot()
        if snapshot is None:
            raise SinkError(f"{self._name} has lost its snapshots: put back a copy of all that was here")
        return snapshot.snapshot_id

    def _created(self, writer: str, number: int, columns: pa.Schema) -> Table:
        create_namespace(self._catalog, self._identifier[0])
        schema = iceberg_schema(columns)
        properties = {**_PROPERTIES, _key(writer): str(number - 1)}
        try:
            return self._catalog.create_table(
                self._identifier, schema, self._location, partitions(schema), order(schema), properties
            )
        except TableAlreadyExistsError as error:
            raise self._raced() from error

    def _added(
        self,
        table: Table,
        writer: str,
        number: int,
        made_ms: int,
        files: list[DataFile],
        columns: pa.Schema,
    ) -> int:
        commit = _Once(table)
        have = schema_to_pyarrow(table.schema(), include_field_ids=False)
        wanted = united(self._name, "Iceberg", [have, columns])
        if not wanted.equals(have):
            with commit.update_schema() as update:
                update.union_by_name(iceberg_schema(wanted))
        if TableProperties.DEFAULT_NAME_MAPPING not in table.properties:  # files name columns, without ids
            mapping = commit.table_metadata.schema().name_mapping.model_dump_json()
            commit.set_properties({TableProperties.DEFAULT_NAME_MAPPING: mapping})
        commit.set_properties({_key(writer): str(number)})
        summary = {"tidemill.feed": writer, "tidemill.commit": str(number), "tidemill.time-ms": str(made_ms)}
        with commit.update_snapshot(snapshot_properties=summary).merge_append() as append:
            for file in files:
                append.append_data_file(_described(file, commit.table_metadata, self._location))
        old = expired(commit.table_metadata, self._keep)
        if old.snapshots:
            ExpireSnapshots(commit).by_ids(old.ids).commit()
        self._attempted.add(append.snapshot_id)
        try:
            commit.commit_transaction()
        except CommitFailedException as error:
            return self._settled(writer, number, error)
        self._attempted.clear()
        remove_files(table.io, old)
        return append.snapshot_id

    def _settled(self, writer: str, number: int, error: CommitFailedException) -> int:
        """Return the version if a commit of this object that had no answer is in the table."""
        table = self._latest()
        if table is not None:
            if any(one.snapshot_id in self._attempted for one in table.metadata.snapshots):
                return self._version(table)
            if self._number(table, writer) >= number:
                raise self._raced() from error
        raise Retryable(f"{self._name}: another program changed the table at this moment: {error}") from error

    def _raced(self) -> SinkError:
        return SinkError(f"{self._name}: another copy of the feed writes to it: stop one of them")


class _Once(Transaction):
    """A transaction that isn't tried again on another snapshot than the one it was made for."""

    _known: tuple[tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        """Return the metadata after the updates so far. To make it copies all of it, 55 ms with 100
        snapshots, and a commit reads it 19 times: so it is made once for each update."""
        if self._known is None or self._known[0] is not self._updates:
            self._known = self._updates, super().table_metadata
        return self._known[1]

    def commit_transaction(self) -> Table:
        asserted = (*self._requirements, AssertTableUUID(uuid=self._table.metadata.table_uuid))
        if isinstance(self._table.catalog, RestCatalog):  # its server removes old metadata
            self._table.catalog.commit_table(self._table, asserted, self._updates)
        else:
            self._table._do_commit(self._updates, asserted)
        return self._table


def _key(writer: str) -> str:
    """Return the table's property with the number of the writer's last commit."""
    return f"{writer.replace('/', '.')}.commit"


def _described(file: DataFile, metadata: TableMetadata, location: str) -> IcebergFile:
    schema = metadata.schema()
    statistics = data_file_statistics_from_parquet_metadata(
        file.metadata,
        compute_statistics_plan(schema, metadata.properties),
        parquet_path_to_id_mapping(schema),
    )
    return IcebergFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{location}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record((date.fromisoformat(file.date) - _EPOCH).days),
        file_size_in_bytes=file.size,
        sort_order_id=metadata.default_sort_order_id,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )
