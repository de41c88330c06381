"""Changes of rows in PostgreSQL.

Rows are sent as literals in multi-row statements, or as lines of a COPY.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from ...events import Row, RowChange, Table
from ...events.per_table import PerTable
from ...failpoint import reach
from ..database import MISSING, Comparison, StatementRejected, check_columns
from ..groups import ChangeGroup
from ..keys import TableKeys
from ..statement import Statement
from .define import PostgresDefiner
from .keys import keys_of
from .plan import STATEMENT_CHARS, Plan
from .refusals import refused_column
from .session import PostgresSession
from .tables import Tables

_FEWEST_TO_COPY: Final = 30
"""Least number of rows for which a COPY is faster than an INSERT."""
_FEWEST_TO_FIND: Final = 4
"""Least number of changes of rows without a key for which one search for all is faster."""


class PostgresApplier:
    max_rows = 10_000

    def __init__(
        self, session: PostgresSession, tables: Tables, definer: PostgresDefiner, *, whole: bool
    ) -> None:
        """With `whole`, updates and deletes compare the whole row."""
        self._session = session
        self._tables = tables
        self._definer = definer
        self._whole = whole
        self._plans = PerTable(self._plan)
        self._others = PerTable(self._other_keys)
        self._linked = PerTable(self._has_foreign_keys)

    def forget(self) -> None:
        """Look at the tables again when they come next."""
        self._plans.clear()
        self._others.clear()
        self._linked.clear()

    def apply(self, groups: Sequence[ChangeGroup]) -> None:
        if len(groups) == 1 and len(groups[0].changes) == 1:
            self._refuse(groups[0].changes[0])
        packet = Packet(self._session)
        for _, run in groupby(groups, key=lambda group: group.table.full_name):
            own = list(run)
            if self._can_sum(own):
                deletes, rows = self._plans[own[0].table].net(own)
                packet.add(deletes)
                self._insert(own[0].table, rows, packet)
                continue
            for group in own:
                if group.op == "insert":
                    self._insert(group.table, [change.after or () for change in group.changes], packet)
                else:
                    packet.add(self._plans[group.table].statements(group))
        packet.send()

    def apply_safely(self, groups: Sequence[ChangeGroup]) -> None:
        packet = Packet(self._session)
        for group in groups:
            others = self._others[group.table]
            packet.add(self._plans[group.table].safe_statements(group, others))
        packet.send()

    def statement(self, group: ChangeGroup, *, safely: bool) -> str:
        plan, others = self._plans[group.table], self._others[group.table]
        statements = plan.safe_statements(group, others) if safely else plan.statements(group)
        return "; ".join(one.text for one in statements)

    def _insert(self, table: Table, rows: list[Row], packet: Packet) -> None:
        plan = self._plans[table]
        if len(rows) < _FEWEST_TO_COPY and not plan.has_large(rows):
            packet.add(plan.inserts(rows))
            return
        packet.send()
        if self._session.copy(plan.copy, plan.blocks(rows)) != len(rows):
            raise StatementRejected(MISSING)
        reach("sink.mid_batch")

    def _can_sum(self, groups: Sequence[ChangeGroup]) -> bool:
        """Return True if changes of a table without a key may be applied as their sum.

        Triggers fire once for each change.
        """
        table = groups[0].table
        if table.key or any(group.table != table for group in groups):
            return False
        to_find = sum(len(group.changes) for group in groups if group.op != "insert")
        return to_find >= _FEWEST_TO_FIND and not self._tables.has_trigger((table.schema, table.name))

    def _refuse(self, change: RowChange) -> None:
        if reason := refused_column(change, dates_as_text=self._tables.dates_as_text):
            raise StatementRejected(reason)

    def _plan(self, table: Table) -> Plan:
        check_columns(self._definer, table)
        types = [self._tables.type_of(column) for column in table.columns]
        return Plan(table, types, self._tables.qualified((table.schema, table.name)), whole=self._whole)

    def _other_keys(self, table: Table) -> list[list[int]]:
        """Return the columns of unique keys besides the primary key; none if the table's rows are referred
        to, since deleting one might delete or change those."""
        own_keys = self.keys_of(table)
        if own_keys.name in own_keys.shared:
            return []
        keys = [[part.column for part in key.parts] for key in own_keys.unique]
        return [key for key in keys if sorted(key) != sorted(table.key)]

    def compare(self, change: RowChange) -> list[Comparison] | None:
        rows = self._session.rows(self._plans[change.table].comparison(change.before or ()))
        return [Comparison(*pair) for pair in zip(rows[0][::2], rows[0][1::2], strict=True)] if rows else None

    def keys_of(self, table: Table) -> TableKeys:
        return keys_of(self._session, self._tables, table)

    def is_linked(self, table: Table) -> bool:
        return self._linked[table]

    def _has_foreign_keys(self, table: Table) -> bool:
        keys = self.keys_of(table)
        return bool(keys.references or keys.shared or keys.taken)


class Packet:
    """Statements that wait to be sent in one message."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session
        self._waiting: list[Statement] = []
        self._chars = 0

    def add(self, statements: Iterable[Statement]) -> None:
        for statement in statements:
            if self._chars + len(statement.text) > STATEMENT_CHARS:
                self.send()
            self._waiting.append(statement)
            self._chars += len(statement.text)

    def send(self) -> None:
        """Raises StatementRejected if a statement has another number of rows."""
        if self._waiting:
            self._session.send(self._waiting)
            self._waiting, self._chars = [], 0
            reach("sink.mid_batch")
