"""Changes of rows in SQLite, by prepared statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...events import RowChange, Table
from ...events.per_table import PerTable
from ...failpoint import reach
from ..database import MISSING, Comparison, StatementRejected, check_columns
from ..groups import ChangeGroup
from ..keys import Key, KeyPart, TableKeys
from .define import SqliteDefiner
from .keyless import FEWEST
from .plan import Plan
from .session import SqliteSession


class SqliteApplier:
    max_rows = 10_000

    def __init__(self, session: SqliteSession, definer: SqliteDefiner, *, whole: bool) -> None:
        """With `whole`, updates and deletes compare the whole row."""
        self._session = session
        self._definer = definer
        self._whole = whole
        self._plans = PerTable(self._plan)

    def forget(self) -> None:
        """Look at the tables again when they come next."""
        self._plans.clear()

    def apply(self, groups: Sequence[ChangeGroup]) -> None:
        connection = self._session.connection
        for group in groups:
            plan = self._plans[group.table]
            if group.op == "insert" or group.table.key or len(group.changes) < FEWEST:
                sql, rows = plan.prepared(group)
            else:
                sql, rows = plan.found(group, connection)
            if connection.executemany(sql, rows).rowcount != len(rows):
                raise StatementRejected(MISSING)
            reach("sink.mid_batch")

    def apply_safely(self, groups: Sequence[ChangeGroup]) -> None:
        connection = self._session.connection
        for group in groups:
            for sql, rows in self._plans[group.table].safe(group):
                connection.executemany(sql, rows)

    def statement(self, group: ChangeGroup, *, safely: bool) -> str:
        plan = self._plans[group.table]
        parts = plan.safe(group) if safely else [plan.prepared(group)]
        return "; ".join(f"{sql} with {row!r}" for sql, rows in parts for row in rows)

    def _plan(self, table: Table) -> Plan:
        check_columns(self._definer, table)
        return Plan(table, self._definer.qualified(table), whole=self._whole)

    def compare(self, change: RowChange) -> list[Comparison] | None:
        sql, values = self._plans[change.table].comparison(change.before or ())
        row = self._session.execute(sql, *values).fetchone()
        return [Comparison(*pair) for pair in zip(row[::2], row[1::2], strict=True)] if row else None

    def keys_of(self, table: Table) -> TableKeys:
        return keys_of(self._session.execute, table, self._definer.name_of(table.schema, table.name))

    def is_linked(self, table: Table) -> bool:  # noqa: ARG002
        return False  # SQLite checks foreign keys only if a connection asks for it


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
