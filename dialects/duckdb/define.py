"""Tables of DuckDB. Schema changes are part of the transaction."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from ...errors import InvariantViolated
from ...events import Ddl, Details, Table, TableName
from .changes import SchemaChanges
from .session import DuckDbSession
from .tables import Tables


class DuckDbDefiner:
    ddl_commits = False
    folds_names = True

    def __init__(self, session: DuckDbSession, identity: str, tables: Tables) -> None:
        self.identity = identity
        self._session = session
        self._tables = tables
        self._changes = SchemaChanges(session, tables)

    def name_of(self, schema: str, table: str) -> str:
        return ".".join(self._tables.place_of((schema, table)))

    def _place(self, table: Table) -> TableName:
        return self._tables.place_of((table.schema, table.name))

    def columns(self, table: Table) -> dict[str, str] | None:
        place = self._place(table)
        key = self._tables.key(place)
        return {
            one.name: one.type + (" key" if one.name in key else "") for one in self._tables.columns(place)
        } or None

    def wanted_columns(self, table: Table) -> dict[str, str]:
        return {
            column.name: self._tables.declared(column).type + (" key" if index in table.key else "")
            for index, column in enumerate(table.columns)
        }

    def is_empty(self, table: Table) -> bool:
        return not self._tables.has_row(self._place(table))

    def keeps_rows(self, table: Table) -> bool:  # noqa: ARG002
        return True

    def undo_creation(self) -> None:
        """Do nothing: a table is created in the transaction of the checkpoint."""

    def create_table(self, table: Table, details: Details | None = None, *, is_shared: bool = False) -> None:  # noqa: ARG002
        self._tables.create(table)

    def defining(self, schema: str, table: str) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()  # one process writes to the file

    def has_shared(self, ddl: Ddl) -> bool:  # noqa: ARG002
        return False  # feeds can't share the file

    def note_shared(self, ddl: Ddl) -> None:
        raise InvariantViolated(f"{ddl.full_name} is shared, and in a file of DuckDB: {ddl.query}")

    def drop_table(self, table: Table) -> None:
        self._session.change(f"DROP TABLE IF EXISTS {self._tables.qualified(self._place(table))}")

    def alter(self, ddl: Ddl) -> None:
        self._changes.apply(ddl)
