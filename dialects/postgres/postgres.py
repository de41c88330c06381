"""PostgreSQL as a target.

Rows are sent as literals in multi-row statements, or as lines of a COPY. Schema changes are part of the
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Final

from sqlalchemy import URL

from ...errors import ConfigError, Retryable, SinkError
from ...events import Ddl, Details, Row, RowChange, Table
from ...events.per_table import PerTable
from ...failpoint import reach
from ..groups import Group
from ..keys import TableKeys
from ..options import PostgresOptions
from ..shared_changes import SharedChanges
from ..statement import ANY, Statement
from ..target import MISSING, OWN_SCHEMA, Comparison, StatementRejected, check_columns
from ..worker import Start
from .applied import AppliedRows
from .changes import SchemaChanges
from .home import Home
from .keys import keys_of
from .own import PostgresOwnTables
from .plan import STATEMENT_CHARS, Plan
from .refusals import refused_column
from .session import PostgresSession
from .tables import Tables

_LOCK_SECONDS: Final = 3
"""Time that a worker waits for a lock before it applies other transactions first."""
_FEWEST_TO_COPY: Final = 30
"""Least number of rows for which a COPY is faster than an INSERT."""
_FEWEST_TO_FIND: Final = 4
"""Least number of changes of rows without a key for which one search for all is faster."""


class PostgresTarget:
    max_rows = 10_000
    ddl_commits = False
    folds_names = False

    def __init__(self, url: URL, feed: str, options: PostgresOptions) -> None:
        """Raises ConfigError if the URL names no database."""
        if not url.database:
            raise ConfigError("a PostgreSQL sink needs a database: postgresql://user@host/database")
        self.feed = feed
        self._made_with = url, feed, options
        self._whole = options.verify == "before"
        server = f"{url.query.get('host') or url.host or 'localhost'}:{url.port or 5432}"
        self.identity = "/".join(filter(None, [f"postgresql://{server}", url.database, options.schema]))
        self.session = PostgresSession(url, self.identity)
        self._tables = Tables(self.session, options.schema, dates_as_text=options.dates == "text")
        self.home = Home(self.session, self._tables, options.schema or OWN_SCHEMA, feed)
        self.own_tables = PostgresOwnTables(self.session, options.schema or OWN_SCHEMA)
        self._changes = SchemaChanges(self.session, self._tables)
        self._shared = SharedChanges(self.own_tables)
        self._plans = PerTable(self._plan)
        self._others = PerTable(self._other_keys)
        self._linked = PerTable(self._has_foreign_keys)
        self._is_saved = False

    def connect(self) -> None:
        self.session.connect()
        self.home.create()

    def close(self) -> None:
        self._plans.clear()
        self._others.clear()
        self._linked.clear()
        self.session.close()

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        return self.session.explain(error, doing)

    def begin(self) -> None:
        self.session.defer("BEGIN")
        self._is_saved = False

    def commit(self) -> None:
        self.session.commit()

    def savepoint(self) -> None:
        if self._is_saved:  # savepoints nest
            self.session.defer("RELEASE SAVEPOINT tidemill")
        self.session.defer("SAVEPOINT tidemill")
        self._is_saved = True

    def rollback_to_savepoint(self) -> None:
        self.session.execute("ROLLBACK TO SAVEPOINT tidemill")

    def load_checkpoint(self) -> str | None:
        return self.home.load_checkpoint()

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        return self.home.save_checkpoint(previous_ts, ts, content)

    # --- one of several workers

    @property
    def store(self) -> AppliedRows:
        return self.home.applied

    def another(self) -> PostgresTarget:
        return PostgresTarget(*self._made_with)

    def connect_worker(self) -> None:
        self.session.connect()
        self.session.execute(f"SET lock_timeout='{_LOCK_SECONDS}s'")

    def begin_work(self, start: Start) -> bool:
        self.begin()
        self._is_saved = True
        try:
            self.session.send([*self.home.applied.statements(start), Statement("SAVEPOINT tidemill", ANY)])
        except StatementRejected:
            return False
        return True

    def rollback(self) -> None:
        self.session.rollback()

    def is_contention(self, error: Exception) -> bool:
        return self.session.is_contention(error)

    def keys_of(self, table: Table) -> TableKeys:
        return keys_of(self.session, self._tables, table)

    def is_linked(self, table: Table) -> bool:
        return self._linked[table]

    def _has_foreign_keys(self, table: Table) -> bool:
        found = self.keys_of(table)
        return bool(found.references or found.shared or found.taken)

    def interrupt(self) -> None:
        self.session.interrupt()

    # --- rows

    def apply(self, groups: Sequence[Group]) -> None:
        if len(groups) == 1 and len(groups[0].changes) == 1:
            self._refuse(groups[0].changes[0])
        packet = Packet(self.session)
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

    def apply_safely(self, groups: Sequence[Group]) -> None:
        packet = Packet(self.session)
        for group in groups:
            others = self._others[group.table]
            packet.add(self._plans[group.table].safe_statements(group, others))
        packet.send()

    def statement(self, group: Group, *, safely: bool) -> str:
        plan, others = self._plans[group.table], self._others[group.table]
        statements = plan.safe_statements(group, others) if safely else plan.statements(group)
        return "; ".join(one.text for one in statements)

    def _insert(self, table: Table, rows: list[Row], packet: Packet) -> None:
        plan = self._plans[table]
        if len(rows) < _FEWEST_TO_COPY:
            packet.add(plan.inserts(rows))
            return
        packet.send()
        if self.session.copy(plan.copy, plan.blocks(rows)) != len(rows):
            raise StatementRejected(MISSING)
        reach("sink.mid_batch")

    def _can_sum(self, groups: Sequence[Group]) -> bool:
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
        check_columns(self, table)
        types = [self._tables.type_of(column) for column in table.columns]
        return Plan(table, types, self._qualified(table), whole=self._whole)

    def _other_keys(self, table: Table) -> list[list[int]]:
        """Return the columns of unique keys besides the primary key; none if the table's rows are referred
        to, since deleting one might delete or change those."""
        found = self.keys_of(table)
        if found.name in found.shared:
            return []
        keys = [[part.column for part in key.parts] for key in found.unique]
        return [key for key in keys if sorted(key) != sorted(table.key)]

    def compare(self, change: RowChange) -> list[Comparison] | None:
        rows = self.session.rows(self._plans[change.table].comparison(change.before or ()))
        return [Comparison(*pair) for pair in zip(rows[0][::2], rows[0][1::2], strict=True)] if rows else None

    # --- tables

    def name_of(self, schema: str, table: str) -> str:
        return f"{self._tables.schema_of((schema, table))}.{table}"

    def columns(self, table: Table) -> dict[str, str] | None:
        found = self._tables.find((table.schema, table.name))
        return {column.name: column.type + (" key" if column.is_key else "") for column in found} or None

    def wanted_columns(self, table: Table) -> dict[str, str]:
        return self._tables.wanted(table)

    def is_empty(self, table: Table) -> bool:
        return not self._tables.has_row((table.schema, table.name))

    def keeps_rows(self, table: Table) -> bool:  # noqa: ARG002
        return True

    def undo_creation(self) -> None:
        """Do nothing: a table is created in the transaction of the checkpoint."""

    def create_table(self, table: Table, details: Details | None = None, *, is_shared: bool = False) -> None:  # noqa: ARG002
        self._changes.create(table)

    def drop_table(self, table: Table) -> None:
        self.session.execute(f"DROP TABLE IF EXISTS {self._qualified(table)}")

    @contextmanager
    def defining(self, schema: str, table: str) -> Iterator[None]:
        name = self._tables.qualified((schema, table))
        self.session.rows("SELECT pg_advisory_xact_lock(hashtext(%s))", f"tidemill {name}")
        yield

    def has_shared(self, ddl: Ddl) -> bool:
        return self._shared.has(ddl)

    def note_shared(self, ddl: Ddl) -> None:
        self._shared.note(ddl)

    def alter(self, ddl: Ddl) -> None:
        if ddl.shared is not None:
            if self._shared.has(ddl):
                return
            self._shared.note(ddl)
        self._changes.apply(ddl)

    def forget_alteration(self) -> None:
        """Do nothing: a schema change is part of its transaction."""

    def _qualified(self, table: Table) -> str:
        return self._tables.qualified((table.schema, table.name))


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
