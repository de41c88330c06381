"""The commits of the source, which are all that the auditor believes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from ...events import Row, Ts

Key: TypeAlias = Any
State: TypeAlias = dict[str, "TableState"]


class TableState(Struct):
    """A table as of some ts."""

    columns: tuple[str, ...]
    rows: dict[Key, Row]


class Change(Struct, frozen=True):
    """A transaction or a schema change."""

    ts: Ts
    text: str
    rows: tuple[tuple[str, Key, Row | None], ...] = ()
    alter: Callable[[State], None] | None = None
    """Changes tables; rows are new dicts."""


class Truth:
    def __init__(self) -> None:
        self.changes: list[Change] = []

    def commit(self, change: Change) -> None:
        self.changes.append(change)

    @property
    def last(self) -> Ts:
        return max((change.ts for change in self.changes), default=0)


class Replay:
    """The tables as of a ts that only grows."""

    def __init__(self, truth: Truth) -> None:
        self.state: State = {}
        self._changes = sorted(truth.changes, key=lambda change: change.ts)
        self._next = 0

    def advance(self, ts: Ts) -> State:
        """Return the tables as of `ts`; they change with the next call."""
        while self._next < len(self._changes) and self._changes[self._next].ts <= ts:
            change = self._changes[self._next]
            self._next += 1
            if change.alter is not None:
                change.alter(self.state)
            for table, key, row in change.rows:
                if row is None:
                    self.state[table].rows.pop(key, None)
                else:
                    self.state[table].rows[key] = row
        return self.state
