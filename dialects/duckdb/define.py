"""Tables of DuckDB. Schema changes are part of the transaction."""

from __future__ import annotations

from ...events import Column, Ddl, Details, Table, TableName
from ..definer import TransactionalDefiner
from ..own_tables import OwnTables
from .changes import SchemaChanges
from .session import DuckDbSession
from .tables import Tables


class DuckDbDefiner(TransactionalDefiner):
    folds_names = True

    def __init__(self, session: DuckDbSession, identity: str, tables: Tables, own_tables: OwnTables) -> None:
        super().__init__(identity, own_tables)
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

    def _type(self, column: Column) -> str:
        return self._tables.declared(column).type

    def is_empty(self, table: Table) -> bool:
        return not self._tables.has_row(self._place(table))

    def create_table(self, table: Table, details: Details | None = None, *, is_shared: bool = False) -> None:  # noqa: ARG002
        self._tables.create(table)

    def drop_table(self, table: Table) -> None:
        self._session.change(f"DROP TABLE IF EXISTS {self._tables.qualified(self._place(table))}")

    def _apply(self, ddl: Ddl) -> None:
        self._changes.apply(ddl)
