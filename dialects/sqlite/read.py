"""The tables of a feed in SQLite, read to compare and repair them.

Rows are compared as they are stored (docs/sqlite-types.md)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ...errors import Retryable, SinkError
from ...events import Checkpoint, Column, Row, Table, TableName
from ..checkpoint import FeedCheckpoint
from ..database import CHECKPOINT_TABLE, difference
from ..read import Key, Range, Settled, Summing
from .table import quoted
from .types import compile_encode, declared_type, from_sqlite

_SORTED: Final = frozenset({
    "tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year", "float", "double",
    "binary", "varbinary", "date", "datetime", "timestamp",
})  # fmt: skip
"""Kinds whose stored values sort as in the source."""
_KEYS: Final = 200
_PAGE_ROWS: Final = 5_000
_BUSY_SECONDS: Final = 10.0


class SqliteReader:
    """Opens the file for reading only, until a repair is applied."""

    summing: Summing | None = None

    def __init__(self, file: Path, table_name: str, feed: str) -> None:
        self._file = file
        self._table_name = table_name
        self._feed = feed
        self.identity = f"sqlite:{file.absolute().resolve()}"
        self._checkpoint = FeedCheckpoint(self.identity, feed, self._load_checkpoint, self._rows)
        self._connection: sqlite3.Connection | None = None
        self._writing: sqlite3.Connection | None = None

    @property
    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._open("ro")
        return self._connection

    def _open(self, mode: str) -> sqlite3.Connection:
        with self._explained():
            connection = sqlite3.connect(
                f"file:{quote(str(self._file))}?mode={mode}",
                uri=True,
                isolation_level=None,
                timeout=_BUSY_SECONDS,
                check_same_thread=False,
            )
        connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        return connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            said = f"{self.identity}: {error}"
            busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (
                sqlite3.SQLITE_BUSY,
                sqlite3.SQLITE_LOCKED,
            )
            raise (Retryable(said) if busy else SinkError(said)) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._writing is not None:
            self._writing.close()

    def meet(self, source: Summing | None) -> None:
        """Do nothing: rows are stored in one way."""

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        with self._explained():
            return self._opened.execute(sql, values).fetchall()

    # --- the checkpoint

    def _load_checkpoint(self) -> str | None:
        if not self._rows("SELECT 1 FROM sqlite_master WHERE name=?", CHECKPOINT_TABLE):
            return None
        rows = self._rows(f"SELECT checkpoint FROM {CHECKPOINT_TABLE} WHERE feed=?", self._feed)
        return rows[0][0] if rows else None

    def checkpoint(self) -> Checkpoint | None:
        is_unused = not self._file.with_name(f"{self._file.name}-wal").exists()
        if self._connection is not None or not is_unused:
            return self._checkpoint.load()
        # Else SQLite creates files beside it, even for reading.
        self._connection = self._open("ro&immutable=1")
        try:
            return self._checkpoint.load()
        finally:
            self._connection.close()
            self._connection = None

    def reading(self) -> AbstractContextManager[Checkpoint]:
        return self._checkpoint.reading("BEGIN")

    # --- tables

    def _name(self, table: Table) -> str:
        return self._table_name.format(schema=table.schema, table=table.name)

    def names(self) -> list[TableName]:
        if self._table_name != "{schema}.{table}":
            return []
        rows = self._rows("SELECT name FROM sqlite_master WHERE type='table'")
        return [(found[1], found[2]) for (name,) in rows if (found := re.fullmatch(r"([^.]+)\.(.+)", name))]

    def _columns(self, table: Table) -> dict[str, str]:
        return dict(self._rows("SELECT name, type FROM pragma_table_info(?)", self._name(table)))

    def differs(self, table: Table) -> str | None:
        have = self._columns(table)
        if not have:
            return None
        return difference(
            have, {column.name: have.get(column.name, declared_type(column)) for column in table.columns}
        )

    def common(self, table: Table) -> list[str]:
        have = {name.lower() for name in self._columns(table)}
        return [column.name for column in table.columns if column.name.lower() in have]

    def sorts_as(self, table: Table, source: Summing | None) -> bool:  # noqa: ARG002
        return all(table.columns[i].kind in _SORTED for i in table.key)

    # --- rows

    def stored(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        return compile_encode(table.columns, range(len(table.columns)))(rows)

    def source_keys(self, table: Table, keys: Sequence[Key]) -> list[Key]:
        columns = [table.columns[i] for i in table.key]
        found = []
        for key in keys:
            with suppress(ValueError, TypeError, AttributeError, ArithmeticError):  # not a value of this kind
                found.append(tuple(map(from_sqlite, columns, key)))
        return found

    def between(self, table: Table, within: Range, limit: int) -> Iterator[list[Row]]:
        columns, key = _values(table), _key(table)
        marks = f"({','.join('?' * len(table.key))})"
        after, upto = within
        while True:
            conditions = ["TRUE"]
            values: list[Any] = []
            for sign, bound in (">", after), ("<=", upto):
                if bound is not None:
                    conditions.append(f"({key}) {sign} {marks}")
                    values += bound
            rows = self._rows(
                f"SELECT {columns} FROM {quoted(self._name(table))} WHERE {' AND '.join(conditions)} "
                f"ORDER BY {key} LIMIT {limit}",
                *values,
            )
            yield rows
            if len(rows) < limit:
                return
            after = tuple([rows[-1][i] for i in table.key])

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        marks = f"({','.join('?' * len(table.key))})"
        found: list[Row] = []
        for at in range(0, len(keys), _KEYS):
            some = keys[at : at + _KEYS]
            found += self._rows(
                f"SELECT {_values(table)} FROM {quoted(self._name(table))} "
                f"WHERE ({_key(table)}) IN (VALUES {','.join([marks] * len(some))})",
                *(value for key in some for value in key),
            )
        return found

    def every(self, table: Table) -> Iterator[list[Row]]:
        with self._explained():
            rows = self._opened.execute(f"SELECT {_values(table)} FROM {quoted(self._name(table))}")
            while page := rows.fetchmany(_PAGE_ROWS):
                yield page

    # --- repair

    def begin_script(self) -> list[str]:
        return []

    def repair(self, table: Table, found: Settled) -> list[str]:
        name = quoted(self._name(table))
        names = [quoted(column.name) for column in table.columns]
        if not table.key:
            same = _same(names, found.key)
            more = found.source - found.target
            if more > 0:
                return [_insert(name, names, found.key)] * more
            return [
                f"DELETE FROM {name} WHERE rowid IN (SELECT rowid FROM {name} WHERE {same} LIMIT {-more})"
            ]
        if found.target is None:
            return [_insert(name, names, found.source)]
        where = _same([names[i] for i in table.key], found.key)
        if found.source is None:
            return [f"DELETE FROM {name} WHERE {where}"]
        pairs = zip(names, found.source, found.target, strict=True)
        changed = ", ".join(f"{column}={literal(ours)}" for column, ours, theirs in pairs if ours != theirs)
        return [f"UPDATE {name} SET {changed} WHERE {where}"]

    def apply(self, table: Table, found: Settled) -> bool:
        if self._writing is None:
            self._writing = self._open("rw")
        reading, self._connection = self._connection, self._writing
        try:
            self._rows("BEGIN IMMEDIATE")
            if self._present(table, found.key) != found.target:
                return False
            for statement in self.repair(table, found):
                self._rows(statement)
            self._rows("COMMIT")
            return True
        finally:
            if self._writing.in_transaction:
                self._rows("ROLLBACK")
            self._connection = reading

    def _present(self, table: Table, key: Key) -> Any:
        """Return the row with this key, or the number of such rows."""
        if not table.key:
            same = _same([quoted(column.name) for column in table.columns], key)
            return self._rows(f"SELECT COUNT(*) FROM {quoted(self._name(table))} WHERE {same}")[0][0]
        rows = self.rows_of(table, [key])
        return rows[0] if rows else None


def _values(table: Table) -> str:
    return ",".join(map(_value, table.columns))


def _value(column: Column) -> str:
    name = quoted(column.name)
    if declared_type(column):
        return name
    # A column without a type may hold a number that isn't an integer, and Python finds 1.0 equal to 1.
    return f"CASE typeof({name}) WHEN 'real' THEN 'real ' || {name} ELSE {name} END"


def _key(table: Table) -> str:
    return ",".join(quoted(table.columns[i].name) for i in table.key)


def _same(names: Sequence[str], values: Sequence[Any]) -> str:
    return " AND ".join(f"{name} IS {literal(value)}" for name, value in zip(names, values, strict=True))


def _insert(name: str, names: Sequence[str], row: Row) -> str:
    return f"INSERT INTO {name} ({', '.join(names)}) VALUES ({', '.join(map(literal, row))})"


def literal(value: Any) -> str:
    """Return a stored value as SQL text."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if not isinstance(value, str):
        return repr(value)
    if value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return f"CAST(X'{value.encode('utf-8', 'surrogateescape').hex()}' AS TEXT)"
