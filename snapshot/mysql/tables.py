"""The source's tables, as its information_schema describes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...codec.mysql.binary_defaults import constant_defaults
from ...codec.mysql.details import read_details
from ...codec.mysql.known_table import KnownTable
from ...codec.mysql.left_out import leave_out_generated
from ...codec.mysql.schema import is_user_schema, table_from_information_schema
from ...codec.mysql.tokens import NotUnderstood, Tokens
from ...codec.mysql.tokens import qualified as quoted
from ...codec.mysql.versioned import HIDDEN, period_of
from ...dialects.mysql.client import Session, is_mariadb, query, show_create_table
from ...dialects.mysql.key_range import is_ordered
from ...errors import SourceError
from ...events import BYTE_STRINGS, Details, Table

Follows: TypeAlias = Callable[[str, str], bool]
"""True if a table, by schema and name, is followed."""

_TABLES: Final = """
SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES
WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') {} ORDER BY TABLE_SCHEMA, TABLE_NAME
"""
_ONE: Final = "AND TABLE_SCHEMA = %s AND TABLE_NAME = %s"
_ROWS: Final = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA IN %s
"""
_TRANSACTIONAL: Final = frozenset({"InnoDB", "ROCKSDB"})
_MYSQL_INEXACT: Final = re.compile("0x")
_MARIADB_INEXACT: Final = re.compile(r"(?=.*\?)'(?:[^'\\]++|\\.|'')*+'\Z", re.DOTALL)
"""A default that information_schema may show inexactly: in MariaDB a literal, not an expression."""


class FoundTable(Struct, frozen=True):
    """A table of the server that this user may see."""

    schema: str
    name: str

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"


class SourceTable(Struct, frozen=True):
    known: KnownTable
    engine: str
    rows_estimated: int
    """Number of rows by the server's statistics, which may be off by some tens of percent."""
    digest: bytes = b""
    """Hash of SHOW CREATE TABLE: while it stays the same, so does the definition."""

    @property
    def table(self) -> Table:
        return self.known.table

    @property
    def is_transactional(self) -> bool:
        """True if the storage engine has consistent views."""
        return self.engine in _TRANSACTIONAL

    @property
    def has_chunks(self) -> bool:
        """True if the rows can be read in chunks, by the order of the primary key."""
        return self.known.has_primary and is_ordered(self.table)


class TableDescription(Struct, frozen=True):
    """A table as described by information_schema."""

    engine: str
    rows: int | None
    collation: str | None
    columns: Sequence[Sequence[Any]]
    """Name, type, character set, collation, nullability, default and EXTRA of each, in order."""
    key: list[str]
    """Columns of the primary key, or without one of the unique key that takes its place."""
    checks: list[str]
    """Texts of the CHECKs of a MariaDB, of which one tells a JSON column; those of a MySQL have no table."""
    unique_indexes: set[str]

    def is_like(self, other: TableDescription) -> bool:
        """True if they differ at most in the number of rows."""
        return self == replace(other, rows=self.rows)


def find_tables(session: Session, only: FoundTable | None = None) -> list[FoundTable]:
    """Return every table except the server's own, ordered by name; or `only` that one, if it is there."""
    if only is None:
        rows = query(session, _TABLES.format(""))
    else:  # the server looks at one file in place of all
        rows = query(session, _TABLES.format(_ONE), only.schema, only.name)
    return [FoundTable(schema, name) for schema, name in rows if is_user_schema(schema)]


def estimated_rows(session: Session, schemas: Collection[str]) -> dict[str, int]:
    """Return numbers of rows by the full names of all tables of these schemas."""
    estimates = query(session, _ROWS, tuple(schemas)) if schemas else []
    return {f"{schema}.{name}": int(rows or 0) for schema, name, rows in estimates}


def table_of(
    session: Session,
    listed: FoundTable,
    described: TableDescription,
    *,
    has_catalog: bool,
    copies_generated: bool,
) -> SourceTable:
    """Return the table of a description. Raises SourceError for a column that isn't supported."""
    mariadb = is_mariadb(session)
    table = table_from_information_schema(
        listed.schema,
        listed.name,
        described.columns,
        described.key,
        described.checks,
        described.collation,
        is_mariadb=mariadb,
        has_catalog=has_catalog,
    )
    statement = show_create_table(session, quoted(listed.schema, listed.name))
    table = _with_period(table, period_of(statement), has_catalog)
    increments = [row[0] for row in described.columns if "auto_increment" in (row[6] or "").lower()]
    table = _with_binary_defaults(table, statement, is_mariadb=mariadb)
    unique = described.unique_indexes
    known = KnownTable(
        table,
        increments[0] if increments else "",
        "PRIMARY" in unique,
        bool(unique - {"PRIMARY"}),
        _details(statement, described.collation),
    )
    if not copies_generated:
        try:
            known = leave_out_generated(known)
        except NotUnderstood as what:
            raise SourceError(f"{table.full_name} is {what}: leave it out") from None
    return SourceTable(known, described.engine, int(described.rows or 0), digest(statement))


def digest(statement: str) -> bytes:
    """Return the digest of a SHOW CREATE TABLE."""
    return sha256(statement.encode(errors="surrogateescape")).digest()


def _with_period(table: Table, period: tuple[str, str] | None, has_catalog: bool) -> Table:
    """Return a table with its ROW END if it is system-versioned, by the columns of its period.

    Raises SourceError for a table that is versioned by transactions, and without a catalog, as a binlog
    doesn't tell present rows from past ones.
    """
    if period is None:
        return table
    _, row_end = period
    if row_end != HIDDEN[1] and next(c for c in table.columns if c.name == row_end).kind != "timestamp":
        raise SourceError(
            f"{table.full_name} is system-versioned by transactions, whose changes the server logs as "
            f'statements: add "!{table.full_name}" at the end of source.tables'
        )
    if not has_catalog:
        raise SourceError(
            f"{table.full_name} is system-versioned, which needs the local engine: leave it out"
        )
    # The server marks the columns of the period as generated ones.
    columns = [
        replace(column, generated=False) if column.name in period else column for column in table.columns
    ]
    return replace(table, row_end=row_end, columns=tuple(columns))


def _details(statement: str, collation: str | None) -> Details:
    tokens = Tokens(statement)
    tokens.expect("CREATE")
    tokens.expect("TABLE")
    tokens.name()
    return replace(read_details(tokens, is_whole=True), collation=collation or "")


def _with_binary_defaults(table: Table, statement: str, *, is_mariadb: bool) -> Table:
    """Return the table with exact binary defaults, from its SHOW CREATE TABLE.

    MySQL's information_schema cuts them at a zero byte, and MariaDB's has "?" for bytes that aren't text.
    Raises SourceError for a default that the statement doesn't have.
    """
    inexact = _MARIADB_INEXACT if is_mariadb else _MYSQL_INEXACT
    cut = [
        column.name
        for column in table.columns
        if column.kind in BYTE_STRINGS and inexact.match(column.default or "")
    ]
    if not cut:
        return table
    written = constant_defaults(statement)
    if missing := [name for name in cut if name not in written]:
        raise SourceError(f"{table.full_name}: the default of {', '.join(missing)} can't be read")
    exact = {name: f"x'{written[name].hex().upper()}'" for name in cut}
    columns = [replace(column, default=exact.get(column.name, column.default)) for column in table.columns]
    return replace(table, columns=tuple(columns))
