"""Definers of databases in which a schema change is part of the transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext

from ..events import Column, Ddl, Table
from .own_tables import OwnTables
from .shared_changes import SharedChanges


class TransactionalDefiner(ABC):
    """A Definer but for names, types, and the statements of the dialect."""

    ddl_commits = False

    def __init__(self, identity: str, own_tables: OwnTables) -> None:
        self.identity = identity
        self._shared = SharedChanges(own_tables)

    @abstractmethod
    def _type(self, column: Column) -> str:
        """Return the type that a column of the source has here."""

    @abstractmethod
    def _apply(self, ddl: Ddl) -> None:
        """Apply a schema change other than CreateTable. Raises NotReproducible; then the transaction must be
        undone."""

    def wanted_columns(self, table: Table) -> dict[str, str]:
        return {
            column.name: self._type(column) + (" key" if index in table.key else "")
            for index, column in enumerate(table.columns)
        }

    def keeps_rows(self, table: Table) -> bool:  # noqa: ARG002
        return True

    def undo_creation(self) -> None:  # noqa: B027
        """Do nothing: a table is created in the transaction of the checkpoint."""

    def defining(self, schema: str, table: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Do nothing: there is one writer at a time."""
        return nullcontext()

    def has_shared(self, ddl: Ddl) -> bool:
        return self._shared.has(ddl)

    def note_shared(self, ddl: Ddl) -> None:
        self._shared.note(ddl)

    def alter(self, ddl: Ddl) -> None:
        if self._shared.begin(ddl):
            self._apply(ddl)
