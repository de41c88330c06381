"""The record of shared schema changes in targets where a change is part of its transaction."""

from __future__ import annotations

from typing import Final

from ..events import Ddl
from .own_tables import OwnTables

SHARED_TABLE: Final = "tidemill_shared_ddl"
"""One row per merged table: the number of its last change."""


class SharedChanges:
    """Used in an open transaction, while no other feed defines the table."""

    def __init__(self, tables: OwnTables) -> None:
        self._tables = tables
        self._table = f"{tables.home}{SHARED_TABLE}"

    def has(self, ddl: Ddl) -> bool:
        """Return True if the target has a shared change, or a later one of its table."""
        if not self._tables.has(SHARED_TABLE):
            return False
        rows = self._tables.query(f"SELECT number FROM {self._table} WHERE name=?", ddl.full_name)
        return bool(rows) and int(rows[0][0]) >= (ddl.shared or 0)

    def begin(self, ddl: Ddl) -> bool:
        """Return True if a change is to be applied now, and store that the target has it if it is shared."""
        if ddl.shared is None:
            return True
        if self.has(ddl):
            return False
        self._store(ddl)
        return True

    def note(self, ddl: Ddl) -> None:
        """Store that the target has a shared change, unless it has a later one."""
        if not self.has(ddl):
            self._store(ddl)

    def _store(self, ddl: Ddl) -> None:
        if not self._tables.has(SHARED_TABLE):
            name_type = self._tables.name_type
            self._tables.create(SHARED_TABLE, f"name {name_type} PRIMARY KEY, number BIGINT NOT NULL")
        self._tables.query(f"DELETE FROM {self._table} WHERE name=?", ddl.full_name)
        self._tables.query(
            f"INSERT INTO {self._table} (name, number) VALUES (?,?)", ddl.full_name, ddl.shared
        )
