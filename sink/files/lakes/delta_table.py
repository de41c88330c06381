"""One Delta table: created, widened, and given files, each commit of a feed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from ....errors import Retryable, SinkError
from .columns import DATE, united
from .layout import DataFile

_MADE: Final = "changes, written by tidemill"
"""Description of each table."""
_STATISTICS: Final = '{"numRecords": %d}'
"""Without least and greatest values: if only some columns have them, `to_pyarrow_dataset` of delta-rs 1.6
takes the others for empty, and a condition on them finds no row."""
_SETTINGS: Final = {"delta.dataSkippingNumIndexedCols": "0"}
"""Other programs that join files write none either."""


class Delta:
    """A LakeTable below a URL."""

    def __init__(self, name: str, url: str, storage: Mapping[str, str], *, is_remote: bool) -> None:
        """`name` is for errors. `storage` are options of the store, in the names of delta-rs. A local store
        always answers."""
        self._name = name
        self._url = url
        self._storage = dict(storage)
        self._is_remote = is_remote
        self._table: DeltaTable | None = None

    def add(
        self, writer: str, number: int, made_ms: int, find_files: Callable[[], Iterable[DataFile]]
    ) -> int:
        with self._explained():
            table = self._latest()
            if table is not None and self._number(table, writer) >= number:
                return int(table.version())
            files = list(find_files())
            fields = united(self._name, "Delta", [file.schema for file in files])
            table = self._created(writer, number, fields) if table is None else self._widened(table, fields)
            actions: list[AddAction | RemoveAction] = [
                AddAction(
                    path=file.path,
                    size=file.size,
                    partition_values={DATE: file.date},
                    modification_time=made_ms,
                    data_change=True,
                    stats=_STATISTICS % file.metadata.num_rows,
                )
                for file in files
            ]
            table.create_write_transaction(
                actions, "append", table.schema(), [DATE], commit_properties=_properties(writer, number)
            )
            table.update_incremental()
            return int(table.version())

    def _latest(self) -> DeltaTable | None:
        """Return the table as it is now; None if there is none."""
        if self._table is None:
            try:
                self._table = DeltaTable(self._url, storage_options=self._storage)
            except TableNotFoundError:
                return None
        else:
            self._table.update_incremental()
        return self._table

    def _number(self, table: DeltaTable, writer: str) -> int:
        """Return the number of the writer's last commit in the table; 0 if another writer of the folder made
        it."""
        number = table.transaction_version(writer)
        if number is not None:
            return int(number)
        if table.metadata().description != _MADE:
            raise SinkError(
                f"{self._name} is a Delta table that another program made: remove it, or give another prefix"
            )
        return 0

    def _created(self, writer: str, number: int, fields: pa.Schema) -> DeltaTable:
        self._table = DeltaTable.create(
            self._url,
            Schema.from_arrow(fields.append(pa.field(DATE, pa.date32()))),
            partition_by=[DATE],
            description=_MADE,
            configuration=_SETTINGS,
            storage_options=self._storage,
            commit_properties=_properties(writer, number - 1),
        )
        return self._table

    def _widened(self, table: DeltaTable, fields: pa.Schema) -> DeltaTable:
        """Add the columns that these files have and the table hasn't."""
        have = pa.schema(table.schema().to_arrow())
        wanted = united(self._name, "Delta", [have, fields])
        if wanted.equals(have):
            return table
        write_deltalake(
            table, wanted.empty_table(), mode="append", schema_mode="merge", partition_by=[DATE],
            storage_options=self._storage,
        )  # fmt: skip
        table.update_incremental()
        return table

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except CommitFailedError as error:
            self._table = None
            if "oncurrent" in str(error):
                raise SinkError(
                    f"{self._name}: another copy of the feed writes to it: stop one of them"
                ) from error
            raise self._error(error) from error
        except (DeltaError, OSError) as error:
            self._table = None
            raise self._error(error) from error

    def _error(self, error: Exception) -> Exception:
        if isinstance(error, OSError) and self._is_remote and "ermission" not in str(error):
            return Retryable(f"{self._name}: the store doesn't answer as it should: {error}")
        return SinkError(f"{self._name}: the Delta table can't be written: {error}")


def _properties(writer: str, number: int) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(writer, number)])
