"""SQLite as a target, over the standard library's sqlite3.

The database is in WAL mode, so that it can be read while rows are written, and synchronous=FULL: a commit is
durable when it returns. Schema changes are part of the transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from ...errors import ConfigError, Retryable, SinkError
from ...events import Ddl, Details, Row, RowChange, Table
from ...events.per_table import PerTable
from ...failpoint import reach
from ..groups import Group
from ..keys import TableKeys
from ..options import Verify
from ..shared_changes import SharedChanges
from ..target import CHECKPOINT_TABLE, MISSING, Comparison, StatementRejected, check_columns
from .changes import SchemaChanges
from .keyless import FEWEST, RowFinder
from .keys import keys_of
from .own import SqliteOwnTables
from .table import column_text, create_text, quoted
from .types import Encode, compile_encode, declared_type

_ATTEMPTS: Final = 10
_BUSY_SECONDS: Final = 1.0
"""Timeout of a sink's call that waits for another writer; after it the work is retried from the start."""


class SqliteTarget:
    """`table_name` is the template of a table's name, from {schema} and {table}."""

    max_rows = 10_000
    ddl_commits = False
    folds_names = True

    def __init__(
        self,
        url: URL,
        feed: str,
        table_name: str = "{schema}.{table}",
        verify: Verify = "key",
        busy_seconds: float | None = None,
    ) -> None:
        """`busy_seconds` is the timeout of a call that waits for another writer."""
        if not url.database or url.database == ":memory:":
            raise ConfigError("an SQLite sink needs a file: sqlite:///here.db or sqlite:////var/lib/here.db")
        self.feed = feed
        self._table_name = table_name
        self._whole = verify == "before"
        self.identity = f"sqlite:{Path(url.database).absolute().resolve()}"
        self._engine = create_engine(
            url,
            poolclass=NullPool,
            # With isolation_level None, sqlite3 doesn't begin or commit transactions by itself.
            connect_args={
                "isolation_level": None,
                "timeout": busy_seconds or _BUSY_SECONDS,
                "check_same_thread": False,
            },
        )
        self._connection: sqlite3.Connection | None = None
        self._saved = False
        self.own_tables = SqliteOwnTables(self._execute)
        self._plans = PerTable(self._plan)
        self._changes = SchemaChanges(self._execute, self.name_of)
        self._shared = SharedChanges(self.own_tables)

    def connect(self) -> None:
        pooled = self._engine.raw_connection()
        self._connection = pooled.driver_connection
        pooled.detach()
        self._use_journal()
        self._execute("PRAGMA synchronous=FULL")
        self._execute(
            f"CREATE TABLE IF NOT EXISTS {CHECKPOINT_TABLE} "
            "(feed TEXT PRIMARY KEY, ts INTEGER NOT NULL, checkpoint TEXT NOT NULL)"
        )

    def _use_journal(self) -> None:
        """Have the file use a write-ahead log. SQLite itself doesn't wait for others when it changes this."""
        for left in range(_ATTEMPTS - 1, -1, -1):
            try:
                self._execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or not left:
                    raise
                self._execute("BEGIN EXCLUSIVE")  # this waits
                self._execute("COMMIT")
            else:
                return

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._plans.clear()
        if connection is not None:
            connection.close()

    def begin(self) -> None:
        self._execute("BEGIN IMMEDIATE")
        self._saved = False

    def commit(self) -> None:
        self._execute("COMMIT")

    def savepoint(self) -> None:
        if self._saved:  # savepoints nest, and each keeps the pages changed after it
            self._execute("RELEASE tidemill")
        self._execute("SAVEPOINT tidemill")
        self._saved = True

    def rollback_to_savepoint(self) -> None:
        self._execute("ROLLBACK TO tidemill")

    # --- rows

    def apply(self, groups: Sequence[Group]) -> None:
        assert self._connection is not None
        for group in groups:
            plan = self._plans[group.table]
            if group.op == "insert" or group.table.key or len(group.changes) < FEWEST:
                sql, rows = plan.prepared(group)
            else:
                sql, rows = plan.found(group, self._connection)
            if self._connection.executemany(sql, rows).rowcount != len(rows):
                raise StatementRejected(MISSING)
            reach("sink.mid_batch")

    def apply_safely(self, groups: Sequence[Group]) -> None:
        assert self._connection is not None
        for group in groups:
            for sql, rows in self._plans[group.table].safe(group):
                self._connection.executemany(sql, rows)

    def statement(self, group: Group, *, safely: bool) -> str:
        plan = self._plans[group.table]
        parts = plan.safe(group) if safely else [plan.prepared(group)]
        return "; ".join(f"{sql} with {row!r}" for sql, rows in parts for row in rows)

    def _plan(self, table: Table) -> Plan:
        check_columns(self, table)
        return Plan(table, self._qualified(table), whole=self._whole)

    def compare(self, change: RowChange) -> list[Comparison] | None:
        sql, values = self._plans[change.table].comparison(change.before or ())
        row = self._execute(sql, *values).fetchone()
        return [Comparison(*pair) for pair in zip(row[::2], row[1::2], strict=True)] if row else None

    # --- checkpoint

    def load_checkpoint(self) -> str | None:
        row = self._execute(f"SELECT checkpoint FROM {CHECKPOINT_TABLE} WHERE feed=?", self.feed).fetchone()
        return row[0] if row else None

    def save_checkpoint(self, previous_ts: int | None, ts: int, content: str) -> bool:
        if previous_ts is None:
            statement = f"INSERT OR IGNORE INTO {CHECKPOINT_TABLE} VALUES (?, ?, ?)"
            return self._execute(statement, self.feed, ts, content).rowcount == 1
        statement = f"UPDATE {CHECKPOINT_TABLE} SET ts=?, checkpoint=? WHERE feed=? AND ts=?"
        return self._execute(statement, ts, content, self.feed, previous_ts).rowcount == 1

    # --- tables

    def name_of(self, schema: str, table: str) -> str:
        return self._table_name.format(schema=schema, table=table)

    def columns(self, table: Table) -> dict[str, str] | None:
        name = self.name_of(table.schema, table.name)
        rows = self._execute("SELECT name, type, pk FROM pragma_table_info(?)", name).fetchall()
        return {name: type_ + (" key" if key else "") for name, type_, key in rows} or None

    def wanted_columns(self, table: Table) -> dict[str, str]:
        return {
            column.name: declared_type(column) + (" key" if index in table.key else "")
            for index, column in enumerate(table.columns)
        }

    def is_empty(self, table: Table) -> bool:
        return self._execute(f"SELECT 1 FROM {self._qualified(table)} LIMIT 1").fetchone() is None

    def keys_of(self, table: Table) -> TableKeys:
        return keys_of(self._execute, table, self.name_of(table.schema, table.name))

    def is_linked(self, table: Table) -> bool:  # noqa: ARG002
        return False  # SQLite checks foreign keys only if a connection asks for it

    def keeps_rows(self, table: Table) -> bool:  # noqa: ARG002
        return True

    def undo_creation(self) -> None:
        """Do nothing: a table is created in the transaction of the checkpoint."""

    def create_table(self, table: Table, details: Details | None = None, *, is_shared: bool = False) -> None:  # noqa: ARG002
        lines = [
            column_text(column.name, declared_type(column), is_required=not column.nullable)
            for column in table.columns
        ]
        key = [table.columns[index].name for index in table.key]
        self._execute(create_text(self._qualified(table), lines, key))

    def drop_table(self, table: Table) -> None:
        self._execute(f"DROP TABLE IF EXISTS {self._qualified(table)}")

    def defining(self, schema: str, table: str) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()  # there is one writer at a time

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

    def _qualified(self, table: Table) -> str:
        return quoted(self.name_of(table.schema, table.name))

    # --- the driver

    def _execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        assert self._connection is not None
        return self._connection.execute(statement, values)

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        if isinstance(error, DBAPIError) and isinstance(error.orig, Exception):
            error = error.orig
        if not isinstance(error, sqlite3.Error):
            return None
        said = f"{self.identity}: {doing}: {error}"
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return Retryable(said)
            case sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_MISMATCH | sqlite3.SQLITE_TOOBIG:
                return StatementRejected(str(error))
            case sqlite3.SQLITE_FULL:
                return SinkError(f"{said}: make room, then start again")
            case sqlite3.SQLITE_CANTOPEN:
                return SinkError(f"{said}: does the directory exist, with the right to write in it?")
        return SinkError(said)


