"""Keys of rows with dead letters, as this process knows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from threading import Lock
from typing import NamedTuple


class Head(NamedTuple):
    """The table of a letter by its full name, and the texts of its keys."""

    table: str
    keys: tuple[str, ...]


class DeadKeys:
    """Keys of the rows of a feed that have letters. Any thread.

    Every SQL transaction that changes the letters in the database counts one more version of them, under a
    lock of the database.
    """

    def __init__(self) -> None:
        self.version = -1
        """Version of the letters that these keys are of; -1: unknown."""
        self._lock = Lock()
        self._heads: list[tuple[int, Head]] = []  # with the version that added each
        self._keys: Counter[tuple[str, str]] = Counter()
        self._tables: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return the number of letters."""
        return len(self._heads)

    def by_table(self) -> dict[str, int]:
        """Return the number of letters of each table by its full name."""
        with self._lock:
            return dict(self._tables)

    def has_table(self, table: str) -> bool:
        """Return True if the table has letters, by its full name."""
        return table in self._tables

    def includes(self, head: Head) -> bool:
        """Return True if one of the keys is dead."""
        return any((head.table, key) in self._keys for key in head.keys)

    def load(self, heads: Iterable[Head], version: int) -> None:
        """Take over the letters as they were at that version; later ones that are known are kept."""
        with self._lock:
            if version >= self.version:
                later = [(own, head) for own, head in self._heads if own > version]
                self._heads = [*[(version, head) for head in heads], *later]
                self._keys = Counter((head.table, key) for _, head in self._heads for key in head.keys)
                self._tables = Counter(head.table for _, head in self._heads)
                self.version = version

    def add(self, heads: Iterable[Head], version: int) -> None:
        """Add letters that were committed with that version."""
        with self._lock:
            if version <= self.version:
                return  # loaded since
            for head in heads:
                self._heads.append((version, head))
                self._keys.update((head.table, key) for key in head.keys)
                self._tables[head.table] += 1
            if version == self.version + 1:
                self.version = version

    def forget(self) -> None:
        """Know nothing, before the database is read again."""
        with self._lock:
            self.version = -1
            self._heads = []
            self._keys, self._tables = Counter(), Counter()
