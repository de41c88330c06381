"""One connection to MySQL or MariaDB, for one feed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...errors import Retryable, SinkError
from ...events import Row
from ..address import Address
from ..applied_rows import AppliedRows
from ..database import OWN_SCHEMA, StatementRejected
from ..options import MARK_SCHEMA, MARK_TABLE, MySqlOptions
from ..statement import quoted
from ..worker import Start
from . import text as text
from .apply import MySqlApplier
from .define import MySqlDefiner
from .fit import Fit
from .home import Home
from .session import MySqlSession
from .tables import Tables
from .tidb import MAX_ROW_BYTES

_LOCK_SECONDS: Final = 3
"""Time that a worker waits for a lock before it applies other transactions first."""


class MySqlDatabase:
    """`options.schema`, or the URL's, is the target schema of all tables; without it each goes to its own
    schema, created if missing."""

    def __init__(
        self,
        address: Address,
        options: MySqlOptions,
        feed: str,
        busy_seconds: float | None = None,
        make_home: Callable[[MySqlSession, str, str], Home] = Home,
    ) -> None:
        """`busy_seconds` is the timeout of a statement that waits for a lock; None: the server's.

        `make_home` returns the feed's own tables, from a session, their schema and the feed's name.
        """
        self.feed = feed
        self._made_with = address, options, feed
        self._busy_seconds = busy_seconds
        schema = options.schema or address.database
        host = "127.0.0.1" if address.host in ("", "localhost") else address.host
        server = address.query.get("unix_socket") or f"{host}:{address.port or 3306}"
        self.identity = f"mysql://{server}/{schema or ''}"
        self.session = session = MySqlSession(address, self.identity)
        own = schema or OWN_SCHEMA
        self.own_tables = MySqlOwnTables(session, own)
        self.home = make_home(session, own, feed)
        channel = options.loopback_channel
        self._marks = Marks(session, channel) if channel else None
        self._is_marked = True  # the open SQL transaction, or no mark is needed
        fit = Fit(session, options.collations)
        tables = Tables(session, schema, fit)
        self.tables = MySqlDefiner(session, self.identity, self.home, tables, fit)
        whole = options.verify == "before"
        self.rows = MySqlApplier(session, tables, self.tables, self.home.name, whole=whole)

    def connect(self) -> None:
        self._connect()
        if self._busy_seconds is not None:
            self._wait_for_locks(self._busy_seconds)
        self.home.create()
        if self._marks is not None:
            self._marks.create()

    def _connect(self) -> None:
        self.session.connect()
        self.tables.folds_names = self.session.folds_names

    def _wait_for_locks(self, seconds: float) -> None:
        limit = max(1, round(seconds))
        self.session.execute(f"SET innodb_lock_wait_timeout={limit}, lock_wait_timeout={limit}")

    def close(self) -> None:
        self.rows.forget()
        self.session.close()

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        return self.session.explain(error, doing)

    def begin(self) -> None:
        self.session.large.clear()
        self.session.execute("START TRANSACTION")
        self._is_marked = self._marks is None

    def commit(self) -> None:
        self.session.execute("COMMIT")

    def savepoint(self) -> None:
        if not self._is_marked:  # rows follow
            assert self._marks is not None
            self._marks.mark()
            self._is_marked = True
        self.session.execute("SAVEPOINT tidemill")

    def rollback_to_savepoint(self) -> None:
        self.session.large.clear()
        self.session.execute("ROLLBACK TO SAVEPOINT tidemill")

    def load_checkpoint(self, *, locked: bool = False) -> str | None:
        return self.home.load_checkpoint(locked=locked)

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        return self.home.save_checkpoint(previous_ts, ts, content)

    # --- one of several workers

    @property
    def store(self) -> AppliedRows:
        return self.home.applied

    def another(self) -> MySqlDatabase:
        return MySqlDatabase(*self._made_with)

    def connect_worker(self) -> None:
        self._connect()
        self.session.execute(f"SET innodb_lock_wait_timeout={_LOCK_SECONDS}")
        if self.session.rows("SELECT @@log_bin AND @@binlog_format='STATEMENT'") != [(1,)]:
            # No locks of gaps, which would make workers wait for each other. A log of statements forbids it.
            self.session.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    def begin_work(self, start: Start) -> bool:
        written = list(self.home.applied.statements(start))
        wanted = [0, *(one.rows for one in written), 0]
        texts = [one.text for one in written]
        outcomes = self.session.execute_all(["START TRANSACTION", *texts, "SAVEPOINT tidemill"])
        return [outcome.rows for outcome in outcomes] == wanted

    def rollback(self) -> None:
        self.session.large.clear()
        self.session.execute("ROLLBACK")

    def is_contention(self, error: Exception) -> bool:
        return self.session.is_contention(error)

    def interrupt(self) -> None:
        self.session.interrupt()


_TABLE = f"`{MARK_SCHEMA}`.`{MARK_TABLE}`"
_COLUMNS = (
    "id BIGINT NOT NULL, channel_id BIGINT NOT NULL DEFAULT 0, val BIGINT DEFAULT 0, "
    "channel_info VARCHAR(64), PRIMARY KEY (id, channel_id)"
)
_ID = 1


class Marks:
    """The row of one channel."""

    def __init__(self, session: MySqlSession, channel: int) -> None:
        self._session = session
        self._channel = channel

    def create(self) -> None:
        """Create the table and the row if they are missing."""
        session = self._session
        session.create_schema(MARK_SCHEMA)
        session.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE} ({_COLUMNS}) ENGINE=InnoDB")
        session.execute(f"INSERT IGNORE INTO {_TABLE} (id, channel_id) VALUES ({_ID}, {self._channel})")

    def mark(self) -> None:
        """Mark the open SQL transaction."""
        self._session.execute(
            f"UPDATE {_TABLE} SET val = val + 1 WHERE id = {_ID} AND channel_id = {self._channel}"
        )


class MySqlOwnTables:
    """Tables in `schema`."""

    name_type = "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    text_type = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    table_options = " ENGINE=InnoDB"
    for_update = " FOR UPDATE"
    unix_time = "UNIX_TIMESTAMP()"

    def __init__(self, session: MySqlSession, schema: str) -> None:
        self._session = session
        self._schema = schema
        self.home = f"{text.name(schema)}."

    @property
    def snapshot_ts(self) -> str:
        return "@@tidb_current_ts" if self._session.is_tidb else "NULL"

    @property
    def max_row_bytes(self) -> int | None:
        return MAX_ROW_BYTES if self._session.is_tidb else None

    def has(self, table: str) -> bool:
        rows = self._session.rows(
            "SELECT 1 FROM information_schema.tables "
            f"WHERE table_schema={quoted(self._schema)} AND table_name={quoted(table)}"
        )
        return bool(rows)

    def create(self, table: str, columns: str) -> None:
        self.query(f"CREATE TABLE IF NOT EXISTS {self.home}{table} ({columns}){self.table_options}")

    def query(self, statement: str, *values: str | int | None) -> list[Row]:
        first, *rest = statement.split("?")
        return self._session.rows(
            first + "".join([_literal(value) + part for value, part in zip(values, rest, strict=True)])
        )


def _literal(value: str | int | None) -> str:
    return "NULL" if value is None else quoted(value) if isinstance(value, str) else str(value)
