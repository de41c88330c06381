"""One commit of an Iceberg table, which is tried once."""

from __future__ import annotations

from typing import Final

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetCurrentSchemaUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
)
from pyiceberg.table.update.snapshot import ExpireSnapshots

from ....errors import SinkError
from .copies.log import WRITERS
from .iceberg_expiry import Expired, expired

PROPERTIES: Final = {
    TableProperties.FORMAT_VERSION: "2",
    TableProperties.MANIFEST_MERGE_ENABLED: "true",
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: "10",
}
"""Properties of a new table, so that its metadata stays small. Users may change them."""


def commit_number(name: str, table: Table, writer: str, shared: str = "") -> int:
    """Return the number of the writer's last commit in a table, which is a property with the writer's name.

    It is 0 in a table at the location `shared` that another writer of the folder made. Raises SinkError if
    another program made the table.
    """
    number = table.properties.get(writer)
    if number is not None:
        return int(number)
    if table.location() == shared and any(one.startswith(WRITERS) for one in table.properties):
        return 0
    raise SinkError(
        f"{name} is an Iceberg table that another program or feed made: remove it, or give another "
        "catalog or namespace"
    )


def summary_of(writer: str, number: int, made_ms: int) -> dict[str, str]:
    """Return what the summary of a snapshot says about its commit."""
    return {"tidemill.feed": writer, "tidemill.commit": str(number), "tidemill.time-ms": str(made_ms)}


class IcebergTransaction(Transaction):
    """A transaction that isn't tried again on another snapshot than the one it was made for."""

    _known: tuple[tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        """Return the metadata after the updates so far. To make it copies all of it, 55 ms with 100
        snapshots, and a commit reads it 19 times: so it is made once for each update."""
        if self._known is None or self._known[0] is not self._updates:
            self._known = self._updates, super().table_metadata
        return self._known[1]

    def define(self, schema: Schema) -> None:
        """Give the table the columns of a schema, with their ids."""
        present = self.table_metadata.schema()
        if schema != present:
            number = 1 + max(one.schema_id for one in self.table_metadata.schemas)
            own = Schema(*schema.fields, schema_id=number, identifier_field_ids=schema.identifier_field_ids)
            self._stage(
                (AddSchemaUpdate(schema=own), SetCurrentSchemaUpdate.model_validate({"schema-id": -1})),
                (AssertCurrentSchemaId.model_validate({"current-schema-id": present.schema_id}),),
            )

    def add_snapshot(self, snapshot: Snapshot) -> None:
        """Make a snapshot the present one, if its parent still is."""
        parent = snapshot.parent_snapshot_id
        reference = {"ref-name": MAIN_BRANCH, "type": "branch", "snapshot-id": snapshot.snapshot_id}
        self._stage(
            (AddSnapshotUpdate(snapshot=snapshot), SetSnapshotRefUpdate.model_validate(reference)),
            (AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": parent}),),
        )

    def expire(self, keep: int) -> Expired:
        """Remove old snapshots, so that `keep` are left, and return them."""
        old = expired(self.table_metadata, keep)
        if old.snapshots:
            ExpireSnapshots(self).by_ids(old.ids).commit()
        return old

    def commit_transaction(self) -> Table:
        asserted = (*self._requirements, AssertTableUUID(uuid=self._table.metadata.table_uuid))
        if isinstance(self._table.catalog, RestCatalog):  # its server removes old metadata
            self._table.catalog.commit_table(self._table, asserted, self._updates)
        else:
            self._table._do_commit(self._updates, asserted)
        return self._table
