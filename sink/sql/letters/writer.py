"""Writes the letters of one connection, in the SQL transaction of the rows around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ....errors import SinkError
from ....events import RowChange, TableName
from .keys import DeadKeys, Head
from .letter import Letter, keys_of
from .rows import BoxVersion, LetterRows, numbered


class LetterWriter:
    """Keeps rejected changes, and knows which rows must wait for theirs.

    Several connections share `keys`. Used by one thread.
    """

    def __init__(self, rows: LetterRows, keys: DeadKeys, max_letters: int, where: str) -> None:
        """`where` names the target and the feed in errors."""
        self.keys: Final = keys
        self.rows: Final = rows
        self._max_letters = max_letters
        self._where = where
        self._new: list[Letter] = []  # not in the database yet
        self._written: list[tuple[list[Head], int]] = []  # in the open SQL transaction, with the version
        self._own = DeadKeys()  # of both

    def another(self, rows: LetterRows) -> LetterWriter:
        """Return the writer of another connection."""
        return LetterWriter(rows, self.keys, self._max_letters, self._where)

    def open(self) -> None:
        """Create the tables, and read the letters; no SQL transaction is open."""
        self.rolled_back()
        self.rows.create()
        self.keys.forget()
        self.refresh()

    def refresh(self) -> None:
        """Read the letters again if somebody has changed them."""
        while not self._written and (version := self.rows.version()) > self.keys.version:
            heads = self.rows.heads()
            if self.rows.version() == version:
                self.keys.load(heads, version)

    def lock(self) -> BoxVersion:
        """Prevent changes of letters until the end of the SQL transaction, and know them as they are now."""
        state = self.rows.lock()
        known = self._written[-1][1] if self._written else self.keys.version
        if state.version != known:
            self.keys.load(self.rows.heads(locked=True), state.version)
        return state

    def may_wait(self, table: str) -> bool:
        """Return True if there are letters of a table, by its full name."""
        return self.keys.has_table(table) or self._own.has_table(table)

    def waits(self, change: RowChange) -> bool:
        """Return True if the change must not overtake a letter of its row."""
        table = change.table.full_name
        if not self.may_wait(table):
            return False
        head = Head(table, keys_of(change))
        return self.keys.includes(head) or self._own.includes(head)

    def add(self, letter: Letter) -> None:
        """Keep a change; `write` must follow. Raises SinkError if there are too many."""
        if self._is_full():
            self.lock()
        if self._is_full():
            raise SinkError(
                f"{self._where}: {self._max_letters} changes are dead letters (max_dead_letters), and "
                f"another one is rejected: {letter.op} of {letter.table.full_name} at commit ts {letter.ts}: "
                f"{letter.reason}: correct the cause, then run tidemill dead-letters retry or drop"
            )
        self._new.append(letter)
        self._own.add([Head(letter.table.full_name, letter.keys)], self._own.version + 1)

    def _is_full(self) -> bool:
        return len(self.keys) + len(self._own) >= self._max_letters

    def write(self) -> None:
        """Store the letters in the open SQL transaction."""
        if not self._new:
            return
        last_id, version = self.lock()
        letters = numbered(self._new, last_id)
        try:
            self.rows.add(letters)
        except (TypeError, ValueError) as error:
            raise SinkError(f"{self._where}: a rejected change can't be kept: {error}") from error
        self.rows.set_version(BoxVersion(letters[-1].id, version + 1))
        self._written.append(([Head(one.table.full_name, one.keys) for one in letters], version + 1))
        self._new = []

    def committed(self) -> None:
        for heads, version in self._written:
            self.keys.add(heads, version)
        self.rolled_back()

    def rolled_back(self) -> None:
        """Forget the letters of the SQL transaction."""
        self._new, self._written = [], []
        self._own = DeadKeys()

    # --- schema changes, when nothing is being written

    def drop_table(self, table: str) -> None:
        """Delete the letters of a table whose rows are gone, in the open SQL transaction."""
        self._change(table, self.rows.delete)

    def alter_table(self, table: str) -> None:
        """Note, in the open SQL transaction, that the letters of a table can't be applied any more."""
        self._change(table, self.rows.alter)

    def _change(self, table: str, do: Callable[[Sequence[int]], None]) -> None:
        last_id, version = self.lock()
        if ids := [one.id for one in self.rows.load(locked=True) if one.table.full_name == table]:
            do(ids)
            self.rows.set_version(BoxVersion(last_id, version + 1))
            self.keys.load(self.rows.heads(locked=True), version + 1)

    def reject_letters(self, table: TableName, doing: str) -> None:
        """Raise SinkError if the table has letters, which would lose their rows."""
        name = ".".join(table)
        if self.may_wait(name):
            raise SinkError(
                f"{self._where}: {name} has dead letters, whose rows couldn't be found after {doing}: run "
                "tidemill dead-letters retry or drop, then start again"
            )
