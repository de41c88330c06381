"""One connection to a DuckDB file, which one process writes, for one feed.

A commit is durable when it returns.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from ...errors import Retryable, SinkError
from ...events import Row
from ..address import Address, path_of
from ..database import CHECKPOINT_TABLE, ObjectRejected, StatementRejected
from ..options import DuckDbOptions
from .apply import DuckDbApplier
from .define import DuckDbDefiner
from .session import DuckDbSession
from .tables import Tables

_REJECTED = (
    duckdb.ConstraintException,
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.InvalidInputException,
)
_OF_AN_OBJECT = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.DependencyException,
    duckdb.NotImplementedException,
    duckdb.ParserException,
)


class DuckDbDatabase:
    def __init__(
        self,
        address: Address,
        options: DuckDbOptions,
        feed: str,
        busy_seconds: float | None = None,  # noqa: ARG002 - one process writes
    ) -> None:
        path = file_of(address)
        self.feed = feed
        self.identity = f"duckdb:{path}"
        self.session = session = DuckDbSession(path)
        tables = Tables(session, options.schema, dates_as_text=options.dates == "text")
        self.own_tables = DuckDbOwnTables(session)
        self.tables = DuckDbDefiner(session, self.identity, tables, self.own_tables)
        self.rows = DuckDbApplier(session, tables, self.tables, whole=options.verify == "before")

    def connect(self) -> None:
        self.session.connect()
        self.session.change(
            f"CREATE TABLE IF NOT EXISTS {CHECKPOINT_TABLE} "
            "(feed VARCHAR PRIMARY KEY, ts BIGINT NOT NULL, checkpoint VARCHAR NOT NULL)"
        )

    def close(self) -> None:
        self.rows.forget()
        self.session.close()

    def begin(self) -> None:
        self.session.begin()

    def commit(self) -> None:
        self.session.commit()

    def savepoint(self) -> None:
        self.session.savepoint()

    def rollback_to_savepoint(self) -> None:
        self.session.rollback_to_savepoint()

    def load_checkpoint(self, *, locked: bool = False) -> str | None:  # noqa: ARG002
        rows = self.session.rows(f"SELECT checkpoint FROM {CHECKPOINT_TABLE} WHERE feed=?", self.feed)
        return str(rows[0][0]) if rows else None

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        if previous_ts is None:
            statement = f"INSERT INTO {CHECKPOINT_TABLE} VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
            return self.session.change(statement, self.feed, ts, content) == 1
        statement = f"UPDATE {CHECKPOINT_TABLE} SET ts=?, checkpoint=? WHERE feed=? AND ts=?"
        return self.session.change(statement, ts, content, self.feed, previous_ts) == 1

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        if not isinstance(error, duckdb.Error):
            return None
        said = f"{self.identity}: {doing}: {error}"
        if "No space left" in str(error):  # of any class: a commit's is that of a conflict
            return SinkError(f"{said}: make room, then start again")
        if isinstance(error, _REJECTED):
            return StatementRejected(str(error))
        if isinstance(error, _OF_AN_OBJECT):
            return ObjectRejected(str(error))
        if isinstance(error, duckdb.TransactionException):
            return Retryable(said)
        if isinstance(error, duckdb.IOException):
            if "set lock on file" in str(error):
                return Retryable(
                    f"{said}: DuckDB lets one process write, and none read meanwhile: end the other"
                )
            return SinkError(f"{said}: does the directory exist, with the right to write in it?")
        return SinkError(said)


def file_of(address: Address) -> Path:
    """Return the file of a URL. Raises ConfigError."""
    return path_of(
        address, "a DuckDB sink needs a file: duckdb:///here.duckdb or duckdb:////var/lib/here.duckdb"
    )


class DuckDbOwnTables:
    home = ""
    name_type = "VARCHAR"
    text_type = "VARCHAR"
    table_options = ""
    for_update = ""
    """There is one writing process at a time."""
    unix_time = "CAST(floor(epoch(now())) AS BIGINT)"
    snapshot_ts = "NULL"
    max_row_bytes = None

    def __init__(self, session: DuckDbSession) -> None:
        self._session = session

    def has(self, table: str) -> bool:
        query = "SELECT 1 FROM duckdb_tables() WHERE database_name=current_catalog() AND schema_name='main'"
        return bool(self._session.rows(f"{query} AND table_name=?", table))

    def create(self, table: str, columns: str) -> None:
        self.query(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")

    def query(self, statement: str, *values: str | int | None) -> list[Row]:
        if statement.startswith("SELECT"):
            return list(self._session.rows(statement, *values))
        self._session.change(statement, *values)
        return []
