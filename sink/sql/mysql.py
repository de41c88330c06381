"""MySQL and MariaDB as a target.

Rows are sent as literals in multi-row statements, many statements per packet. Each statement is sent with the
number of rows that it must affect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from sqlalchemy import URL

from ...errors import Retryable, SinkError
from ...events import Ddl, RowChange, Table
from ...failpoint import reach
from ..per_table import PerTable
from . import mysql_text as text
from .groups import Group
from .mysql_changes import SchemaChanges
from .mysql_fit import Fit
from .mysql_home import Home
from .mysql_keyless import FEWEST, KeylessTable
from .mysql_plan import Plan, Statement
from .mysql_session import MySqlSession
from .mysql_tables import Tables
from .options import Verify
from .target import MISSING, OWN_SCHEMA, Comparison, StatementRejected, check_columns

_PACKET_CHARS: Final = 1 << 20
"""Maximum number of characters of a packet; larger packets are hardly faster."""
_PACKET_SHARE: Final = 8
"""Divisor of the server's packet bytes for the characters of a multi-row statement: a character has up to
four bytes."""


class MySqlTarget:
    """`schema` is the target schema of all tables; without it each goes to its own schema, created if
    missing."""

    max_rows = 1000
    ddl_commits = True

    def __init__(
        self,
        url: URL,
        feed: str,
        schema: str | None = None,
        collations: Mapping[str, str] | None = None,
        verify: Verify = "key",
    ) -> None:
        self.feed = feed
        self._whole = verify == "before"
        schema = schema or url.database
        host = "127.0.0.1" if url.host in (None, "localhost") else url.host
        server = url.query.get("unix_socket") or f"{host}:{url.port or 3306}"
        self.identity = f"mysql://{server}/{schema or ''}"
        self.session = MySqlSession(url, self.identity)
        self._fit = Fit(self.session, collations or {})
        self.home = Home(self.session, schema or OWN_SCHEMA, feed)
        self._tables = Tables(self.session, schema, self._fit)
        self._changes = SchemaChanges(self.session, self.home, self._tables, self._fit)
        self._plans = PerTable(self._plan)
        self._keyless = PerTable(self._keyless_table)
        self.folds_names = False

    def connect(self) -> None:
        self.session.connect()
        self.folds_names = self.session.folds_names
        self.home.create()

    def close(self) -> None:
        self._plans.clear()
        self._keyless.clear()
        self.session.close()

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        return self.session.explain(error, doing)

    def begin(self) -> None:
        self.session.execute("START TRANSACTION")

    def commit(self) -> None:
        self.session.execute("COMMIT")

    def savepoint(self) -> None:
        self.session.execute("SAVEPOINT tidemill")

    def rollback_to_savepoint(self) -> None:
        self.session.execute("ROLLBACK TO SAVEPOINT tidemill")

    def load_checkpoint(self) -> str | None:
        return self.home.load_checkpoint()

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        return self.home.save_checkpoint(previous_ts, ts, content)

    # --- rows

    def apply(self, groups: Sequence[Group]) -> None:
        most = min(_PACKET_CHARS, self.session.packet_bytes // _PACKET_SHARE)
        waiting: list[Statement] = []
        size = 0
        for group in self._apply_keyless(groups, most):
            for statement in self._plans[group.table].statements(group, most):
                if waiting and size + len(statement.text) > most:
                    self._send(waiting)
                    waiting, size = [], 0
                waiting.append(statement)
                size += len(statement.text) + 1
        if waiting:
            self._send(waiting)

    def _apply_keyless(self, groups: Sequence[Group], max_chars: int) -> list[Group]:
        """Apply many changes of a table without a key together; return the groups that are left."""
        left: list[Group] = []
        for _, run in groupby(groups, key=lambda group: group.table.full_name):
            own = list(run)
            table = own[0].table
            to_find = sum(len(group.changes) for group in own if group.op != "insert")
            is_one = not table.key and all(group.table == table for group in own)
            if not (is_one and to_find >= FEWEST and self._keyless[table].apply(own, max_chars)):
                left += own
        return left

    def _send(self, statements: list[Statement]) -> None:
        packet = ";".join([statement.text for statement in statements])
        limit = self.session.packet_bytes
        if len(packet) * 4 >= limit and (size := len(packet.encode())) >= limit:
            if len(statements) > 1:
                for statement in statements:
                    self._send([statement])
                return
            raise SinkError(
                f"a statement of {size} bytes is more than the server takes: "
                f"raise its max_allowed_packet (now {limit}) to at least {size + 1}"
            )
        with self.session.cursor() as cursor:
            cursor.execute(packet)
            touched = [cursor.rowcount]
            while cursor.nextset():
                touched.append(cursor.rowcount)
        if touched != [statement.rows for statement in statements]:
            raise StatementRejected(MISSING)
        reach("sink.mid_batch")

    def _plan(self, table: Table) -> Plan:
        check_columns(self, table)
        return Plan(table, self._qualified(table), whole=self._whole, native_json=not self.session.is_mariadb)

    def compare(self, change: RowChange) -> list[Comparison] | None:
        rows = self.session.rows(self._plans[change.table].comparison(change.before or ()))
        return [Comparison(*pair) for pair in zip(rows[0][::2], rows[0][1::2], strict=True)] if rows else None

    def _keyless_table(self, table: Table) -> KeylessTable:
        check_columns(self, table)
        schema = self._tables.schema_of((table.schema, table.name))
        return KeylessTable(self.session, self._send, table, schema, self.home.name)

    # --- tables

    def name_of(self, schema: str, table: str) -> str:
        return f"{self._tables.schema_of((schema, table))}.{table}"

    def columns(self, table: Table) -> dict[str, str] | None:
        return self._tables.columns((table.schema, table.name))

    def wanted_columns(self, table: Table) -> dict[str, str]:
        types = self._tables.types(table.columns)
        return {
            column.name: type_ + (" key" if index in table.key else "")
            for index, (column, type_) in enumerate(zip(table.columns, types, strict=True))
        }

    def is_empty(self, table: Table) -> bool:
        return not self._tables.has_row((table.schema, table.name))

    def create_table(self, table: Table) -> None:
        self.session.create_schema(self._tables.schema_of((table.schema, table.name)))
        self.session.define(text.create_table(self._fit.table(table), self._qualified(table)))

    def drop_table(self, table: Table) -> None:
        self.session.execute(f"DROP TABLE IF EXISTS {self._qualified(table)}")

    def alter(self, ddl: Ddl) -> None:
        self._changes.apply(ddl)

    def forget_alteration(self) -> None:
        self.home.is_intended = True

    def _qualified(self, table: Table) -> str:
        return self._tables.qualified((table.schema, table.name))
