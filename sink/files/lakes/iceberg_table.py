"""One Iceberg table: created, widened, and given files, each commit of a feed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from threading import Lock
from typing import Final

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import pyarrow_to_schema, schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier

from ....errors import Retryable, SinkError
from .columns import united
from .iceberg_catalog import create_table, explained, load_table, raced
from .iceberg_expiry import remove_files
from .iceberg_file import data_file
from .iceberg_schema import is_fresh, merged, numbered, order, partitions, planned
from .iceberg_transaction import IcebergTransaction, commit_number, summary_of
from .layout import DataFile

_EPOCH: Final = date(1970, 1, 1)


class Iceberg:
    """A LakeTable in a catalog.

    The number of the last commit is a property of the table with the writer's name, set in the same commit as
    its snapshot; so it outlives the snapshot.
    """

    def __init__(self, catalog: Catalog, identifier: Identifier, location: str, keep_snapshots: int) -> None:
        """`location` is the URL of the table's folder."""
        self._catalog: Final = catalog
        self._identifier: Final = identifier
        self._name: Final = ".".join(identifier)
        self._location: Final = location
        self._keep: Final = keep_snapshots
        self._attempted: dict[int, int] = {}
        """Numbers of commits that have had no answer, by snapshot."""
        self._lock: Final = Lock()
        self._planned: Schema | None = None
        """Columns of the table and of files that aren't in it yet."""
        self._last_id = 0

    def numbered(self, columns: pa.Schema) -> pa.Schema:
        """Return the columns of a new file with their ids in the table. Any thread; raises as `add`.

        Files need the ids before their columns are in the table, so that readers find them. The commit that
        adds the files adds the columns with these ids.
        """
        with self._lock, explained(self._name):
            if self._planned is None and (table := self._latest()) is not None:
                self._planned, self._last_id = table.schema(), table.metadata.last_column_id
            self._planned = planned(self._planned, self._last_id, columns)
            self._last_id = max(self._last_id, self._planned.highest_field_id)
            return numbered(columns, self._planned)

    def forget(self) -> None:
        """Forget the columns of files that aren't in the table."""
        self._planned = None

    def add(
        self, writer: str, number: int, made_ms: int, find_files: Callable[[], Iterable[DataFile]]
    ) -> int:
        with explained(self._name):
            table = self._latest()
            if table is not None and self._number(table, writer) >= number:
                return self._version(table)
            files = list(find_files())
            schemas = [pyarrow_to_schema(file.schema) for file in files]
            if table is None:
                table = self._created(writer, number, schemas)
            return self._added(table, writer, number, made_ms, files, schemas)

    def _number(self, table: Table, writer: str) -> int:
        return commit_number(self._name, table, writer, self._location)

    def _latest(self) -> Table | None:
        return load_table(self._catalog, self._identifier)

    def _version(self, table: Table) -> int:
        snapshot = table.current_snapshot()
        if snapshot is None:
            raise SinkError(f"{self._name} has lost its snapshots: put back a copy of all that was here")
        return snapshot.snapshot_id

    def _created(self, writer: str, number: int, schemas: list[Schema]) -> Table:
        """Make the table with the columns of the file whose ids were planned first."""
        schema = next(filter(is_fresh, schemas), None)
        if schema is None:
            raise SinkError(
                f"{self._name} was removed while the feed wrote its files: put it back, or give the feed "
                "another prefix, where it loads all tables"
            )
        return create_table(
            self._catalog,
            self._identifier,
            schema,
            self._location,
            writer,
            number,
            partitions(schema),
            order(schema),
        )

    def _added(
        self,
        table: Table,
        writer: str,
        number: int,
        made_ms: int,
        files: list[DataFile],
        schemas: list[Schema],
    ) -> int:
        have = schema_to_pyarrow(table.schema(), include_field_ids=False)
        united(self._name, "Iceberg", [have, *[file.schema for file in files]])
        commit = IcebergTransaction(table)
        commit.define(merged(self._name, table.schema(), schemas))
        commit.set_properties({writer: str(number)})
        summary = summary_of(writer, number, made_ms)
        with commit.update_snapshot(snapshot_properties=summary).merge_append() as append:
            for file in files:
                day = (date.fromisoformat(file.date) - _EPOCH).days
                metadata = commit.table_metadata
                append.append_data_file(
                    data_file(
                        f"{self._location}/{file.path}",
                        file.size,
                        file.metadata,
                        metadata,
                        [day],
                        metadata.default_sort_order_id,
                    )
                )
        old = commit.expire(self._keep)
        self._attempted[append.snapshot_id] = number
        try:
            commit.commit_transaction()
        except CommitFailedException as error:
            return self._settled(writer, number, error)
        self._attempted.clear()
        self.forget()
        remove_files(table.io, old)
        return append.snapshot_id

    def _settled(self, writer: str, number: int, error: CommitFailedException) -> int:
        """Return the version if a commit of this object that had no answer is in the table."""
        table = self._latest()
        if table is not None and self._number(table, writer) >= number:
            if any(self._attempted.get(one.snapshot_id) == number for one in table.metadata.snapshots):
                return self._version(table)
            raise raced(self._identifier) from error
        raise Retryable(f"{self._name}: another program changed the table at this moment: {error}") from error
