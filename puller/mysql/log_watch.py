"""The log's changes of tables that are being loaded, kept while a chunk of their rows is read."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from ...codec.mysql.entry import DDL, Query, decode_statement
from ...codec.mysql.layout import Layouts
from ...codec.mysql.position import Position


class WatchedEntry(NamedTuple):
    """A logged change: ROWS of a table, or DDL."""

    kind: int
    value: bytes
    layout: int

    def without_rows(self) -> WatchedEntry:
        """Return the change with its rows dropped."""
        return self if self.kind == DDL else self._replace(value=b"")


class Mark(NamedTuple):
    """A position between two transactions, and the number of changes kept up to it."""

    position: Position
    kept: int


class LogWatch:
    """Used by the log reader's thread, except for `mark`."""

    def __init__(self, layouts: Layouts, max_bytes: int) -> None:
        self.max_bytes: Final = max_bytes
        """Maximum size of the kept changes; beyond it, those of all tables are dropped."""
        self.mark = Mark(Position("", 0), 0)
        """The reader's latest position, of no file before the first `move`. Any thread may read it."""
        self.bytes = 0
        self.is_on = False
        """True if the changes of any table are kept, and it isn't paused."""
        self._layouts = layouts
        self._tables: set[tuple[str, str]] = set()
        self._wanted: dict[int, bool] = {}
        self._kept: deque[WatchedEntry] = deque()
        self._first = 0  # the number of the first kept change
        self._lost: dict[tuple[str, str], int] = {}

    def add(self, name: tuple[str, str]) -> None:
        """Keep the changes of a table from the next transaction on."""
        self._tables.add(name)
        self.is_on = True
        self._wanted.clear()

    def remove(self, name: tuple[str, str]) -> None:
        self._tables.discard(name)
        self.is_on = bool(self._tables)
        self._wanted.clear()

    def clear(self) -> None:
        """Drop the changes of all tables, and keep none of later transactions."""
        self._tables.clear()
        self.is_on = False
        self._wanted.clear()
        self._lost.clear()
        self._first += len(self._kept)
        self._kept.clear()
        self.bytes = 0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keep no changes meanwhile: they aren't logged ones."""
        self.is_on = False
        try:
            yield
        finally:
            self.is_on = bool(self._tables)

    def wants(self, layout: int) -> bool:
        wanted = self._wanted.get(layout)
        if wanted is None:
            wanted = self._wanted[layout] = self._layouts.layout(layout).names in self._tables
        return wanted

    def take(self, entries: Iterable[WatchedEntry]) -> None:
        """Keep the changes of a transaction."""
        for entry in entries:
            self._kept.append(entry)
            self.bytes += len(entry.value)
            if entry.kind != DDL and not entry.value:
                self._lose([self._names(entry)])
        if self.bytes > self.max_bytes:
            self._lose(self._tables)

    def move(self, position: Position) -> None:
        """Note the reader's position after the changes taken so far."""
        self.mark = Mark(position, self._first + len(self._kept))

    def forget(self, count: int) -> None:
        """Drop the changes up to that number."""
        while self._kept and self._first < count:
            self.bytes -= len(self._kept.popleft().value)
            self._first += 1

    def since(self, count: int, name: tuple[str, str]) -> list[WatchedEntry] | None:
        """Return a table's changes after that number; None if they aren't known, or change the table's
        definition."""
        if count < self._lost.get(name, 0):
            return None
        entries: list[WatchedEntry] = []
        for number, entry in enumerate(self._kept, self._first):
            if number < count:
                continue
            if entry.kind == DDL:
                if _concerns(entry.value, *name):
                    return None
            elif self._names(entry) == name:
                entries.append(entry)
        return entries

    def _names(self, entry: WatchedEntry) -> tuple[str, str]:
        return self._layouts.layout(entry.layout).names

    def _lose(self, names: Iterable[tuple[str, str]]) -> None:
        end = self._first + len(self._kept)
        lost = set(names)
        self._lost |= dict.fromkeys(lost, end)
        self._kept = deque(
            entry if entry.kind == DDL or self._names(entry) not in lost else entry.without_rows()
            for entry in self._kept
        )
        self.bytes = sum(len(entry.value) for entry in self._kept)


def _concerns(value: bytes, schema: str, name: str) -> bool:
    """Return True if a statement may concern the table: if its text has the table's name, or may drop the
    database."""
    statement = decode_statement(value)
    return not isinstance(statement, Query) or mentions(statement.query, schema, name)


def mentions(text: str, schema: str, name: str) -> bool:
    """Return True if a statement may concern the table, by its text."""
    if not name.isidentifier():  # quotes in a name are doubled
        return True
    text = text.casefold()
    if re.search(rf"(?<![\w$]){re.escape(name.casefold())}(?![\w$])", text):
        return True
    return schema.casefold() in text and ("database" in text or "schema" in text)
