"""One connection to PostgreSQL, for one feed."""

from __future__ import annotations

from typing import Final

from ...errors import ConfigError, Retryable, SinkError
from ..address import Address
from ..applied_rows import AppliedRows
from ..database import OWN_SCHEMA, StatementRejected
from ..options import PostgresOptions
from ..statement import ANY, Statement
from ..worker import Start
from .apply import PostgresApplier
from .define import PostgresDefiner, PostgresOwnTables
from .home import Home
from .session import PostgresSession
from .tables import Tables

_LOCK_SECONDS: Final = 3
"""Time that a worker waits for a lock before it applies other transactions first."""


class PostgresDatabase:
    def __init__(
        self, address: Address, options: PostgresOptions, feed: str, busy_seconds: float | None = None
    ) -> None:
        """`busy_seconds` is the timeout of a statement that waits for a lock; None: the server's.

        Raises ConfigError if the URL names no database.
        """
        if not address.database:
            raise ConfigError("a PostgreSQL sink needs a database: postgresql://user@host/database")
        self.feed = feed
        self._made_with = address, options, feed
        self._busy_seconds = busy_seconds
        server = f"{address.query.get('host') or address.host or 'localhost'}:{address.port or 5432}"
        self.identity = "/".join(filter(None, [f"postgresql://{server}", address.database, options.schema]))
        self.session = session = PostgresSession(address, self.identity)
        tables = Tables(session, options.schema, dates_as_text=options.dates == "text")
        own = options.schema or OWN_SCHEMA
        self.home = Home(session, tables, own, feed)
        self.own_tables = PostgresOwnTables(session, own)
        self.tables = PostgresDefiner(session, self.identity, tables, self.own_tables)
        self.rows = PostgresApplier(session, tables, self.tables, whole=options.verify == "before")
        self._is_saved = False

    def connect(self) -> None:
        self.session.connect()
        if self._busy_seconds is not None:
            self._wait_for_locks(self._busy_seconds)
        self.home.create()

    def _wait_for_locks(self, seconds: float) -> None:
        self.session.execute(f"SET lock_timeout='{round(seconds * 1000)}ms'")

    def close(self) -> None:
        self.rows.forget()
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

    def load_checkpoint(self, *, locked: bool = False) -> str | None:
        return self.home.load_checkpoint(locked=locked)

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        return self.home.save_checkpoint(previous_ts, ts, content)

    # --- one of several workers

    @property
    def store(self) -> AppliedRows:
        return self.home.applied

    def another(self) -> PostgresDatabase:
        return PostgresDatabase(*self._made_with)

    def connect_worker(self) -> None:
        self.session.connect()
        self._wait_for_locks(_LOCK_SECONDS)

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

    def interrupt(self) -> None:
        self.session.interrupt()
