"""The databases and tables of the emulated server, and the statements that change them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

from ...chain.selection.tables import TablePatterns
from ...codec.mysql.collation import Charset
from ...codec.mysql.effect import read_effect
from ...codec.mysql.entry import Query
from ...codec.mysql.known_table import KnownTable
from ...codec.mysql.tokens import NotUnderstood, Tokens
from ...events import Action, CreateTable, DropTable, RenameTables, TableName, TruncateTable
from ...mounter import Catalog
from ...mounter.mysql.ddl import Statements
from .log import Vendor
from .table import MemoryTable

COLLATIONS: Final = {
    "utf8mb4": "utf8mb4_general_ci",
    "utf8mb3": "utf8mb3_general_ci",
    "latin1": "latin1_swedish_ci",
    "ascii": "ascii_general_ci",
    "binary": "binary",
    "cp1250": "cp1250_general_ci",
    "cp1251": "cp1251_general_ci",
    "latin2": "latin2_general_ci",
    "greek": "greek_general_ci",
}
"""Default collations by character set, of a MariaDB."""
MYSQL_COLLATIONS: Final = COLLATIONS | {"utf8mb4": "utf8mb4_0900_ai_ci"}
SERVER_CHARSET: Final = Charset("utf8mb4", "utf8mb4_general_ci")
SQL_MODES: Final[dict[Vendor, int]] = {"MariaDB": 0x54200000, "MySQL": 0x45A00020}
"""Defaults. Both are strict, with ERROR_FOR_DIVISION_BY_ZERO and NO_ENGINE_SUBSTITUTION; a MariaDB's has
NO_AUTO_CREATE_USER, a MySQL's ONLY_FULL_GROUP_BY, NO_ZERO_IN_DATE and NO_ZERO_DATE."""


class Schema:
    """Tables by name, changed by statements as the feed's own catalog understands them."""

    def __init__(self, vendor: Vendor) -> None:
        self.vendor: Final[Vendor] = vendor
        self.collations: Final = COLLATIONS if vendor == "MariaDB" else MYSQL_COLLATIONS
        self.tables: dict[TableName, MemoryTable] = {}
        self.current = ""
        """The session's database (USE)."""
        self._catalog = Catalog()
        self._catalog.learn((), dict(self.collations))
        self._numbers = count(18)

    @property
    def databases(self) -> dict[str, Charset]:
        return self._catalog.databases

    def table(self, name: str) -> MemoryTable:
        """Return a table by its name, qualified unless a database is in use. Raises ValueError."""
        database, _, table = name.rpartition(".")
        held = self.tables.get((database or self.current, table))
        if held is None:
            names = ", ".join(map(".".join, self.tables)) or "none"
            raise ValueError(f"there is no table {name}; there are {names}")
        return held

    def uses(self, statement: str) -> bool:
        """Run USE; return False for any other statement. Raises ValueError for an unknown database."""
        tokens = Tokens(statement.rstrip().removesuffix(";"))
        if not tokens.accept("USE"):
            return False
        name = tokens.name()
        if name not in self.databases:
            raise ValueError(f"there is no database {name}; there are {', '.join(self.databases) or 'none'}")
        self.current = name
        return True

    def run(self, statement: str, now: float) -> Query:
        """Run a statement that changes definitions; return it as it is to be logged.

        Raises ValueError for one that isn't known here, or that has no effect; nothing is changed then.
        """
        sql_mode = SQL_MODES[self.vendor]
        query = Query(self.current, statement, now, sql_mode=sql_mode, server_charset=SERVER_CHARSET)
        before = self._catalog.whole()
        try:
            tables = self._after(query)
        except BaseException:
            self._catalog = Catalog()
            self._catalog.apply(before)
            raise
        self.tables = tables
        if self.current not in self.databases:
            self.current = ""
        return query

    def _after(self, query: Query) -> dict[TableName, MemoryTable]:
        statement = query.query
        try:
            effect = read_effect(Tokens(statement, query.sql_mode))
        except NotUnderstood as what:
            raise ValueError(f"the emulator doesn't know this statement ({what}): {statement}") from None
        if effect == "rows":
            raise ValueError(f"rows are changed in a transaction(), not by this statement: {statement}")
        databases = dict(self.databases)
        changes = Statements(TablePatterns.parse(["*.*"]), self._catalog, details=True).changes(query)
        if any(one.reload or one.refusal for one in changes):
            raise ValueError(f"the emulator doesn't know exactly what this statement does: {statement}")
        is_lenient = any("EXISTS" in text for text in _words(statement))
        if effect == "definitions" and not changes and databases == self.databases and not is_lenient:
            raise ValueError(f"there is no such table or database, or nothing changes: {statement}")
        tables = dict(self.tables)
        for change in changes:
            self._apply(tables, (change.schema, change.table), change.actions, query)
        return tables

    def _apply(
        self,
        tables: dict[TableName, MemoryTable],
        name: TableName,
        actions: tuple[Action, ...],
        query: Query,
    ) -> None:
        if not isinstance(actions[0], CreateTable | RenameTables) and name not in tables:
            raise ValueError(f"there is no table {'.'.join(name)}: {query.query}")
        match actions[0]:
            case CreateTable(_, replaces):
                if name[0] not in self.databases:
                    raise ValueError(f"there is no database {name[0]}: {query.query}")
                if name in tables and not replaces:
                    raise ValueError(f"there is a table {'.'.join(name)} already: {query.query}")
                tables[name] = MemoryTable(self._known(name), next(self._numbers))
            case DropTable():
                del tables[name]
            case TruncateTable():
                tables[name] = MemoryTable(tables[name].known, next(self._numbers))
            case RenameTables(pairs):
                moved = {new: tables.pop(old) for old, new in pairs}
                for new, table in moved.items():
                    if new in tables or new[0] not in self.databases:
                        raise ValueError(f"no table can become {'.'.join(new)}: {query.query}")
                    tables[new] = table.renamed(self._known(new), next(self._numbers))
            case _:
                known = self._known(name)
                tables[name] = tables[name].altered(known, next(self._numbers), actions, query.epoch_seconds)

    def _known(self, name: TableName) -> KnownTable:
        known = self._catalog.get(name)
        assert known is not None
        return known


def _words(statement: str) -> Iterator[str]:
    tokens = Tokens(statement)
    while tokens.next.kind != "end":
        yield tokens.take().value
