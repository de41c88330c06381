"""The statements that change rows of one table in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import cached_property

from ...errors import SinkError
from ...events import Row, RowChange, Table
from ..groups import ChangeGroup
from .keyless import RowFinder
from .table import quoted
from .types import Encode, compile_encode


class Plan:
    """The prepared statements of one table, at one version of its schema, and their parameters."""

    def __init__(self, table: Table, quoted_name: str, *, whole: bool = False) -> None:
        """With `whole`, updates and deletes compare the whole row."""
        self._table = table
        self._whole = whole
        self._name = quoted_name
        self._names = [quoted(column.name) for column in table.columns]
        self._every = range(len(table.columns))
        self._rest = [i for i in self._every if i not in table.key] or list(self._every)
        self._encode_all = compile_encode(table.columns, self._every)
        marks = ",".join("?" * len(self._names))
        self._insert = f"INSERT INTO {quoted_name} ({','.join(self._names)}) VALUES ({marks})"

    @cached_property
    def _key(self) -> str:
        return " AND ".join(f"{self._names[i]}=?" for i in self._table.key)

    @cached_property
    def _where(self) -> str:
        same = " AND ".join(f"{name} IS ?" for name in self._names)
        if self._table.key:
            return f"{self._key} AND {same}" if self._whole else self._key
        rowid = self._rowid
        return f"{rowid}=(SELECT {rowid} FROM {self._name} WHERE {same} LIMIT 1)"

    @property
    def _rowid(self) -> str:
        taken = {column.name.lower() for column in self._table.columns}
        for name in ("rowid", "_rowid_", "oid"):
            if name not in taken:
                return name
        raise SinkError(f"{self._table.full_name} has no key, and its columns hide SQLite's row id")

    @cached_property
    def _encode_where(self) -> Encode:
        key = self._table.key
        return compile_encode(self._table.columns, [*key, *self._every] if self._whole or not key else key)

    @cached_property
    def _encode_update(self) -> Encode:
        return compile_encode(self._table.columns, [*self._rest, *self._table.key])

    def prepared(self, group: ChangeGroup) -> tuple[str, list[Row]]:
        """Return a statement and its parameters for each change."""
        changes = group.changes
        match group.op:
            case "insert":
                return self._insert, self._encode_all(_after(changes))
            case "delete":
                return f"DELETE FROM {self._name} WHERE {self._where}", self._encode_where(_before(changes))
            case "update" if self._table.key and not self._whole:
                return self._update(self._rest), self._encode_update(_after(changes))
            case "update" | "move":
                after, before = self._encode_all(_after(changes)), self._encode_where(_before(changes))
                return self._update(self._every), [a + b for a, b in zip(after, before, strict=True)]

    def safe(self, group: ChangeGroup) -> Iterator[tuple[str, list[Row]]]:
        """Yield statements with parameters after which the rows are those after the changes."""
        keyed = bool(self._table.key)
        if group.op in ("delete", "move") or (group.op == "update" and not keyed):
            yield f"DELETE FROM {self._name} WHERE {self._where}", self._encode_where(_before(group.changes))
        if group.op != "delete":
            insert = self._insert.replace("INSERT", "INSERT OR REPLACE", 1) if keyed else self._insert
            yield insert, self._encode_all(_after(group.changes))

    def comparison(self, row: Row) -> tuple[str, Row]:
        """Return the SELECT of the row with this key: each value, and 1 if it is exactly this row's."""
        values = ",".join(f"{name},{name} IS ?" for name in self._names)
        (parameters,) = compile_encode(self._table.columns, [*self._every, *self._table.key])([row])
        return f"SELECT {values} FROM {self._name} WHERE {self._key}", parameters

    @cached_property
    def _finder(self) -> RowFinder:
        return RowFinder(self._table, self._name, self._names, self._rowid)

    def found(self, group: ChangeGroup, connection: sqlite3.Connection) -> tuple[str, list[Row]]:
        """Return the same for deletes or updates of a table without a key, whose rows are searched for here.

        Raises StatementRejected if a row is missing.
        """
        changes = group.changes
        ids = self._finder.find(connection, changes)
        if group.op == "delete":
            return f"DELETE FROM {self._name} WHERE {self._rowid}=?", [(row_id,) for row_id in ids]
        after = self._encode_all(_after(changes))
        rows = [(*row, row_id) for row, row_id in zip(after, ids, strict=True)]
        return self._update(self._every, f"{self._rowid}=?"), rows

    def _update(self, index: Sequence[int], where: str = "") -> str:
        names = ",".join(f"{self._names[i]}=?" for i in index)
        return f"UPDATE {self._name} SET {names} WHERE {where or self._where}"


def _after(changes: list[RowChange]) -> list[Row]:
    return [change.after or () for change in changes]


def _before(changes: list[RowChange]) -> list[Row]:
    return [change.before or () for change in changes]
