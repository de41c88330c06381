"""The one way in which the rows of a chunk are made exact at a position.

A chunk is read in a view of its own. Brought forward, its rows are replaced by the last images that the log
has after the view began; brought back, by the first images between the position and the view. Images may be
laid over rows that have them already: each is the whole row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

from msgspec.structs import replace

from ..errors import InvariantViolated
from ..events import KeyRange, OrderedKey, Row, RowChange, Run, Table, key_order

K = TypeVar("K")

KeyOf: TypeAlias = Callable[[Row], K]


class Overlay(Generic[K]):
    """The states of rows that were changed, by their keys; they replace the rows of a chunk."""

    def __init__(self, key_of: Callable[[Table], KeyOf[K]]) -> None:
        """`key_of` returns the function from a table's row to its key, for a table of changes or rows."""
        self._key_of = key_of
        self._table: Table | None = None
        self._states: dict[K, RowChange | None] = {}

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[K]:
        return iter(self._states)

    def __contains__(self, key: K) -> bool:
        return key in self._states

    def add(self, changes: Sequence[RowChange]) -> None:
        """Bring forward: add changes in the log's order. The last image of a key counts."""
        states = self._states
        for change in changes:
            key = self.key(change.table)
            if change.before is not None:
                states[key(change.before)] = None
            if change.after is not None:
                states[key(change.after)] = (
                    change if change.op == "insert" else _inserted(change, change.after)
                )

    def undo(self, changes: Sequence[RowChange]) -> None:
        """Bring back: add changes in the log's order. The first image of a key counts."""
        states = self._states
        for change in changes:
            key = self.key(change.table)
            if change.before is not None:
                states.setdefault(key(change.before), _inserted(change, change.before))
            if change.after is not None:
                states.setdefault(key(change.after), None)

    def unchanged(self, run: Run) -> Run:
        """Return the rows of a chunk that weren't changed."""
        states = self._states
        if not states:
            return run
        key = self.key(run.table)
        kept = [
            change for change in run.changes() if change.after is not None and key(change.after) not in states
        ]
        return run if len(kept) == len(run) else Run(run.commit_ts, run.start_ts, run.table, "insert", kept)

    def states(self) -> Iterator[tuple[K, RowChange]]:
        """Yield the changed rows that there are, as inserts."""
        for key, change in self._states.items():
            if change is not None:
                yield key, change

    def key(self, table: Table) -> KeyOf[K]:
        if table is not self._table:
            self._table, self._key = table, self._key_of(table)
        return self._key


def ordered_keys(table: Table) -> KeyOf[OrderedKey]:
    """Return the key of a table whose keys have an order. Raises InvariantViolated for another one."""
    order = key_order(table)
    if order is None:
        raise InvariantViolated(f"{table.full_name} was read in chunks without a comparable key")
    return order


def changed_within(overlay: Overlay[OrderedKey], within: KeyRange) -> list[RowChange]:
    """Return the changed rows of a range, as inserts."""
    return [change for key, change in overlay.states() if within.has(key)]


def _inserted(change: RowChange, row: Row) -> RowChange:
    return replace(change, op="insert", before=None, after=row)
