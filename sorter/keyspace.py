"""A keyspace of the sorter."""

from __future__ import annotations

from collections.abc import Hashable


class SortKeyspace:
    """A keyspace of a sorter: one table, or a stream of many."""

    __slots__ = ("group", "id", "removed", "store", "uid")

    def __init__(
        self,
        table_id: int,
        uid: int,
        store: int,
        *,
        shares_runs: bool = True,
    ) -> None:
        self.id = table_id
        self.uid = uid
        """The keyspace of its changes. Unique in the process: a table that is removed and added again never
        meets its old changes."""
        self.store = store
        """The number of the store that its changes go to."""
        self.group: Hashable = store if shares_runs else ("table", uid)
        """Tables of the same group may share a run; they have the same store."""
        self.removed = False
