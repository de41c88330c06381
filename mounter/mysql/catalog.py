"""The databases and followed tables of a server, as of the latest mounted statement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from ...codec.mysql.collation import Charset
from ...codec.mysql.known_table import KnownTable
from ...events import Table, TableName

State: TypeAlias = Literal["unknown", "loading", "complete"]
"""How much a table's absence from the catalog says: nothing; that it doesn't exist, or isn't loaded yet; or
that it doesn't exist."""


class TableChange(Struct, frozen=True):
    """The state of a table after a statement."""

    schema: str
    table: str
    known: KnownTable | None = None
    exists: bool = True
    """False if it was dropped; True without `known` if it exists and its definition isn't known."""


class CatalogChange(Struct, frozen=True):
    """Changes of the catalog by the statements of one or several transactions."""

    tables: tuple[TableChange, ...] = ()
    databases: tuple[tuple[str, Charset | None], ...] = ()
    """None for a dropped one."""
    collations: dict[str, str] | None = None
    """Default collations by character set, if they were read."""
    folds_names: bool | None = None
    """Catalog.folds_names, if it was read."""
    state: State | None = None
    """The state from now on, if it changed."""


class Catalog:
    """Tables by name, with the effects of every statement in order."""

    def __init__(self) -> None:
        self.state: State = "unknown"
        self.collations: dict[str, str] = {}
        """Default collations by character set; empty if they aren't known."""
        self.folds_names = False
        """True if the server stores names of tables in lower case."""
        self.databases: dict[str, Charset] = {}
        self._tables: dict[TableName, KnownTable | None] = {}
        self._changed_tables: list[TableChange] = []
        self._changed_databases: list[tuple[str, Charset | None]] = []
        self._read_collations: dict[str, str] | None = None
        self._changed_state: State | None = None

    def get(self, name: TableName) -> KnownTable | None:
        """Return a table's definition; None if it isn't known."""
        return self._tables.get(name)

    def tables(self) -> list[Table]:
        """Return all known definitions."""
        return [known.table for known in self.known()]

    def known(self) -> list[KnownTable]:
        """Return what is known of all tables whose definition is known."""
        return [known for known in self._tables.values() if known is not None]

    def names(self) -> list[TableName]:
        """Return the names of all tables that are known to exist."""
        return [*self._tables]

    def in_schema(self, schema: str) -> list[TableName]:
        return [name for name in self._tables if name[0] == schema]

    def exists(self, name: TableName) -> bool:
        """Return True if the table is known to exist."""
        return name in self._tables

    def is_absent(self, name: TableName) -> bool:
        """Return True if the table is known not to exist."""
        return self.state == "complete" and name not in self._tables

    def put(self, known: KnownTable) -> None:
        self._change(TableChange(known.table.schema, known.table.name, known))

    def forget(self, name: TableName) -> None:
        """Note that the table exists, and that its definition isn't known."""
        self._change(TableChange(*name))

    def remove(self, name: TableName) -> None:
        if name in self._tables:
            self._change(TableChange(*name, exists=False))

    def set_database(self, name: str, charset: Charset | None) -> None:
        """Set the default character set of a database; None if it was dropped, or if it isn't known."""
        self._changed_databases.append((name, charset))
        self._set_database(name, charset)

    def learn(
        self,
        databases: Iterable[tuple[str, Charset]],
        collations: dict[str, str],
        *,
        folds_names: bool = False,
        loading: bool = False,
    ) -> None:
        """Note the server's databases and defaults. Then every table is put into the catalog:
        before `end_loading` if the tables are `loading`, else before the next statement."""
        for name, charset in databases:
            self.set_database(name, charset)
        self.collations = self._read_collations = collations
        self.folds_names = folds_names
        self.state = self._changed_state = "loading" if loading else "complete"

    def end_loading(self) -> None:
        """Note that all tables are loaded."""
        if self.state == "loading":
            self.state = self._changed_state = "complete"

    def take_change(self) -> CatalogChange | None:
        """Return all changes since the last call; None if there are none."""
        if not (self._changed_tables or self._changed_databases or self._changed_state):
            return None
        change = CatalogChange(
            tuple(self._changed_tables),
            tuple(self._changed_databases),
            self._read_collations,
            None if self._read_collations is None else self.folds_names,
            self._changed_state,
        )
        self._changed_tables, self._changed_databases = [], []
        self._read_collations = self._changed_state = None
        return change

    def apply(self, change: CatalogChange) -> None:
        """Apply a change that another catalog returned."""
        for table in change.tables:
            self._set_table(table)
        for name, charset in change.databases:
            self._set_database(name, charset)
        if change.collations is not None:
            self.collations = change.collations
        if change.folds_names is not None:
            self.folds_names = change.folds_names
        self.state = change.state or self.state

    def whole(self) -> CatalogChange:
        """Return the change that makes this catalog of an empty one."""
        return CatalogChange(
            tuple(TableChange(*name, known) for name, known in self._tables.items()),
            tuple(self.databases.items()),
            self.collations,
            self.folds_names,
            self.state,
        )

    def _change(self, change: TableChange) -> None:
        self._changed_tables.append(change)
        self._set_table(change)

    def _set_table(self, change: TableChange) -> None:
        name = change.schema, change.table
        if change.exists:
            self._tables[name] = change.known
        else:
            self._tables.pop(name, None)

    def _set_database(self, name: str, charset: Charset | None) -> None:
        if charset is None:
            self.databases.pop(name, None)
        else:
            self.databases[name] = charset
