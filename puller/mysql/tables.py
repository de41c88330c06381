"""The source's tables, as its information_schema describes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

from ...codec.mysql.schema import CHECKS_QUERY, COLUMNS_QUERY, KEY_QUERY, table_from_information_schema
from ...events import Table
from .connection import Session, query

Follows: TypeAlias = Callable[[str, str], bool]
"""True if a table, by schema and name, is followed."""

SYSTEM_SCHEMAS: Final = frozenset({"mysql", "information_schema", "performance_schema", "sys"})

_TABLES: Final = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES
WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY TABLE_SCHEMA, TABLE_NAME
"""
_DETAILS: Final = """
SELECT ENGINE, TABLE_ROWS, TABLE_COLLATION FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""
_PRIMARY: Final = """
SELECT 1 FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND INDEX_NAME = 'PRIMARY' LIMIT 1
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
    has_primary: bool = True
    """False if a unique key takes the place of the primary key, or the table has no key."""


def find_tables(session: Session) -> list[FoundTable]:
    """Return every table except the server's own, ordered by name."""
    rows = query(session, _TABLES)
    return [
        FoundTable(schema, name, kind != "BASE TABLE")
        for schema, name, kind in rows
        if is_user_schema(schema)
    ]


def is_user_schema(schema: str) -> bool:
    return schema.lower() not in SYSTEM_SCHEMAS


def read_table(session: Session, found: FoundTable) -> SourceTable | None:
    """Describe a table; None if it was dropped. Raises SourceError for a column that isn't supported."""
    names = found.schema, found.name
    details = query(session, _DETAILS, *names)
    if not details:
        return None
    engine, rows, collation = details[0]
    table = table_from_information_schema(
        *names,
        query(session, COLUMNS_QUERY, *names),
        [row[0] for row in query(session, KEY_QUERY, *names)],
        [row[0] for row in query(session, CHECKS_QUERY, *names)],
        collation,
    )
    has_primary = bool(query(session, _PRIMARY, *names))
    return SourceTable(table, engine, int(rows or 0), has_primary)


def quoted(*names: str) -> str:
    """Return names quoted for SQL, such as `shop`.`order`."""
    return ".".join(f"`{name.replace('`', '``')}`" for name in names)
