"""The definitions of many tables, read by a few statements for each database.

A statement for each of 10,000 tables, of which a definition takes five, would take minutes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from ...dialects.mysql.client import Session, is_mariadb, query
from ...errors import SourceError
from .tables import Description, FoundTable, SourceTable, read_table, table_of

FEW: Final = 10
"""Up to this number of wanted tables of a database, each is read on its own: it may have many others."""

_DETAILS: Final = """
SELECT TABLE_NAME, ENGINE, TABLE_ROWS, TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s
"""
_COLUMNS: Final = """
SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE, COLUMN_DEFAULT,
  EXTRA, COLUMN_KEY
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s ORDER BY TABLE_NAME, ORDINAL_POSITION
"""
_INDEXES: Final = """
SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND NON_UNIQUE = 0
ORDER BY TABLE_NAME, INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX
"""
_CHECKS: Final = """
SELECT TABLE_NAME, CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = %s
"""

Described: TypeAlias = tuple[FoundTable, SourceTable | SourceError]


def read_tables(
    session: Session,
    found: Iterable[FoundTable],
    *,
    has_catalog: bool = True,
    copies_generated: bool = True,
) -> Iterator[Described]:
    """Yield each table that still exists with its definition, or with the error of one that isn't supported.

    `has_catalog` and `copies_generated` are those of read_table().
    """
    read_as = {"has_catalog": has_catalog, "copies_generated": copies_generated}
    by_schema: dict[str, list[FoundTable]] = defaultdict(list)
    for one in found:
        by_schema[one.schema].append(one)
    for schema, wanted in by_schema.items():
        described = {} if len(wanted) <= FEW else _describe(session, schema)
        for one in wanted:
            try:
                if len(wanted) <= FEW:
                    table = read_table(session, one, **read_as)
                elif one.name in described:
                    table = table_of(session, one, described[one.name], **read_as)
                else:
                    table = None
            except SourceError as error:
                yield one, error
            else:
                if table is not None:
                    yield one, table


def _describe(session: Session, schema: str) -> dict[str, Description]:
    """Return the tables of a database by name."""
    columns = _by_table(query(session, _COLUMNS, schema))
    indexes = _by_table(query(session, _INDEXES, schema))
    checks = _by_table(query(session, _CHECKS, schema) if is_mariadb(session) else ())
    found = {}
    for name, engine, rows, collation in query(session, _DETAILS, schema):
        in_key = {row[0]: row[7] == "PRI" for row in columns[name]}
        found[name] = Description(
            engine,
            rows,
            collation,
            columns=[row[:7] for row in columns[name]],
            key=_key(indexes[name], in_key),
            checks=[row[0] for row in checks[name]],
            unique_indexes={row[0] for row in indexes[name]},
        )
    return found


def _by_table(rows: Iterable[Sequence[Any]]) -> defaultdict[str, list[Sequence[Any]]]:
    found: defaultdict[str, list[Sequence[Any]]] = defaultdict(list)
    for row in rows:
        found[row[0]].append(row[1:])
    return found


def _key(indexes: Iterable[Sequence[Any]], in_key: dict[str, bool]) -> list[str]:
    """Return the columns that KEY_QUERY returns, of a table's unique indexes in the order of _INDEXES.
    `in_key` has its columns, with True for those that the server marks as PRI."""
    parts: dict[str, list[str]] = defaultdict(list)
    for index, column in indexes:
        if column in in_key:  # a part that is an expression has no name
            parts[index].append(column)
    keys = {index: names for index, names in parts.items() if all(in_key[name] for name in names)}
    if "PRIMARY" in keys:
        return keys["PRIMARY"]
    return max(keys.values(), key=len, default=[])  # of several with most parts, the first
