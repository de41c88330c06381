"""Changes of rows in MySQL and MariaDB.

Rows are sent as literals in multi-row statements, many statements per packet. Each statement is sent with the
number of rows that it must affect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from ...events import RowChange, Table
from ...events.per_table import PerTable
from ...failpoint import reach
from ..database import MISSING, Comparison, ObjectRejected, StatementRejected, check_columns
from ..groups import ChangeGroup
from ..keys import TableKeys
from ..statement import ANY, Statement, packets
from .connection import StatementOutcome
from .define import MySqlDefiner
from .keyless import FEWEST, KeylessTable
from .keys import has_only_key, keys_of
from .plan import Plan
from .session import LoadRejected, MySqlSession
from .tables import Tables

_PACKET_CHARS: Final = 1 << 18
"""Maximum number of characters of a packet: the next one is rendered while the server works on it."""
_PACKET_SHARE: Final = 8
"""Divisor of the server's packet bytes for the characters of a multi-row statement: a character has up to
four bytes."""


class MySqlApplier:
    max_rows = 1000

    def __init__(
        self, session: MySqlSession, tables: Tables, definer: MySqlDefiner, home: str, *, whole: bool
    ) -> None:
        """`home` is the quoted schema of the feed's own tables. With `whole`, updates and deletes compare the
        whole row."""
        self._session = session
        self._tables = tables
        self._definer = definer
        self._home = home
        self._whole = whole
        self._plans = PerTable(self._plan)
        self._keyless = PerTable(self._keyless_table)

    def forget(self) -> None:
        """Look at the tables again when they come next."""
        self._plans.clear()
        self._keyless.clear()

    def apply(self, groups: Sequence[ChangeGroup]) -> None:
        most = self._max_chars
        left = self._apply_keyless(groups, most)
        work = [(self._plans[group.table], group) for group in left]  # plans ask the server
        try:
            self._send_all(one for plan, group in work for one in plan.statements(group, most))
        except LoadRejected:
            for plan, _ in work:
                plan.loads = False
            raise

    def apply_safely(self, groups: Sequence[ChangeGroup]) -> None:
        most = self._max_chars
        work = [(self._plans[group.table], group) for group in groups]
        self._send_all(one for plan, group in work for one in plan.safe_statements(group, most))

    @property
    def _max_chars(self) -> int:
        return min(_PACKET_CHARS, self._session.packet_bytes // _PACKET_SHARE)

    def _send_all(self, statements: Iterable[Statement]) -> None:
        """Send statements in packets; the next one is rendered while the server works on the last one."""
        sent: list[Statement] = []
        for packet in packets(statements, self._max_chars, self._session.large.size):
            self._receive(sent)
            sent = self._send_first(packet)
        self._receive(sent)

    def _apply_keyless(self, groups: Sequence[ChangeGroup], max_chars: int) -> list[ChangeGroup]:
        """Apply many changes of a table without a key together; return the groups that are left."""
        left: list[ChangeGroup] = []
        for _, run in groupby(groups, key=lambda group: group.table.full_name):
            own = list(run)
            table = own[0].table
            to_find = sum(len(group.changes) for group in own if group.op != "insert")
            is_one = not table.key and all(group.table == table for group in own)
            if not (is_one and to_find >= FEWEST and self._keyless[table].apply(own, max_chars)):
                left += own
        return left

    def _send(self, statements: list[Statement]) -> None:
        self._receive(self._send_first(statements))

    def _send_first(self, statements: list[Statement]) -> list[Statement]:
        """Send a packet without waiting for its outcomes; return the statements that have one to receive.

        Statements that are too large for one packet are sent one by one. One with invalid values is run.
        """
        if statements[0].lines:
            self._session.load(statements[0].text, statements[0].lines)
            return statements
        packet = ";".join([statement.text for statement in statements])
        limit, large = self._session.packet_bytes, self._session.large
        if large.size(packet) * 4 >= limit and (size := large.byte_size(packet)) >= limit:
            if len(statements) > 1:
                for statement in statements[:-1]:
                    self._send([statement])
                return self._send_first(statements[-1:])
            raise ObjectRejected(
                f"a statement of {size} bytes is more than the server takes: "
                f"raise its max_allowed_packet (now {limit}) to at least {size + 1}"
            )
        if statements[0].invalid:
            self._check_counts(statements, [self._session.execute_invalid(packet, statements[0].invalid)])
            return []
        self._session.connection.send(packet, large)
        return statements

    def _receive(self, statements: list[Statement]) -> None:
        """Receive the outcomes of sent statements, if there are any. Raises StatementRejected."""
        if statements:
            self._check_counts(statements, self._session.connection.receive())

    def _check_counts(self, statements: list[Statement], outcomes: list[StatementOutcome]) -> None:
        for statement, outcome in zip(statements, outcomes, strict=True):
            if statement.lines and (outcome.warnings or outcome.rows != statement.rows):
                raise LoadRejected("LOAD DATA LOCAL would change or leave out a row")
            if statement.rows not in (outcome.duplicates if statement.replaces else outcome.rows, ANY):
                raise StatementRejected(MISSING)
        reach("sink.mid_batch")

    def statement(self, group: ChangeGroup, *, safely: bool) -> str:
        plan = self._plans[group.table]
        statements = plan.safe_statements(group, 1) if safely else plan.statements(group, 1)
        return self._session.large.shown("; ".join(one.text for one in statements))

    def _plan(self, table: Table) -> Plan:
        check_columns(self._definer, table)
        return Plan(
            table,
            self._tables.qualified((table.schema, table.name)),
            whole=self._whole,
            native_json=not self._session.is_mariadb,
            large=self._session.large,
            inserted=self._session.inserted if has_only_key(self._session, self._tables, table) else "",
            loads=self._session.loads_lines and self._definer.keeps_rows(table),
        )

    def compare(self, change: RowChange) -> list[Comparison] | None:
        rows = self._session.rows(self._plans[change.table].comparison(change.before or ()))
        return [Comparison(*pair) for pair in zip(rows[0][::2], rows[0][1::2], strict=True)] if rows else None

    def _keyless_table(self, table: Table) -> KeylessTable:
        check_columns(self._definer, table)
        schema = self._tables.schema_of((table.schema, table.name))
        return KeylessTable(self._session, self._send, table, schema, self._home)

    def keys_of(self, table: Table) -> TableKeys:
        return keys_of(self._session, self._tables, table)

    def is_linked(self, table: Table) -> bool:  # noqa: ARG002
        return False  # this session doesn't check foreign keys
