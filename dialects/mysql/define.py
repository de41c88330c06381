"""Tables of MySQL and MariaDB, created and altered as the source's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from ...errors import Retryable
from ...events import Ddl, Details, Table
from ..statement import quoted
from . import text
from .changes import SchemaChanges
from .details import created
from .fit import Fit
from .home import Home
from .session import MySqlSession
from .tables import Tables

_LOCK_SECONDS: Final = 3
"""Time that a feed waits for another one that defines the same table."""


class MySqlDefiner:
    ddl_commits = True

    def __init__(self, session: MySqlSession, identity: str, home: Home, tables: Tables, fit: Fit) -> None:
        self.identity = identity
        self.folds_names = False
        """Known once the session is connected."""
        self._session = session
        self._home = home
        self._tables = tables
        self._fit = fit
        self._changes = SchemaChanges(session, home, tables, fit)

    def name_of(self, schema: str, table: str) -> str:
        return f"{self._tables.schema_of((schema, table))}.{table}"

    def columns(self, table: Table) -> dict[str, str] | None:
        return self._tables.columns((table.schema, table.name))

    def wanted_columns(self, table: Table) -> dict[str, str]:
        types = self._tables.types(table.columns)
        return {
            column.name: type_ + (" key" if index in table.key else "")
            for index, (column, type_) in enumerate(zip(table.columns, types, strict=True))
        }

    def is_empty(self, table: Table) -> bool:
        return not self._tables.has_row((table.schema, table.name))

    def keeps_rows(self, table: Table) -> bool:
        return self._tables.is_transactional((table.schema, table.name))

    def undo_creation(self) -> None:
        name = self._home.unfinished_creation()
        if name and self._tables.columns(name) is not None and not self._tables.has_row(name):
            self._session.execute(f"DROP TABLE {self._tables.qualified(name)}")

    def create_table(self, table: Table, details: Details | None = None, *, is_shared: bool = False) -> None:
        if not is_shared:
            self._home.intend_creation((table.schema, table.name))
        self._session.create_schema(self._tables.schema_of((table.schema, table.name)))
        fitted, name = self._fit.table(table), self._qualified(table)
        if details is None:
            self._session.define(text.create_table(fitted, name))
        else:
            details = self._fit.details(details)
            self._session.define(created(fitted, details, name, is_mariadb=self._session.is_mariadb))

    def drop_table(self, table: Table) -> None:
        self._session.execute(f"DROP TABLE IF EXISTS {self._qualified(table)}")

    @contextmanager
    def defining(self, schema: str, table: str) -> Iterator[None]:
        name = self._tables.qualified((schema, table))
        lock = quoted(f"tidemill {sha256(name.encode()).hexdigest()[:40]}")
        ((is_held,),) = self._session.rows(f"SELECT GET_LOCK({lock}, {_LOCK_SECONDS})")
        if not is_held:
            raise Retryable(f"{self.identity}: another feed is defining {name}")
        yield
        self._session.rows(f"SELECT RELEASE_LOCK({lock})")  # after an error, the end of the session does it

    def has_shared(self, ddl: Ddl) -> bool:
        return self._home.has_shared(ddl)

    def note_shared(self, ddl: Ddl) -> None:
        self._home.note_shared(ddl)

    def alter(self, ddl: Ddl) -> None:
        self._changes.apply(ddl)

    def _qualified(self, table: Table) -> str:
        return self._tables.qualified((table.schema, table.name))
