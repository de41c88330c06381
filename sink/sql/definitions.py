"""Schema changes of the source, applied to the tables of a target and to the letters about their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...dialects.database import Database, difference
from ...errors import NotReproducible, SinkError
from ...events import (
    AddColumn,
    ChangeColumn,
    ChangeDetails,
    ChangeKey,
    CreateTable,
    Ddl,
    Details,
    DropColumn,
    DropTable,
    RenameTables,
    Table,
    TruncateTable,
)
from ...failpoint import reach
from .letters.writer import LetterWriter


class TargetNames:
    """Knows which table of the source has which name in the target; two of them can't have the same."""

    def __init__(
        self,
        database: Database,
        letters: LetterWriter | None,
        begin: Callable[[], None],
        end: Callable[[], None],
    ) -> None:
        """`begin` begins a SQL transaction unless one is open, and `end` commits it."""
        self._target: Final = database.identity
        self._tables: Final = database.tables
        self._letters: Final = letters
        self._begin: Final = begin
        self._end: Final = end
        self._sources: Final[dict[str, str]] = {}  # source's table by its name in the target

    def change(self, ddl: Ddl) -> None:
        """Apply a schema change. Raises as the target does, SinkError if a table isn't as it must be, and
        NotReproducible if a table's details aren't known."""
        self._alter_letters(ddl)
        match ddl.actions[0]:
            case CreateTable() as created if ddl.shared is not None:
                self._create_shared(ddl, created)
                return
            case CreateTable(table, replaces):
                self._create(table, replaces, _details(ddl))
                return
            case DropTable():
                self._release(ddl.schema, ddl.table)
            case RenameTables(pairs):
                for old, _ in pairs:
                    self._release(*old)
                for _, new in pairs:
                    self._claim(*new)
        self._tables.alter(ddl)

    def _alter_letters(self, ddl: Ddl) -> None:
        """Drop the letters of rows that a schema change removes, and mark those of an altered table.

        It is done before the change, which a restart applies again.
        """
        letters, name = self._letters, f"{ddl.schema}.{ddl.table}"
        if letters is None or not letters.keys:
            return
        letters.refresh()
        change = None
        for action in ddl.actions:
            match action:
                case CreateTable(replaces=True) | DropTable() | TruncateTable():
                    change = letters.drop_table
                case RenameTables(pairs):
                    for old, _ in pairs:
                        letters.reject_letters(old, "a rename")
                case ChangeKey():
                    letters.reject_letters((ddl.schema, ddl.table), "a change of the key")
                case AddColumn() | DropColumn() | ChangeColumn():
                    change = change or letters.alter_table
        if change is not None and letters.may_wait(name):
            self._begin()
            change(name)
            if self._tables.ddl_commits:
                self._end()

    def _create_shared(self, ddl: Ddl, created: CreateTable) -> None:
        """Create a table, or note that other feeds write into the one that is there."""
        is_known = created.exists or self._tables.has_shared(ddl)
        self._create(created.table, replaces=False, details=None, is_shared=True, may_have_rows=is_known)
        self._tables.note_shared(ddl)

    def _create(
        self,
        table: Table,
        replaces: bool,
        details: Details | None,
        *,
        is_shared: bool = False,
        may_have_rows: bool = False,
    ) -> None:
        name = self._claim(table.schema, table.name)
        if replaces:
            self._tables.drop_table(table)
            reach("sink.altered")
        have, wanted = self._tables.columns(table), self._tables.wanted_columns(table)
        if have is None:
            self._tables.create_table(table, details, is_shared=is_shared)
            reach("sink.altered")
        elif not may_have_rows and not self._tables.is_empty(table):
            raise SinkError(
                f"{self._target}: {name} has rows already, and {table.full_name} is about to be loaded into "
                "it: remove the table, or name another target"
            )
        elif have != wanted:
            raise SinkError(
                f"{self._target}: table {name} is there, but differs from {table.full_name}: it "
                f"{difference(have, wanted)}: remove the table"
            )

    def _claim(self, schema: str, table: str) -> str:
        """Return the name of a table in the target. Raises SinkError if another table has it."""
        name, full_name = self._tables.name_of(schema, table), f"{schema}.{table}"
        other = self._sources.setdefault(self._key(name), full_name)
        if other != full_name:
            raise SinkError(f"{self._target}: {other} and {full_name} would both be called {name}")
        return name

    def _release(self, schema: str, table: str) -> None:
        key = self._key(self._tables.name_of(schema, table))
        if self._sources.get(key) == f"{schema}.{table}":
            del self._sources[key]

    def _key(self, name: str) -> str:
        return name.casefold() if self._tables.folds_names else name


def _details(ddl: Ddl) -> Details | None:
    """Return the details of a table that is created; None if they aren't copied.

    Raises NotReproducible if a statement's details aren't known.
    """
    details = next((action.after for action in ddl.actions if isinstance(action, ChangeDetails)), None)
    if details is not None and details.unknown and ddl.query:
        raise NotReproducible(ddl.full_name, f"its definition isn't known, because of {details.unknown}")
    return details
