"""A backlog of changes whose rows all differ, and which of them is expected where.

Every row that is written has a version, which with the id determines its columns. Versions are numbered in
the order of the changes, so a change that is lost, doubled or reordered, or has another one's image, is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

TABLES: Final = ("item", "note", "part")
INSERT, UPDATE, DELETE = range(3)
OPERATIONS: Final = ("insert", "update", "delete")
BLOCK_ROWS: Final = 50_000
_SIZES: Final = (20_000, *[5_000] * 3, *[1_000] * 10, *[100] * 35, *[10] * 100, *[1] * 500)
"""Sizes of a block's transactions."""
_LARGE: Final = 200_000
"""Size of the first transaction of a large backlog."""
_MOST_STATEMENTS: Final = 3


class Statement(NamedTuple):
    table: int
    op: int
    first: int
    """The statement is about the rows with ids in [first, end) that there are, or that it inserts."""
    end: int
    version: int
    """Version of the first row that it writes; the next ones follow."""


class Changes(NamedTuple):
    """The changes in order, a column each."""

    txn: np.ndarray
    table: np.ndarray
    op: np.ndarray
    id: np.ndarray
    before: np.ndarray
    """Version; 0: no row."""
    after: np.ndarray

    def since(self, transactions: int) -> Changes:
        """Return the changes of all transactions except the first ones."""
        return Changes(*(column[self.txn >= transactions] for column in self))

    def of(self, table: int) -> Changes:
        return Changes(*(column[self.table == table] for column in self))


class Workload:
    """Makes transactions by a seed, and keeps what they change."""

    def __init__(self, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        self._versions = [np.zeros(1 << 16, np.int64) for _ in TABLES]
        """By table and id; 0: no row."""
        self._next_id = [1] * len(TABLES)
        self._next_version = 1
        self._parts: list[list[np.ndarray]] = []
        self.transactions = 0
        self.rows = 0

    def transactions_of(self, rows: int) -> Iterator[list[Statement]]:
        """Yield transactions until there are about `rows` more changes."""
        end = self.rows + rows
        if rows > 2 * _LARGE:
            yield self.transaction(_LARGE)
        while self.rows < end:
            for size in self._random.permutation(_SIZES):
                yield self.transaction(int(size))

    def run(self, rows: int) -> None:
        """Make transactions of about `rows` changes."""
        for _ in self.transactions_of(rows):
            pass

    def transaction(self, size: int) -> list[Statement]:
        before = self.rows
        statements = []
        for _ in range(int(self._random.integers(1, _MOST_STATEMENTS + 1)) if size >= 10 else 1):
            statements += self._statement(size // _MOST_STATEMENTS or 1)
        if self.rows == before:  # all rows that it is about are gone
            statements += self._insert(int(self._random.integers(len(TABLES))), size)
        self.transactions += 1
        return statements

    def _statement(self, size: int) -> list[Statement]:
        table = int(self._random.integers(len(TABLES)))
        op = int(self._random.choice(3, p=(0.5, 0.35, 0.15)))
        if op == INSERT:
            return self._insert(table, size)
        last = self._next_id[table]
        first = int(self._random.integers(1, max(2, last - size)))
        end = min(first + size, last)
        versions = self._versions[table]
        ids = first + np.flatnonzero(versions[first:end])
        if not len(ids):
            return []
        after = np.zeros(len(ids), np.int64) if op == DELETE else self._new_versions(len(ids))
        self._note(table, op, ids, versions[ids], after)
        versions[ids] = after
        return [Statement(table, op, first, end, int(after[0]))]

    def _insert(self, table: int, size: int) -> list[Statement]:
        first, end = self._next_id[table], self._next_id[table] + size
        self._next_id[table] = end
        if end > len(self._versions[table]):
            self._versions[table] = np.concatenate([self._versions[table], np.zeros(2 * end, np.int64)])
        after = self._new_versions(size)
        ids = np.arange(first, end)
        self._note(table, INSERT, ids, np.zeros(size, np.int64), after)
        self._versions[table][ids] = after
        return [Statement(table, INSERT, first, end, int(after[0]))]

    def _new_versions(self, count: int) -> np.ndarray:
        first = self._next_version
        self._next_version += count
        return np.arange(first, first + count)

    def _note(self, table: int, op: int, ids: np.ndarray, before: np.ndarray, after: np.ndarray) -> None:
        count = len(ids)
        same = [np.full(count, value) for value in (self.transactions, table, op)]
        self._parts.append([*same, ids, before.copy(), after.copy()])
        self.rows += count

    def changes(self) -> Changes:
        return Changes(*(np.concatenate(column) for column in zip(*self._parts, strict=True)))

    def net_changes(self) -> Changes:
        """Return the changes as TiKV has them: one of a row in a transaction, deletes first, then by key."""
        changes = self.changes()
        order = np.lexsort((changes.id, changes.table, changes.txn))  # stable
        sorted_ = Changes(*(column[order] for column in changes))
        keys = np.stack([sorted_.txn, sorted_.table, sorted_.id])
        first = np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
        last = np.concatenate([first[1:], [True]])
        txn, table, id_ = keys[:, first]
        before, after = sorted_.before[first], sorted_.after[last]
        op = np.where(before == 0, INSERT, np.where(after == 0, DELETE, UPDATE))
        order = np.lexsort((id_, table, op != DELETE, txn))
        order = order[(before != after)[order]]  # without rows that came and went
        return Changes(*(column[order] for column in (txn, table, op, id_, before, after)))

    def rows_of(self, table: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids and versions of a table's rows, by id."""
        ids = np.flatnonzero(self._versions[table])
        return ids, self._versions[table][ids]
