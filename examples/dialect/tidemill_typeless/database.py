"""One connection for one feed: its transactions and its checkpoint."""

from __future__ import annotations

from pathlib import Path

from tidemill.dialects.database import CHECKPOINT_TABLE, StatementRejected
from tidemill.errors import Retryable, SinkError

from .apply import TypelessApplier
from .define import TypelessDefiner
from .entry import TypelessOptions
from .own import TypelessOwnTables
from .session import Session


class TypelessDatabase:
    def __init__(self, file: Path, options: TypelessOptions, feed: str, busy_seconds: float | None) -> None:
        self.feed = feed
        self._session = session = Session(file, options.separator, busy_seconds)
        self.identity = session.identity
        self.own_tables = TypelessOwnTables(session)
        self.tables = TypelessDefiner(session, self.own_tables)
        self.rows = TypelessApplier(session, self.tables, whole=options.verify == "before")

    def connect(self) -> None:
        self._session.connect()
        self._session.execute(
            f"CREATE TABLE IF NOT EXISTS {CHECKPOINT_TABLE} (feed PRIMARY KEY, ts, checkpoint)"
        )

    def close(self) -> None:
        self.rows.forget()
        self._session.close()

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        return self._session.explain(error, doing)

    def begin(self) -> None:
        self._session.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._session.execute("COMMIT")

    def savepoint(self) -> None:
        self._session.execute("SAVEPOINT tidemill")

    def rollback_to_savepoint(self) -> None:
        self._session.execute("ROLLBACK TO tidemill")

    def load_checkpoint(self, *, locked: bool = False) -> str | None:
        rows = self._session.rows(f"SELECT checkpoint FROM {CHECKPOINT_TABLE} WHERE feed=?", self.feed)
        return rows[0][0] if rows else None

    def save_checkpoint(self, previous_ts: int | None, ts: int, text: str) -> bool:
        if previous_ts is None:
            statement = f"INSERT OR IGNORE INTO {CHECKPOINT_TABLE} VALUES (?, ?, ?)"
            return self._session.execute(statement, self.feed, ts, text).rowcount == 1
        statement = f"UPDATE {CHECKPOINT_TABLE} SET ts=?, checkpoint=? WHERE feed=? AND ts=?"
        return self._session.execute(statement, ts, text, self.feed, previous_ts).rowcount == 1
