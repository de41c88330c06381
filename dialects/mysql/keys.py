"""Keys of the tables in a MySQL target by which transactions conflict."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from ...events import Table
from ..keys import Key, KeyPart, TableKeys
from ..statement import quoted
from .session import MySqlSession
from .tables import Tables


def keys_of(session: MySqlSession, tables: Tables, table: Table) -> TableKeys:
    """Return the keys of a table's copy; none are unique if any of them isn't one of plain columns whose
    types are those of the source."""
    schema, name = tables.schema_of((table.schema, table.name)), table.name
    here = f"{schema}.{name}"
    unique = _unique_columns(session, schema, name)
    used = "information_schema.key_column_usage"
    inner = session.rows(
        f"SELECT constraint_name, referenced_table_schema, referenced_table_name, column_name, "
        f"referenced_column_name FROM {used} WHERE table_schema={quoted(schema)} AND "
        f"table_name={quoted(name)} AND referenced_table_name IS NOT NULL "
        "ORDER BY constraint_name, ordinal_position"
    )
    outer = session.rows(
        f"SELECT table_schema, table_name, constraint_name, referenced_column_name FROM {used} WHERE "
        f"referenced_table_schema={quoted(schema)} AND referenced_table_name={quoted(name)} "
        "ORDER BY table_schema, table_name, constraint_name, ordinal_position"
    )
    collations: dict[str, str | None] = dict(
        session.rows(
            "SELECT column_name, collation_name FROM information_schema.columns WHERE "
            f"table_schema={quoted(schema)} AND table_name={quoted(name)}"
        )
    )
    columns = _Columns(table, tables, collations)
    own = tuple(KeyPart(i, 0, collations.get(table.columns[i].name)) for i in table.key)
    keys = {_named(here, [table.columns[i].name for i in table.key]): own} if own else {}
    for _, parts in groupby(unique, key=lambda row: row[0]):
        listed = [(column, prefix or 0) for _, column, prefix in parts]
        names = [f"{column}({prefix})" if prefix else str(column) for column, prefix in listed]
        keys[_named(here, names)] = columns.parts(listed)
    for _, parts in groupby(outer, key=lambda row: row[:3]):
        names = [row[3] for row in parts]
        keys[_named(here, names)] = columns.parts([(column, 0) for column in names])
    references = []  # several may refer to one key
    for (_, parent_schema, parent), parts in groupby(inner, key=lambda row: row[:3]):
        pairs = [row[3:] for row in parts]
        name = _named(f"{parent_schema}.{parent}", [other for _, other in pairs])
        references.append(Key(name, columns.parts([(column, 0) for column, _ in pairs])))
    unique_keys = [Key(name, parts) for name, parts in keys.items()]
    if not own or not all(key.parts for key in (*unique_keys, *references)):
        return TableKeys(here)
    return TableKeys(here, tuple(unique_keys), tuple(references))


def has_only_key(session: MySqlSession, tables: Tables, table: Table) -> bool:
    """Return True if inserting a row whose key exists can only mean that row, and runs no trigger for
    inserts."""
    schema, name = tables.schema_of((table.schema, table.name)), table.name
    unique = [(column, prefix) for _, column, prefix in _unique_columns(session, schema, name)]
    before = session.rows(
        "SELECT 1 FROM information_schema.triggers WHERE action_timing='BEFORE' AND "
        f"event_manipulation='INSERT' AND event_object_schema={quoted(schema)} AND "
        f"event_object_table={quoted(name)} LIMIT 1"
    )
    return not before and bool(unique) and unique == [(table.columns[i].name, None) for i in table.key]


def _unique_columns(session: MySqlSession, schema: str, name: str) -> list[Any]:
    """Return index, column and prefix for each column of a table's unique keys, in order."""
    return session.rows(
        "SELECT index_name, column_name, sub_part FROM information_schema.statistics WHERE non_unique=0 "
        f"AND table_schema={quoted(schema)} AND table_name={quoted(name)} ORDER BY index_name, seq_in_index"
    )


class _Columns:
    """The columns of a copy that hold exactly the source's values."""

    def __init__(self, table: Table, tables: Tables, collations: dict[str, str | None]) -> None:
        have = tables.columns((table.schema, table.name)) or {}
        types = zip(table.columns, tables.types(table.columns), strict=True)
        self._index = {
            column.name.lower(): (index, collations.get(column.name))
            for index, (column, type_) in enumerate(types)
            if have.get(column.name, "").removesuffix(" key") == type_
        }

    def parts(self, columns: Iterable[tuple[Any, int]]) -> tuple[KeyPart, ...]:
        """Return the parts of a key; none if it has something else, such as an expression."""
        parts = []
        for column, prefix in columns:
            if column is None or (place := self._index.get(column.lower())) is None:
                return ()
            parts.append(KeyPart(place[0], prefix, place[1]))
        return tuple(parts)


def _named(table: str, columns: Iterable[str]) -> str:
    return f"{table} ({', '.join(columns).lower()})"
