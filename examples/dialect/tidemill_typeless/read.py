"""The tables of a feed, read to compare and repair them: rows as they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from tidemill.dialects.checkpoint import FeedCheckpoint, explained
from tidemill.dialects.database import CHECKPOINT_TABLE, difference
from tidemill.dialects.read import Key, Range, Settled, Summing
from tidemill.dialects.sqlite.types import compile_encode, from_sqlite
from tidemill.events import Checkpoint, Row, Table, TableName

from .entry import TypelessOptions
from .session import Session, literal, quoted

SORTED = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "date"})
"""Kinds of key columns whose stored values sort as in the source."""
PAGE_ROWS = 5_000


class TypelessReader:
    summing: Summing | None = None

    def __init__(self, file: Path, options: TypelessOptions, feed: str) -> None:
        self._session = session = Session(file, options.separator, busy_seconds=10)
        self.identity = session.identity
        self._feed = feed
        self._checkpoint = FeedCheckpoint(self.identity, feed, self._load_checkpoint, self._rows)
        with explained(session):
            session.connect()

    def close(self) -> None:
        self._session.close()

    def meet(self, source: Summing | None) -> None:
        """Do nothing: rows are stored in one way."""

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        with explained(self._session):
            return self._session.rows(statement, *values)

    # --- the checkpoint

    def _load_checkpoint(self) -> str | None:
        if not self._session.columns(CHECKPOINT_TABLE):
            return None
        rows = self._rows(f"SELECT checkpoint FROM {CHECKPOINT_TABLE} WHERE feed=?", self._feed)
        return rows[0][0] if rows else None

    def checkpoint(self) -> Checkpoint | None:
        return self._checkpoint.load()

    def reading(self) -> AbstractContextManager[Checkpoint]:
        return self._checkpoint.reading("BEGIN")

    # --- tables

    def names(self) -> list[TableName]:
        names = [
            name.partition(self._session.separator)
            for (name,) in self._rows("SELECT name FROM sqlite_master")
        ]
        return [(schema, table) for schema, _, table in names if table and not table.endswith(" key")]

    def _have(self, table: Table) -> list[str]:
        return self._session.columns(self._session.name_of(table.schema, table.name))

    def differs(self, table: Table) -> str | None:
        have = dict.fromkeys(self._have(table), "")
        return difference(have, {column.name: "" for column in table.columns}) if have else None

    def common(self, table: Table) -> list[str]:
        have = {name.lower() for name in self._have(table)}
        return [column.name for column in table.columns if column.name.lower() in have]

    def sorts_as(self, table: Table, source: Summing | None) -> bool:
        return all(table.columns[i].kind in SORTED for i in table.key)

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

    def _select(self, table: Table) -> str:
        names = ", ".join(quoted(column.name) for column in table.columns)
        return f"SELECT {names} FROM {self._session.table(table)}"

    def between(self, table: Table, within: Range, limit: int) -> Iterator[list[Row]]:
        key = ", ".join(quoted(table.columns[i].name) for i in table.key)
        after, upto = within
        while True:
            bounds = [(">", after), ("<=", upto)]
            where = " AND ".join(
                f"({key}) {sign} {_tuple(bound)}" for sign, bound in bounds if bound is not None
            )
            rows = self._rows(f"{self._select(table)} WHERE {where or 'TRUE'} ORDER BY {key} LIMIT {limit}")
            yield rows
            if len(rows) < limit:
                return
            after = tuple([rows[-1][i] for i in table.key])

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        where = [self._same(table, table.key, key) for key in keys]
        return [row for one in where for row in self._rows(f"{self._select(table)} WHERE {one}")]

    def every(self, table: Table) -> Iterator[list[Row]]:
        with explained(self._session):
            rows = self._session.execute(self._select(table))
            while page := rows.fetchmany(PAGE_ROWS):
                yield page

    def _same(self, table: Table, index: Sequence[int], values: Sequence[Any]) -> str:
        pairs = zip([quoted(table.columns[i].name) for i in index], values, strict=True)
        return " AND ".join(f"{name} IS {literal(value)}" for name, value in pairs)

    # --- repair

    def begin_script(self) -> list[str]:
        return []

    def repair(self, table: Table, found: Settled) -> list[str]:
        name = self._session.table(table)
        if not table.key:
            more = found.source - found.target
            if more > 0:
                return [self._insert(table, found.key)] * more
            same = self._same(table, range(len(table.columns)), found.key)
            return [
                f"DELETE FROM {name} WHERE rowid IN (SELECT rowid FROM {name} WHERE {same} LIMIT {-more})"
            ]
        remove = f"DELETE FROM {name} WHERE {self._same(table, table.key, found.key)}"
        if found.source is None:
            return [remove]
        return [remove, self._insert(table, found.source)]

    def _insert(self, table: Table, row: Row) -> str:
        names = ", ".join(quoted(column.name) for column in table.columns)
        return f"INSERT INTO {self._session.table(table)} ({names}) VALUES {_tuple(row)}"

    def apply(self, table: Table, found: Settled) -> bool:
        with self._writing() as commit:
            if self._present(table, found.key) != found.target:
                return False
            for statement in self.repair(table, found):
                self._rows(statement)
            commit()
            return True

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        self._rows("BEGIN IMMEDIATE")
        done = []
        try:
            yield lambda: done.append(self._rows("COMMIT"))
        finally:
            if not done:
                self._rows("ROLLBACK")

    def _present(self, table: Table, key: Key) -> Any:
        """Return the row with this key, or the number of such rows."""
        if not table.key:
            same = self._same(table, range(len(table.columns)), key)
            return self._rows(f"SELECT COUNT(*) FROM {self._session.table(table)} WHERE {same}")[0][0]
        rows = self.rows_of(table, [key])
        return rows[0] if rows else None


def _tuple(values: Sequence[Any]) -> str:
    return f"({', '.join(map(literal, values))})"
