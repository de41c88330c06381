"""A transaction of rows: changes are kept until it commits, and are logged in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ...events import OrderedKey, Row, TableName
from .changes import Change
from .table import Key, MemoryTable

if TYPE_CHECKING:
    from .server import MysqlServer


class MysqlTransaction:
    """A transaction: reads the present rows, and its own changes. Not thread-safe.

        with mysql.transaction() as txn:
            txn.insert("shop.orders", {"id": 1, "price": "9.99"})
            txn.update("shop.orders", 1, {"price": "10.99"})

    Leaving the block commits it; after an error inside, nothing is written. Raises ValueError for a row that
    can't be written, and at the end if another transaction or a statement was faster.
    """

    def __init__(
        self,
        server: MysqlServer,
        lock: AbstractContextManager[object],
        commit: Callable[[Sequence[Change]], None],
    ) -> None:
        """`lock` is held while the server is looked at; `commit` gets the changes without it."""
        self._server = server
        self._lock = lock
        self._commit = commit
        self._changes: list[Change] = []
        self._rows: dict[tuple[TableName, OrderedKey], Row | None] = {}
        """The rows that this transaction changed; None for one that isn't there any more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()

    def commit(self) -> None:
        """Commit; nothing is logged for a transaction without changes."""
        changes, self._changes = self._changes, []
        self._rows.clear()
        if changes:
            self._commit(changes)

    def insert(self, name: str, row: Mapping[str, object] | Sequence[object]) -> Key:
        """Insert a row, given by column names or in the order of the columns; return its key.

        A missing column gets its default. A table without a primary key gives its rows numbers as keys.
        """
        with self._lock:
            table = self._server.schema.table(name)
            values = table.filled(row, self._server.now())
            key = table.new_key(values)
            if self._row(table, key) is not None:
                raise ValueError(f"{name} already has a row {table.shown_key(values, key)!r}")
            self._add(Change("insert", _name(table), table, key, after=values))
            return table.shown_key(values, key)

    def update(self, name: str, key: Key, values: Mapping[str, object]) -> Row:
        """Change columns of a row; return the new row. Nothing is logged if it stays the same."""
        with self._lock:
            table, held, before = self._found(name, key)
            after = table.changed(before, values, self._server.now())
            new_key = table.key_of(after, held)
            if new_key != held and self._row(table, new_key) is not None:
                raise ValueError(f"{name} already has the row that {key!r} would become")
            if after != before:
                self._add(Change("update", _name(table), table, held, before, after, new_key))
            return after

    def delete(self, name: str, key: Key) -> Row:
        """Delete a row; return the old row."""
        with self._lock:
            table, held, before = self._found(name, key)
            self._add(Change("delete", _name(table), table, held, before))
            return before

    def get(self, name: str, key: Key) -> Row | None:
        """Return a row by its key; None if there is none."""
        with self._lock:
            table = self._server.schema.table(name)
            return self._row(table, table.found_key(key))

    def _found(self, name: str, key: Key) -> tuple[MemoryTable, OrderedKey, Row]:
        table = self._server.schema.table(name)
        held = table.found_key(key)
        row = self._row(table, held)
        if row is None:
            raise ValueError(f"{name} has no row {key!r}")
        return table, held, row

    def _row(self, table: MemoryTable, key: OrderedKey) -> Row | None:
        place = _name(table), key
        return self._rows[place] if place in self._rows else table.rows.get(key)

    def _add(self, change: Change) -> None:
        self._changes.append(change)
        self._rows[change.name, change.key] = None
        self._rows[change.name, change.after_key] = change.after


def _name(table: MemoryTable) -> TableName:
    return table.table.schema, table.table.name