class Plan:
    """The prepared statements of one table, at one version of its schema, and their parameters."""

    def __init__(self, table: Table, quoted_name: str, *, whole: bool = False) -> None:
        """With `whole`, updates and deletes compare the whole row."""
        self._table = table
        self._whole = whole
        self._name = quoted_name
        self._names = [quoted(column.name) for column in table.columns]
        self._every = range(len(table.columns))
        self._rest = [i for i in self._every if i not in table.key] or list(self._every)
        self._encode_all = compile_encode(table.columns, self._every)
        marks = ",".join("?" * len(self._names))
        self._insert = f"INSERT INTO {quoted_name} ({','.join(self._names)}) VALUES ({marks})"

    @cached_property
    def _key(self) -> str:
        return " AND ".join(f"{self._names[i]}=?" for i in self._table.key)

    @cached_property
    def _where(self) -> str:
        same = " AND ".join(f"{name} IS ?" for name in self._names)
        if self._table.key:
            return f"{self._key} AND {same}" if self._whole else self._key
        rowid = self._rowid
        return f"{rowid}=(SELECT {rowid} FROM {self._name} WHERE {same} LIMIT 1)"

    @property
    def _rowid(self) -> str:
        taken = {column.name.lower() for column in self._table.columns}
        for name in ("rowid", "_rowid_", "oid"):
            if name not in taken:
                return name
        raise SinkError(f"{self._table.full_name} has no key, and its columns hide SQLite's row id")

    @cached_property
    def _encode_where(self) -> Encode:
        key = self._table.key
        return compile_encode(self._table.columns, [*key, *self._every] if self._whole or not key else key)

    @cached_property
    def _encode_update(self) -> Encode:
        return compile_encode(self._table.columns, [*self._rest, *self._table.key])

    def prepared(self, group: Group) -> tuple[str, list[Row]]:
        """Return a statement and its parameters for each change."""
        changes = group.changes
        match group.op:
            case "insert":
                return self._insert, self._encode_all(_after(changes))
            case "delete":
                return f"DELETE FROM {self._name} WHERE {self._where}", self._encode_where(_before(changes))
            case "update" if self._table.key and not self._whole:
                return self._update(self._rest), self._encode_update(_after(changes))
            case "update" | "move":
                after, before = self._encode_all(_after(changes)), self._encode_where(_before(changes))
                return self._update(self._every), [a + b for a, b in zip(after, before, strict=True)]

    def safe(self, group: Group) -> Iterator[tuple[str, list[Row]]]:
        """Yield statements with parameters after which the rows are those after the changes."""
        keyed = bool(self._table.key)
        if group.op in ("delete", "move") or (group.op == "update" and not keyed):
            yield f"DELETE FROM {self._name} WHERE {self._where}", self._encode_where(_before(group.changes))
        if group.op != "delete":
            insert = self._insert.replace("INSERT", "INSERT OR REPLACE", 1) if keyed else self._insert
            yield insert, self._encode_all(_after(group.changes))

    def comparison(self, row: Row) -> tuple[str, Row]:
        """Return the SELECT of the row with this key: each value, and 1 if it is exactly this row's."""
        values = ",".join(f"{name},{name} IS ?" for name in self._names)
        (parameters,) = compile_encode(self._table.columns, [*self._every, *self._table.key])([row])
        return f"SELECT {values} FROM {self._name} WHERE {self._key}", parameters

    @cached_property
    def _finder(self) -> RowFinder:
        return RowFinder(self._table, self._name, self._names, self._rowid)

    def found(self, group: Group, connection: sqlite3.Connection) -> tuple[str, list[Row]]:
        """Return the same for deletes or updates of a table without a key, whose rows are searched for here.

        Raises StatementRejected if a row is missing.
        """
        changes = group.changes
        ids = self._finder.find(connection, changes)
        if group.op == "delete":
            return f"DELETE FROM {self._name} WHERE {self._rowid}=?", [(row_id,) for row_id in ids]
        after = self._encode_all(_after(changes))
        rows = [(*row, row_id) for row, row_id in zip(after, ids, strict=True)]
        return self._update(self._every, f"{self._rowid}=?"), rows

    def _update(self, index: Sequence[int], where: str = "") -> str:
        names = ",".join(f"{self._names[i]}=?" for i in index)
        return f"UPDATE {self._name} SET {names} WHERE {where or self._where}"


def _after(changes: list[RowChange]) -> list[Row]:
    return [change.after or () for change in changes]


def _before(changes: list[RowChange]) -> list[Row]:
    return [change.before or () for change in changes]
