"""Changes of rows: one statement for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidemill.dialects.database import MISSING, Comparison, StatementRejected, check_columns
from tidemill.dialects.groups import ChangeGroup
from tidemill.dialects.keys import Key, KeyPart, TableKeys
from tidemill.dialects.sqlite.types import compile_encode
from tidemill.events import Row, RowChange, Table
from tidemill.failpoint import reach

from .define import TypelessDefiner
from .session import Session, quoted


class TypelessApplier:
    max_rows = 1_000

    def __init__(self, session: Session, definer: TypelessDefiner, *, whole: bool) -> None:
        """With `whole`, updates and deletes compare the whole row."""
        self._session = session
        self._definer = definer
        self._whole = whole
        self._known: Table | None = None

    def apply(self, groups: Sequence[ChangeGroup]) -> None:
        for group in groups:
            for change in group.changes:
                if self._change(change) != 1:
                    raise StatementRejected(MISSING)
            reach("sink.mid_batch")

    def apply_safely(self, groups: Sequence[ChangeGroup]) -> None:
        for group in groups:
            for change in group.changes:
                for row in filter(None, (change.before, change.after if change.table.key else None)):
                    self._delete(change.table, row, self._identity(change.table))
                if change.after is not None:
                    self._insert(change.table, change.after)

    def _change(self, change: RowChange) -> int:
        """Make one change; return the number of rows that it found."""
        table, before, after = change.table, change.before, change.after
        index = range(len(table.columns)) if self._whole else self._identity(table)
        if before is None:
            assert after is not None
            return self._insert(table, after)
        if after is None:
            return self._delete(table, before, index)
        changes = ", ".join(f"{quoted(column.name)}=?" for column in table.columns)
        where, values = self._one(table, before, index)
        statement = f"UPDATE {self._table(table)} SET {changes} WHERE {where}"
        return self._session.execute(statement, *_stored(table, after), *values).rowcount

    def _insert(self, table: Table, row: Row) -> int:
        names = ", ".join(quoted(column.name) for column in table.columns)
        marks = ", ".join("?" * len(table.columns))
        statement = f"INSERT INTO {self._table(table)} ({names}) VALUES ({marks})"
        return self._session.execute(statement, *_stored(table, row)).rowcount

    def _delete(self, table: Table, row: Row, index: Sequence[int]) -> int:
        where, values = self._one(table, row, index)
        return self._session.execute(f"DELETE FROM {self._table(table)} WHERE {where}", *values).rowcount

    def _one(self, table: Table, row: Row, index: Sequence[int]) -> tuple[str, list[Any]]:
        """Return the condition of one of the rows that have this row's values of some columns."""
        same = " AND ".join(f"{quoted(table.columns[i].name)} IS ?" for i in index)
        stored = _stored(table, row)
        where = f"rowid = (SELECT rowid FROM {self._table(table)} WHERE {same} LIMIT 1)"
        return where, [stored[i] for i in index]

    def _identity(self, table: Table) -> Sequence[int]:
        return table.key or range(len(table.columns))

    def _table(self, table: Table) -> str:
        if self._known is not table:
            check_columns(self._definer, table)
            self._known = table
        return self._session.table(table)

    def forget(self) -> None:
        """Look at the tables again when they come next."""
        self._known = None

    def statement(self, group: ChangeGroup, *, safely: bool) -> str:
        (change,) = group.changes
        return f"{group.op} of {self._session.table(group.table)}: {change.before!r}, {change.after!r}"

    def compare(self, change: RowChange) -> list[Comparison] | None:
        table, before = change.table, change.before or ()
        parts = ", ".join(f"{quoted(column.name)}, {quoted(column.name)} IS ?" for column in table.columns)
        where, values = self._one(table, before, table.key)
        statement = f"SELECT {parts} FROM {self._table(table)} WHERE {where}"
        rows = self._session.rows(statement, *_stored(table, before), *values)
        return [Comparison(*pair) for pair in zip(rows[0][::2], rows[0][1::2], strict=True)] if rows else None

    def keys_of(self, table: Table) -> TableKeys:
        name = self._definer.name_of(table.schema, table.name)
        parts = tuple(map(KeyPart, table.key))
        return TableKeys(name, (Key(f"{name} {parts}", parts),) if parts else ())

    def is_linked(self, table: Table) -> bool:
        return False


def _stored(table: Table, row: Row) -> Row:
    (stored,) = compile_encode(table.columns, range(len(table.columns)))([row])
    return stored
