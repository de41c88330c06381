"""Schema changes in PostgreSQL, as part of the transaction."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from ...events import Ddl, DropTable, RenameTables, Table, TableName, TruncateTable
from ..database import effective
from ..renames import Rename, in_order
from .alteration import Alteration, declaration
from .session import PostgresSession
from .tables import Tables
from .text import name


class SchemaChanges:
    def __init__(self, session: PostgresSession, tables: Tables) -> None:
        self._session = session
        self._tables = tables

    def create(self, table: Table) -> None:
        """Create a table with its primary key and its constant defaults."""
        self._tables.create_schema(self._tables.schema_of((table.schema, table.name)))
        lines = [f"  {declaration(self._tables, column, table.full_name)}" for column in table.columns]
        if table.key:
            names = ", ".join(name(table.columns[index].name) for index in table.key)
            lines.append(f"  PRIMARY KEY ({names})")
        qualified = self._tables.qualified((table.schema, table.name))
        self._session.execute(f"CREATE TABLE {qualified} (\n" + ",\n".join(lines) + "\n)")

    def apply(self, ddl: Ddl) -> None:
        """Apply any action but CreateTable. Raises NotReproducible; then the transaction must be undone."""
        own = ddl.schema, ddl.table
        match ddl.actions[0]:
            case DropTable():
                self._session.execute(f"DROP TABLE IF EXISTS {self._tables.qualified(own)}")
            case TruncateTable():
                self._session.execute(f"TRUNCATE TABLE {self._tables.qualified(own)}")
            case RenameTables(pairs):
                self._rename(pairs)
            case _:
                have = {column.name.lower(): column for column in self._tables.find(own)}
                if actions := effective(ddl.actions, have):
                    Alteration(self._session, self._tables, ddl, have).apply(actions)

    # --- names

    def _rename(self, pairs: Sequence[tuple[TableName, TableName]]) -> None:
        """Rename tables; one that changes its schema takes its primary key's index along, which needs a name
        that no other has."""
        places: dict[str, TableName] = {}

        def place(table: TableName) -> str:
            qualified = self._tables.qualified(table)
            places[qualified] = self._tables.schema_of(table), table[1]
            return qualified

        renames = [
            Rename(place(old), place(new), place((old[0], f"tidemill {number}")))
            for number, (old, new) in enumerate(pairs)
        ]
        for old, new in in_order(renames, folds=False):
            self._move(old, places[old], places[new])

    def _move(self, qualified: str, old: TableName, new: TableName) -> None:
        if old[0] != new[0]:
            self._tables.create_schema(new[0])
            passing = f"tidemill {sha256('.'.join([*old, *new]).encode()).hexdigest()[:32]}"
            for key in {column.constraint for column in self._tables.find(old)} - {""}:
                to = name(f"{passing} key")
                self._session.execute(f"ALTER TABLE {qualified} RENAME CONSTRAINT {name(key)} TO {to}")
            self._session.execute(f"ALTER TABLE {qualified} RENAME TO {name(passing)}")
            self._session.execute(f"ALTER TABLE {name(old[0])}.{name(passing)} SET SCHEMA {name(new[0])}")
            qualified = f"{name(new[0])}.{name(passing)}"
        self._session.execute(f"ALTER TABLE {qualified} RENAME TO {name(new[1])}")
