"""The definitions of tables, read by a few statements for each table or each database.

Statements for each of 10,000 tables would take minutes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

import pymysql

from ...codec.mysql.tokens import qualified as quoted
from ...dialects.mysql.client import Session, is_mariadb, query, show_create_table
from ...errors import SourceError
from ...events import Row
from .tables import FoundTable, SourceTable, TableDescription, digest, table_of

FEW: Final = 10
"""Up to this number of wanted tables of a database, each is read on its own: it may have many others."""

_DETAILS: Final = """
SELECT TABLE_NAME, ENGINE, TABLE_ROWS, TABLE_COLLATION FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s {}
"""
_COLUMNS: Final = """
SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE, COLUMN_DEFAULT,
  EXTRA, COLUMN_KEY
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s {} ORDER BY TABLE_NAME, ORDINAL_POSITION
"""
_INDEXES: Final = """
SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND NON_UNIQUE = 0 {}
ORDER BY TABLE_NAME, INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX
"""
_CHECKS: Final = """
SELECT TABLE_NAME, CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = %s {}
"""

_ONE: Final = "AND TABLE_NAME = %s"
"""Condition with which the server looks at one table in place of all."""

Described: TypeAlias = tuple[FoundTable, SourceTable | SourceError]


def read_table(
    session: Session, listed: FoundTable, *, has_catalog: bool = True, copies_generated: bool = True
) -> SourceTable | None:
    """Describe a table; None if it was dropped. Raises SourceError for a column that isn't supported.

    `has_catalog` is True if the rows of the binlog will be decoded with this schema. Without
    `copies_generated`, the table has no generated columns.
    """
    read_as = {"has_catalog": has_catalog, "copies_generated": copies_generated}
    described = _described(session, listed)
    while described is not None:
        table = table_of(session, listed, described, **read_as)
        before, described = described, _described(session, listed)
        if described is not None and described.is_like(before):
            return table  # else it was altered between the statements that describe it
    return None


def _described(session: Session, listed: FoundTable) -> TableDescription | None:
    return next(iter(describe(session, listed.schema, listed.name).values()), None)


def read_tables(
    session: Session,
    listed: Iterable[FoundTable],
    *,
    has_catalog: bool = True,
    copies_generated: bool = True,
) -> Iterator[Described]:
    """Yield each table that still exists with its definition, or with the error of one that isn't supported.

    `has_catalog` and `copies_generated` are those of read_table().
    """
    read_as = {"has_catalog": has_catalog, "copies_generated": copies_generated}
    by_schema: dict[str, list[FoundTable]] = defaultdict(list)
    for one in listed:
        by_schema[one.schema].append(one)
    for schema, wanted in by_schema.items():
        read = _read_together(session, schema, wanted, read_as) if len(wanted) > FEW else {}
        for one in wanted:
            try:
                table = read[one] if one in read else read_table(session, one, **read_as)
            except SourceError as error:
                yield one, error
            else:
                if table is not None:
                    yield one, table


def _read_together(
    session: Session, schema: str, wanted: Sequence[FoundTable], read_as: Mapping[str, bool]
) -> dict[FoundTable, SourceTable]:
    """Return the tables of a database that are supported, and that weren't altered meanwhile."""
    before = describe(session, schema)
    read = {}
    for one in wanted:
        if one.name in before:
            with suppress(SourceError):
                read[one] = table_of(session, one, before[one.name], **read_as)
    after = describe(session, schema)
    return {
        one: table
        for one, table in read.items()
        if one.name in after and after[one.name].is_like(before[one.name])
    }


def is_unchanged(
    session: Session, source: SourceTable, *, has_catalog: bool = True, copies_generated: bool = True
) -> bool:
    """Return True if a table has the same definition as before, read in the same way; without a catalog, the
    same columns and key."""
    name = FoundTable(source.table.schema, source.table.name)
    with suppress(pymysql.err.Error):  # it was dropped, or the next statement fails, too
        statement = show_create_table(session, quoted(name.schema, name.name))
        if digest(statement) == source.digest:  # one statement in place of six
            return True
    present = read_table(session, name, has_catalog=has_catalog, copies_generated=copies_generated)
    if present is None:
        return False
    return present.known == source.known if has_catalog else present.table == source.table


def describe(session: Session, schema: str, only: str | None = None) -> dict[str, TableDescription]:
    """Return the tables of a database by name, or `only` that one."""
    where, names = ("", (schema,)) if only is None else (_ONE, (schema, only))

    def rows(statement: str) -> list[Row]:
        return query(session, statement.format(where), *names)

    columns, indexes = _by_table(rows(_COLUMNS)), _by_table(rows(_INDEXES))
    checks = _by_table(rows(_CHECKS) if is_mariadb(session) else ())
    descriptions = {}
    for name, engine, count, collation in rows(_DETAILS):
        in_key = {row[0]: row[7] == "PRI" for row in columns[name]}
        descriptions[name] = TableDescription(
            engine,
            count,
            collation,
            columns=[row[:7] for row in columns[name]],
            key=_key(indexes[name], in_key),
            checks=[row[0] for row in checks[name]],
            unique_indexes={row[0] for row in indexes[name]},
        )
    return descriptions


def _by_table(rows: Iterable[Sequence[Any]]) -> defaultdict[str, list[Sequence[Any]]]:
    by_table: defaultdict[str, list[Sequence[object]]] = defaultdict(list)
    for row in rows:
        by_table[row[0]].append(row[1:])
    return by_table


def _key(indexes: Iterable[Sequence[Any]], in_key: dict[str, bool]) -> list[str]:
    """Return the columns of a table's key, of its unique indexes in the order of _INDEXES.

    That is the primary key, or the first unique key of whole NOT NULL columns, in the server's order: its
    columns are marked PRI, and a Table_map names them as the primary key. `in_key` has the table's columns,
    with True for those that the server marks as PRI.
    """
    parts: dict[str, list[str]] = defaultdict(list)
    for index, column in indexes:
        if column in in_key:  # a part that is an expression has no name
            parts[index].append(column)
    keys = {index: names for index, names in parts.items() if all(in_key[name] for name in names)}
    if "PRIMARY" in keys:
        return keys["PRIMARY"]
    return max(keys.values(), key=len, default=[])  # of several with most parts, the first
