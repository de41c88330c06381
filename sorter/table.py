"""A keyspace of the sorter."""

from __future__ import annotations

from collections.abc import Hashable

from ..events import Ts


class Table:
    """A keyspace of a sorter: one table, or a stream of many."""

    __slots__ = ("group", "id", "removed", "resolved", "since", "store", "uid")

    def __init__(
        self,
        table_id: int,
        uid: int,
        store: int,
        resolved: Ts,
        since: float,
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
        self.resolved = resolved
        """Everything at or below it has been added. Written under the lock of Arrivals."""
        self.since = since
        """The clock's `now()` when `resolved` last moved."""
        self.removed = False
