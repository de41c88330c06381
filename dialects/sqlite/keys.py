"""Unique keys of the tables in a SQLite file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...events import Table
from ..keys import Key, KeyPart, TableKeys


def keys_of(execute: Callable[..., Any], table: Table, name: str) -> TableKeys:
    """Return the keys of a table's copy as far as they are known; foreign keys aren't enforced."""
    places = {column.name.lower(): KeyPart(i) for i, column in enumerate(table.columns)}
    keys = [tuple([KeyPart(i) for i in table.key])]
    indexes = execute('SELECT name FROM pragma_index_list(?) WHERE "unique" AND NOT partial', name)
    for (index,) in indexes.fetchall():
        columns = [column for (column,) in execute("SELECT name FROM pragma_index_info(?)", index)]
        if all(column is not None and column.lower() in places for column in columns):
            keys.append(tuple([places[column.lower()] for column in columns]))
    return TableKeys(name, tuple([Key(f"{name} {parts}", parts) for parts in dict.fromkeys(keys) if parts]))
