"""All merged tables of a feed: the state of its stage in a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from ..chain import Keep
from ..errors import SinkError
from ..events import Checkpoint, Ddl, Table, TableName
from .merged_table import MergedState, MergedTable
from .route import Route

_KEY = "merged "
"""Beginning of the keys of merged tables in a checkpoint."""


class MergedTables:
    """The merged tables by their names, restored from the states in a checkpoint."""

    def __init__(self, feed: str, states: Mapping[str, str]) -> None:
        self._feed = feed
        restored = [MergedTable.restored(feed, text) for key, text in states.items() if key.startswith(_KEY)]
        self._tables = {merged.target: merged for merged in restored}
        self.unsettled: set[TableName] = set()
        """Tables whose change may be resolved at the end of the transaction."""

    def __iter__(self) -> Iterator[MergedTable]:
        """Return the tables as they are now. Any thread."""
        return iter(self._tables.copy().values())

    def __getitem__(self, target: TableName) -> MergedTable:
        return self._tables[target]

    def get(self, target: TableName) -> MergedTable | None:
        return self._tables.get(target)

    def of_lock(self, lock: str) -> MergedTable | None:
        """Return the table whose lock has this id."""
        return next((merged for merged in self if merged.id == lock), None)

    def add(self, target: TableName, table: Table) -> MergedTable:
        """Add a table without shards, by its definition."""
        merged = self._tables[target] = MergedTable(self._feed, target, table)
        return merged

    def keeps(self) -> list[Keep]:
        """Return the marks that put all tables into the checkpoint."""
        return [keep(merged) for merged in self]

    def changed(self, route: Route, ddl: Ddl) -> MergedTable:
        """Return the table whose shard made a change. Raises SinkError if it isn't known as a shard."""
        merged = self._tables.get(route.target)
        if merged is None or not merged.has(route.shard):
            raise SinkError(
                f"{route.shard} isn't known as a shard of {'.'.join(route.target)}, and {ddl.query} changed "
                "it: load everything into an empty target"
            )
        return merged


def merged_states(states: Mapping[str, str], feed: str = "") -> dict[TableName, MergedTable]:
    """Return the merged tables in a checkpoint's states by their names in the target."""
    return {merged.target: merged for merged in MergedTables(feed, states)}


def keep(merged: MergedTable) -> Keep:
    """Return the mark that puts a table's state into the checkpoint."""
    return Keep(f"{_KEY}{merged.full_name}", merged.state)


def state_in(checkpoint: Checkpoint, merged: MergedTable) -> MergedState | None:
    """Return a table's state in a checkpoint; None if it has none."""
    text = checkpoint.stages.get(f"{_KEY}{merged.full_name}")
    return None if text is None else msgspec.json.decode(text, type=MergedState)
