"""Items of one shard that wait for the other shards' schema changes."""

from __future__ import annotations

from collections import deque

from msgspec.structs import replace

from ..events import Ddl, Item, Rows, Run, TablePosition, Transaction, Ts


class Held:
    """The items of one shard after its first unresolved change, in order.

    Beyond the quota they are forgotten: then the source is read again from the first one.
    """

    def __init__(self, since: float, conflict: str = "") -> None:
        self.since = since
        self.conflict = conflict
        """The shard's change and its conflict with others; empty if it waits until they have made it too."""
        self.rows = 0
        self.is_forgotten = False
        self.sought: TablePosition | None = None
        """Position after which the forgotten items are needed now."""
        self.needs: tuple[str, Ts] | None = None
        """Table and commit ts that must be durable before."""
        self._items: deque[Item] = deque()
        self._is_open = False

    def add(self, item: Transaction, runs: list[Run]) -> None:
        """Hold a part of a transaction."""
        if not self.is_forgotten:
            rows = Rows(runs)
            self._items.append(replace(item, rows=rows))
            self.rows += len(rows)
            self._is_open = not item.last

    def add_ddl(self, ddl: Ddl) -> None:
        if not self.is_forgotten:
            self._items.append(replace(ddl, last=True))

    def end(self, place: TablePosition) -> None:
        """Note that the source's transaction has ended."""
        if self._is_open:
            tail = self._items[-1]
            assert isinstance(tail, Transaction)
            end = Transaction(tail.commit_ts, tail.start_ts, tail.source, [], place.position)
            self._items.append(end)
            self._is_open = False
        elif self._items and isinstance(self._items[-1], Ddl) and self._items[-1].commit_ts == place.ts:
            self._items[-1] = replace(self._items[-1], position=place.position)

    @property
    def has_rows(self) -> bool:
        """Return True if rows of the shard have come since it waits."""
        return self.rows > 0 or self.is_forgotten

    def forget(self) -> None:
        self._items.clear()
        self.rows = 0
        self.is_forgotten = True
        self._is_open = False

    def released(self) -> tuple[list[Transaction], Ddl | None]:
        """Return the transactions up to the next schema change, and that change, no longer held."""
        released: list[Transaction] = []
        while self._items:
            item = self._items.popleft()
            if isinstance(item, Ddl):
                return released, item
            self.rows -= len(item.rows)
            released.append(item)
        return released, None
