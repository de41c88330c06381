"""One connection to a SQLite file, for one feed."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import Retryable, SinkError
from ..address import Address
from ..database import CHECKPOINT_TABLE, StatementRejected
from ..options import SqliteOptions
from .apply import SqliteApplier
from .define import SqliteDefiner, SqliteOwnTables
from .session import SqliteSession


class SqliteDatabase:
    def __init__(
        self,
        address: Address,
        options: SqliteOptions,
        feed: str,
        busy_seconds: float | None = None,
        new_session: Callable[[Address, float | None], SqliteSession] = SqliteSession,
    ) -> None:
        """`busy_seconds` is the timeout of a call that waits for another writer. `new_session`
        makes the connection."""
        self.feed = feed
        self._session = session = new_session(address, busy_seconds)
        self.identity = session.identity
        self.own_tables = SqliteOwnTables(session.execute)
        self.tables = SqliteDefiner(session, options.table_name, self.own_tables)
        self.rows = SqliteApplier(session, self.tables, whole=options.verify == "before")
        self._saved = False

    def connect(self) -> None:
        self._session.connect()
        self._session.execute(
            f"CREATE TABLE IF NOT EXISTS {CHECKPOINT_TABLE} "
            "(feed TEXT PRIMARY KEY, ts INTEGER NOT NULL, checkpoint TEXT NOT NULL)"
        )

    def close(self) -> None:
        self.rows.forget()
        self._session.close()

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        return self._session.explain(error, doing)

    def begin(self) -> None:
        self._session.execute("BEGIN IMMEDIATE")
        self._saved = False

    def commit(self) -> None:
        self._session.execute("COMMIT")

    def savepoint(self) -> None:
        if self._saved:  # savepoints nest, and each keeps the pages changed after it
            self._session.execute("RELEASE tidemill")
        self._session.execute("SAVEPOINT tidemill")
        self._saved = True

    def rollback_to_savepoint(self) -> None:
        self._session.execute("ROLLBACK TO tidemill")

    def load_checkpoint(self, *, locked: bool = False) -> str | None:  # noqa: ARG002
        query = f"SELECT checkpoint FROM {CHECKPOINT_TABLE} WHERE feed=?"
        row = self._session.execute(query, self.feed).fetchone()
        return row[0] if row else None

    def save_checkpoint(self, previous_ts: int | None, ts: int, text: str) -> bool:
        if previous_ts is None:
            statement = f"INSERT OR IGNORE INTO {CHECKPOINT_TABLE} VALUES (?, ?, ?)"
            return self._session.execute(statement, self.feed, ts, text).rowcount == 1
        statement = f"UPDATE {CHECKPOINT_TABLE} SET ts=?, checkpoint=? WHERE feed=? AND ts=?"
        return self._session.execute(statement, ts, text, self.feed, previous_ts).rowcount == 1
