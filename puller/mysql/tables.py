"""The source's tables, as its information_schema describes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...codec.mysql.entry import NewTable
from ...codec.mysql.schema import (
    CHECKS_QUERY,
    COLUMNS_QUERY,
    KEY_QUERY,
    is_user_schema,
    table_from_information_schema,
)
from ...events import Table
from .connection import Session, is_mariadb, query

Follows: TypeAlias = Callable[[str, str], bool]
"""True if a table, by schema and name, is followed."""

_TABLES: Final = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES
WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY TABLE_SCHEMA, TABLE_NAME
"""
_DETAILS: Final = """
SELECT ENGINE, TABLE_ROWS, TABLE_COLLATION FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""
_KEYS: Final = """
SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0
"""


class FoundTable(Struct, frozen=True):
    """A table of the server that this user may see."""

    schema: str
    name: str
    versioned: bool = False
    """True if it is system versioned: it keeps its past rows."""

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"


class SourceTable(Struct, frozen=True):
    table: Table
    engine: str
    rows_estimated: int
    """Number of rows by the server's statistics, which may be off by some tens of percent."""
    auto_increment: str = ""
    """Name of the AUTO_INCREMENT column; empty if there is none."""
    has_primary: bool = True
    """False if a unique key takes the place of the primary key, or the table has no key."""
    has_unique: bool = True
    """False if it has no unique keys besides the primary key."""

    @property
    def new_table(self) -> NewTable:
        return NewTable(self.table, self.auto_increment, self.has_primary, self.has_unique)


def find_tables(session: Session) -> list[FoundTable]:
    """Return every table except the server's own, ordered by name."""
    rows = query(session, _TABLES)
    return [
        FoundTable(schema, name, kind != "BASE TABLE")
        for schema, name, kind in rows
        if is_user_schema(schema)
    ]


def read_table(session: Session, found: FoundTable, *, has_catalog: bool = True) -> SourceTable | None:
    """Describe a table; None if it was dropped. Raises SourceError for a column that isn't supported.

    `has_catalog` is True if the rows of the binlog will be decoded with this schema.
    """
    names = found.schema, found.name
    details = query(session, _DETAILS, *names)
    if not details:
        return None
    engine, rows, collation = details[0]
    columns = query(session, COLUMNS_QUERY, *names)
    has_checks = is_mariadb(session)
    table = table_from_information_schema(
        *names,
        columns,
        [row[0] for row in query(session, KEY_QUERY, *names)],
        [row[0] for row in query(session, CHECKS_QUERY, *names)] if has_checks else (),
        collation,
        is_mariadb=has_checks,
        has_catalog=has_catalog,
    )
    auto_increment = next((row[0] for row in columns if "auto_increment" in (row[-1] or "").lower()), "")
    if not has_checks:
        table = _with_binary_defaults(session, table)
    keys = {row[0] for row in query(session, _KEYS, *names)}
    has_primary, has_unique = "PRIMARY" in keys, bool(keys - {"PRIMARY"})
    return SourceTable(table, engine, int(rows or 0), auto_increment, has_primary, has_unique)


def _with_binary_defaults(session: Session, table: Table) -> Table:
    """Return the table with exact binary defaults: MySQL's information_schema cuts them at a zero byte."""
    cut = [
        column.name
        for column in table.columns
        if column.kind in ("binary", "varbinary") and (column.default or "").startswith("0x")
    ]
    if not cut:
        return table
    values = ", ".join(f"HEX(DEFAULT(cut.{quoted(name)}))" for name in cut)
    name = quoted(table.schema, table.name)
    # One row, even of an empty table.
    row = query(session, f"SELECT {values} FROM (SELECT 1) AS one LEFT JOIN {name} AS cut ON FALSE")[0]
    exact = {name: f"x'{value}'" for name, value in zip(cut, row, strict=True)}
    columns = [replace(column, default=exact.get(column.name, column.default)) for column in table.columns]
    return replace(table, columns=tuple(columns))


def quoted(*names: str) -> str:
    """Return names quoted for SQL, such as `shop`.`order`."""
    return ".".join(f"`{name.replace('`', '``')}`" for name in names)
