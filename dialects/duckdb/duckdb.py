"""DuckDB as a target: a file that one process writes.

Rows come as Arrow columns. Schema changes are part of the transaction, and a commit is durable when it
returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import duckdb
from sqlalchemy import URL

from ...errors import ConfigError, InvariantViolated, Retryable, SinkError
from ...events import Ddl, Details, RowChange, Table, TableName
from ...events.per_table import PerTable
from ...failpoint import reach
from ..groups import Group
from ..keys import Key, KeyPart, TableKeys
from ..options import DuckDbOptions
from ..target import CHECKPOINT_TABLE, Comparison, StatementRejected, check_columns
from .changes import SchemaChanges
from .own import DuckDbOwnTables
from .rows import Rows
from .session import DuckDbSession
from .tables import Tables

_REJECTED = (
    duckdb.ConstraintException,
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.InvalidInputException,
)


class DuckDbTarget:
    max_rows = 50_000
    ddl_commits = False
    folds_names = True

    def __init__(self, url: URL, feed: str, options: DuckDbOptions) -> None:
        path = file_of(url)
        self.feed = feed
        self.identity = f"duckdb:{path}"
        self.session = DuckDbSession(path)
        self._tables = Tables(self.session, options.schema, dates_as_text=options.dates == "text")
        self._whole = options.verify == "before"
        self._changes = SchemaChanges(self.session, self._tables)
        self._rows = PerTable(self._prepare)
        self.own_tables = DuckDbOwnTables(self.session)

    def connect(self) -> None:
        self.session.connect()
        self.session.change(
            f"CREATE TABLE IF NOT EXISTS {CHECKPOINT_TABLE} "
            "(feed VARCHAR PRIMARY KEY, ts BIGINT NOT NULL, checkpoint VARCHAR NOT NULL)"
        )

    def close(self) -> None:
        self._rows.clear()
        self.session.close()

    def begin(self) -> None:
        self.session.begin()

    def commit(self) -> None:
        self.session.commit()

    def savepoint(self) -> None:
        self.session.savepoint()

    def rollback_to_savepoint(self) -> None:
        self.session.rollback_to_savepoint()

    # --- rows

    def apply(self, groups: Sequence[Group]) -> None:
        for group in groups:
            self._rows[group.table].apply(group)
            reach("sink.mid_batch")

    def apply_safely(self, groups: Sequence[Group]) -> None:
        for group in groups:
            self._rows[group.table].apply_safely(group)

    def statement(self, group: Group, *, safely: bool) -> str:  # noqa: ARG002
        (change,) = group.changes
        return f"{self._rows[group.table].statement(group)} with {change.before!r}, {change.after!r}"

    def compare(self, change: RowChange) -> list[Comparison] | None:
        return self._rows[change.table].compare(change)

    def _prepare(self, table: Table) -> Rows:
        check_columns(self, table)
        qualified = self._tables.qualified(self._place(table))
        texts = self._tables.dates_as_text
        return Rows(self.session, table, qualified, whole=self._whole, dates_as_text=texts)

    # --- checkpoint

    def load_checkpoint(self) -> str | None:
        rows = self.session.rows(f"SELECT checkpoint FROM {CHECKPOINT_TABLE} WHERE feed=?", self.feed)
        return str(rows[0][0]) if rows else None

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        if previous_ts is None:
            statement = f"INSERT INTO {CHECKPOINT_TABLE} VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
            return self.session.change(statement, self.feed, ts, content) == 1
        statement = f"UPDATE {CHECKPOINT_TABLE} SET ts=?, checkpoint=? WHERE feed=? AND ts=?"
        return self.session.change(statement, ts, content, self.feed, previous_ts) == 1

    # --- tables

    def name_of(self, schema: str, table: str) -> str:
        return ".".join(self._tables.place_of((schema, table)))

    def _place(self, table: Table) -> TableName:
        return self._tables.place_of((table.schema, table.name))

    def columns(self, table: Table) -> dict[str, str] | None:
        place = self._place(table)
        key = self._tables.key(place)
        return {
            one.name: one.type + (" key" if one.name in key else "") for one in self._tables.columns(place)
        } or None

    def wanted_columns(self, table: Table) -> dict[str, str]:
        return {
            column.name: self._tables.declared(column).type + (" key" if index in table.key else "")
            for index, column in enumerate(table.columns)
        }

    def is_empty(self, table: Table) -> bool:
        return not self._tables.has_row(self._place(table))

    def keys_of(self, table: Table) -> TableKeys:
        """Return the primary key; changes that your own unique indexes prevent are rejected."""
        name = self.name_of(table.schema, table.name)
        parts = tuple([KeyPart(index) for index in table.key])
        return TableKeys(name, (Key(f"{name} {parts}", parts),) if parts else ())

    def is_linked(self, table: Table) -> bool:  # noqa: ARG002
        return False  # foreign keys of your own aren't looked for: a row that one prevents is rejected

    def keeps_rows(self, table: Table) -> bool:  # noqa: ARG002
        return True

    def undo_creation(self) -> None:
        """Do nothing: a table is created in the transaction of the checkpoint."""

    def create_table(self, table: Table, details: Details | None = None, *, is_shared: bool = False) -> None:  # noqa: ARG002
        self._tables.create(table)

    def defining(self, schema: str, table: str) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()  # one process writes to the file

    def has_shared(self, ddl: Ddl) -> bool:  # noqa: ARG002
        return False  # feeds can't share the file

    def note_shared(self, ddl: Ddl) -> None:
        raise InvariantViolated(f"{ddl.full_name} is shared, and in a file of DuckDB: {ddl.query}")

    def drop_table(self, table: Table) -> None:
        self.session.change(f"DROP TABLE IF EXISTS {self._tables.qualified(self._place(table))}")

    def alter(self, ddl: Ddl) -> None:
        self._changes.apply(ddl)

    # --- the driver

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        if not isinstance(error, duckdb.Error):
            return None
        said = f"{self.identity}: {doing}: {error}"
        if isinstance(error, _REJECTED):
            return StatementRejected(str(error))
        if isinstance(error, duckdb.TransactionException):
            return Retryable(said)
        if isinstance(error, duckdb.IOException):
            if "lock" in str(error):
                return Retryable(
                    f"{said}: DuckDB lets one process write, and none read meanwhile: end the other"
                )
            if "No space left" in str(error):
                return SinkError(f"{said}: make room, then start again")
            return SinkError(f"{said}: does the directory exist, with the right to write in it?")
        return SinkError(said)


def file_of(url: URL) -> Path:
    """Return the file of a URL. Raises ConfigError."""
    if not url.database or url.database == ":memory:":
        raise ConfigError(
            "a DuckDB sink needs a file: duckdb:///here.duckdb or duckdb:////var/lib/here.duckdb"
        )
    return Path(url.database).absolute().resolve()
