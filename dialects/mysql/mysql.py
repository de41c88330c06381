"""MySQL and MariaDB as a target.

Rows are sent as literals in multi-row statements, many statements per packet. Each statement is sent with the
number of rows that it must affect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import groupby
from typing import Final

from sqlalchemy import URL

from ...errors import Retryable, SinkError
from ...events import Ddl, Details, RowChange, Table
from ...events.per_table import PerTable
from ...failpoint import reach
from ..groups import Group
from ..keys import TableKeys
from ..options import Verify
from ..statement import ANY, Statement, packets
from ..target import MISSING, OWN_SCHEMA, Comparison, StatementRejected, check_columns
from ..worker import Start
from . import text as text
from .applied import AppliedRows
from .changes import SchemaChanges
from .connection import Outcome
from .details import created
from .fit import Fit
from .home import Home
from .keyless import FEWEST, KeylessTable
from .keys import has_only_key, keys_of
from .marks import Marks
from .own import MySqlOwnTables
from .plan import Plan
from .session import LoadRejected, MySqlSession, quoted
from .tables import Tables

_PACKET_CHARS: Final = 1 << 18
"""Maximum number of characters of a packet: the next one is rendered while the server works on it."""
_PACKET_SHARE: Final = 8
"""Divisor of the server's packet bytes for the characters of a multi-row statement: a character has up to
four bytes."""

_LOCK_SECONDS: Final = 3
"""Time that a worker waits for a lock before it applies other transactions first."""


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
        make_home: Callable[[MySqlSession, str, str], Home] = Home,
    ) -> None:
        """`make_home` returns the feed's own tables, from a session, their schema and the feed's name."""
        self.feed = feed
        self._whole = verify == "before"
        self._made_with = url, feed, schema, collations, verify
        schema = schema or url.database
        host = "127.0.0.1" if url.host in (None, "localhost") else url.host
        server = url.query.get("unix_socket") or f"{host}:{url.port or 3306}"
        self.identity = f"mysql://{server}/{schema or ''}"
        self.session = MySqlSession(url, self.identity)
        self._fit = Fit(self.session, collations or {})
        self.own_tables = MySqlOwnTables(self.session, schema or OWN_SCHEMA)
        self.home = make_home(self.session, schema or OWN_SCHEMA, feed)
        self.marks: Marks | None = None
        """Marks of its SQL transactions with rows; None: they have none."""
        self._is_marked = True  # the open SQL transaction, or no mark is needed
        self._tables = Tables(self.session, schema, self._fit)
        self._changes = SchemaChanges(self.session, self.home, self._tables, self._fit)
        self._plans = PerTable(self._plan)
        self._keyless = PerTable(self._keyless_table)
        self.folds_names = False

    def connect(self) -> None:
        self.session.connect()
        self.folds_names = self.session.folds_names
        self.home.create()
        if self.marks is not None:
            self.marks.create()

    def close(self) -> None:
        self._plans.clear()
        self._keyless.clear()
        self.session.close()

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        return self.session.explain(error, doing)

    def begin(self) -> None:
        self.session.large.clear()
        self.session.execute("START TRANSACTION")
        self._is_marked = self.marks is None

    def commit(self) -> None:
        self.session.execute("COMMIT")

    def savepoint(self) -> None:
        if not self._is_marked:  # rows follow
            assert self.marks is not None
            self.marks.mark()
            self._is_marked = True
        self.session.execute("SAVEPOINT tidemill")

    def rollback_to_savepoint(self) -> None:
        self.session.large.clear()
        self.session.execute("ROLLBACK TO SAVEPOINT tidemill")

    def load_checkpoint(self) -> str | None:
        return self.home.load_checkpoint()

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        return self.home.save_checkpoint(previous_ts, ts, content)

    # --- one of several workers

    @property
    def store(self) -> AppliedRows:
        return self.home.applied

    def another(self) -> MySqlTarget:
        return MySqlTarget(*self._made_with)

    def connect_worker(self) -> None:
        self.session.connect()
        self.folds_names = self.session.folds_names
        self.session.execute(f"SET innodb_lock_wait_timeout={_LOCK_SECONDS}")
        if self.session.rows("SELECT @@log_bin AND @@binlog_format='STATEMENT'") != [(1,)]:
            # No locks of gaps, which would make workers wait for each other. A log of statements forbids it.
            self.session.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    def begin_work(self, start: Start) -> bool:
        written = list(self.home.applied.statements(start))
        wanted = [0, *(rows for _, rows in written), 0]
        texts = [text for text, _ in written]
        outcomes = self.session.execute_all(["START TRANSACTION", *texts, "SAVEPOINT tidemill"])
        return [outcome.rows for outcome in outcomes] == wanted

    def rollback(self) -> None:
        self.session.large.clear()
        self.session.execute("ROLLBACK")

    def is_contention(self, error: Exception) -> bool:
        return self.session.is_contention(error)

    def keys_of(self, table: Table) -> TableKeys:
        return keys_of(self.session, self._tables, table)

    def is_linked(self, table: Table) -> bool:  # noqa: ARG002
        return False  # this session doesn't check foreign keys

    def interrupt(self) -> None:
        self.session.interrupt()

    # --- rows

    def apply(self, groups: Sequence[Group]) -> None:
        most = self._max_chars
        left = self._apply_keyless(groups, most)
        work = [(self._plans[group.table], group) for group in left]  # plans ask the server
        try:
            self._send_all(one for plan, group in work for one in plan.statements(group, most))
        except LoadRejected:
            for plan, _ in work:
                plan.loads = False
            raise

    def apply_safely(self, groups: Sequence[Group]) -> None:
        most = self._max_chars
        work = [(self._plans[group.table], group) for group in groups]
        self._send_all(one for plan, group in work for one in plan.safe_statements(group, most))

    @property
    def _max_chars(self) -> int:
        return min(_PACKET_CHARS, self.session.packet_bytes // _PACKET_SHARE)

    def _send_all(self, statements: Iterable[Statement]) -> None:
        """Send statements in packets; the next one is rendered while the server works on the last one."""
        sent: list[Statement] = []
        for packet in packets(statements, self._max_chars, self.session.large.size):
            self._receive(sent)
            sent = self._send_first(packet)
        self._receive(sent)

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
        self._receive(self._send_first(statements))

    def _send_first(self, statements: list[Statement]) -> list[Statement]:
        """Send a packet without waiting for its outcomes; return the statements that have one to receive.

        Statements that are too large for one packet are sent one by one. One with invalid values is run.
        """
        if statements[0].lines:
            self.session.load(statements[0].text, statements[0].lines)
            return statements
        packet = ";".join([statement.text for statement in statements])
        limit, large = self.session.packet_bytes, self.session.large
        if large.size(packet) * 4 >= limit and (size := large.byte_size(packet)) >= limit:
            if len(statements) > 1:
                for statement in statements[:-1]:
                    self._send([statement])
                return self._send_first(statements[-1:])
            raise SinkError(
                f"a statement of {size} bytes is more than the server takes: "
                f"raise its max_allowed_packet (now {limit}) to at least {size + 1}"
            )
        if statements[0].invalid:
            self._check_counts(statements, [self.session.execute_invalid(packet, statements[0].invalid)])
            return []
        self.session.connection.send(packet, large)
        return statements

    def _receive(self, statements: list[Statement]) -> None:
        """Receive the outcomes of sent statements, if there are any. Raises StatementRejected."""
        if statements:
            self._check_counts(statements, self.session.connection.receive())

    def _check_counts(self, statements: list[Statement], outcomes: list[Outcome]) -> None:
        for statement, outcome in zip(statements, outcomes, strict=True):
            if statement.lines and (outcome.warnings or outcome.rows != statement.rows):
                raise LoadRejected("LOAD DATA LOCAL would change or leave out a row")
            if statement.rows not in (outcome.duplicates if statement.replaces else outcome.rows, ANY):
                raise StatementRejected(MISSING)
        reach("sink.mid_batch")

    def statement(self, group: Group, *, safely: bool) -> str:
        plan = self._plans[group.table]
        found = plan.safe_statements(group, 1) if safely else plan.statements(group, 1)
        return self.session.large.shown("; ".join(one.text for one in found))

    def _plan(self, table: Table) -> Plan:
        check_columns(self, table)
        return Plan(
            table,
            self._qualified(table),
            whole=self._whole,
            native_json=not self.session.is_mariadb,
            large=self.session.large,
            inserted=self.session.inserted if has_only_key(self.session, self._tables, table) else "",
            loads=self.session.loads_lines and self.keeps_rows(table),
        )

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

    def keeps_rows(self, table: Table) -> bool:
        return self._tables.is_transactional((table.schema, table.name))

    def undo_creation(self) -> None:
        name = self.home.unfinished_creation()
        if name and self._tables.columns(name) is not None and not self._tables.has_row(name):
            self.session.execute(f"DROP TABLE {self._tables.qualified(name)}")

    def create_table(self, table: Table, details: Details | None = None, *, is_shared: bool = False) -> None:
        if not is_shared:
            self.home.intend_creation((table.schema, table.name))
        self.session.create_schema(self._tables.schema_of((table.schema, table.name)))
        fitted, name = self._fit.table(table), self._qualified(table)
        if details is None:
            self.session.define(text.create_table(fitted, name))
        else:
            details = self._fit.details(details)
            self.session.define(created(fitted, details, name, is_mariadb=self.session.is_mariadb))

    def drop_table(self, table: Table) -> None:
        self.session.execute(f"DROP TABLE IF EXISTS {self._qualified(table)}")

    @contextmanager
    def defining(self, schema: str, table: str) -> Iterator[None]:
        name = self._tables.qualified((schema, table))
        lock = quoted(f"tidemill {sha256(name.encode()).hexdigest()[:40]}")
        ((is_held,),) = self.session.rows(f"SELECT GET_LOCK({lock}, {_LOCK_SECONDS})")
        if not is_held:
            raise Retryable(f"{self.identity}: another feed is defining {name}")
        yield
        self.session.rows(f"SELECT RELEASE_LOCK({lock})")  # after an error, the end of the session does it

    def has_shared(self, ddl: Ddl) -> bool:
        return self.home.has_shared(ddl)

    def note_shared(self, ddl: Ddl) -> None:
        self.home.note_shared(ddl)

    def alter(self, ddl: Ddl) -> None:
        self._changes.apply(ddl)

    def _qualified(self, table: Table) -> str:
        return self._tables.qualified((table.schema, table.name))
