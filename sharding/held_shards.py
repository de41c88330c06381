"""The shards that wait for other shards' schema changes, and the quota for their rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ..chain import Element, Lag
from ..events import Checkpoint, Ddl, Item, Rows, Run, TablePosition, Transaction, Ts, Wait
from ..failpoint import reach
from .merged_table import MergedTable
from .shard import Shard


class HeldShards:
    """Shards that wait, each with its items; each one's position in the checkpoint lags.

    Never stored: after a restart, the changes of these shards come again.
    """

    def __init__(self, max_rows: int, late: Iterable[str] = ()) -> None:
        """`late` has the tables that lag by the checkpoint, whose older items come again."""
        self._max_rows = max_rows
        self._late = set(late)
        self._held: dict[Shard, Held] = {}
        self._rows = 0  # in all of them
        self._changed: set[Shard] = set()
        """Shards with items of the present transaction."""

    def __contains__(self, shard: Shard) -> bool:
        return shard in self._held

    def __getitem__(self, shard: Shard) -> Held:
        return self._held[shard]

    def begin(
        self, shard: Shard, since: float, before: TablePosition | None, conflict: str = ""
    ) -> list[Element]:
        """Hold a shard from its change on; `before` is the position before it, None if the shard is late.

        `conflict` is the reason if others needn't make the change.
        """
        self._held[shard] = Held(since, conflict)
        reach("shard.held")
        return [] if before is None else [Lag(shard.origin_name, before)]

    def add(self, shard: Shard, item: Transaction, runs: list[Run]) -> None:
        """Hold a shard's part of a transaction; beyond the quota, forget the shard with most rows."""
        held = self._held[shard]
        before = held.rows
        held.add(item, runs)
        self._rows += held.rows - before
        self._changed.add(shard)
        while self._rows > self._max_rows:
            largest = max(self._held.values(), key=lambda held: held.rows)
            self._rows -= largest.rows
            largest.forget()
            reach("shard.forgotten")

    def add_ddl(self, shard: Shard, ddl: Ddl) -> None:
        self._held[shard].add_ddl(ddl)
        self._changed.add(shard)

    def read_again(self, shard: Shard, after: TablePosition, needs: tuple[str, Ts]) -> None:
        """Forget what a shard has: the source is read again from there, once the change of the other table
        by which the shard can go on is durable."""
        held = self._held[shard]
        self._rows -= held.rows
        held.forget()
        held.sought, held.needs = after, needs

    def is_sought_by(self, checkpoint: Checkpoint) -> bool:
        """Return True if the source is to be read again, and the durable checkpoint allows it."""
        sought = self.sought
        return bool(sought) and all(
            checkpoint.tables.get(shard.origin_name) == place
            and ((needs := self._held[shard].needs) is None or checkpoint.covers(*needs))
            for shard, place in sought.items()
        )

    def end(self, place: TablePosition) -> None:
        """Note that the source's transaction has ended."""
        for shard in self._changed:
            self._held[shard].end(place)
        self._changed.clear()

    def released(self, shard: Shard) -> tuple[list[Transaction], Ddl | None]:
        """Return the transactions up to the shard's next schema change, and that change, no longer held."""
        held = self._held[shard]
        before = held.rows
        released = held.released()
        self._rows += held.rows - before
        return released

    def remove(self, shard: Shard) -> list[Element]:
        """Note that a shard no longer waits: it has caught up, unless a stage before has items of it."""
        del self._held[shard]
        return [] if shard.origin_name in self._late else [Lag(shard.origin_name, None)]

    def lag(self, lag: Lag) -> list[Element]:
        """Note that a stage before this one no longer lags; a shard that waits here still does."""
        self._late.discard(lag.table)
        if lag.at is None and any(shard.origin_name == lag.table for shard in self._held):
            return []
        return [lag]

    @property
    def sought(self) -> dict[Shard, TablePosition]:
        """Positions of the shards whose forgotten items are needed now."""
        return {shard: held.sought for shard, held in self._held.items() if held.sought is not None}

    def is_sought(self, merged: MergedTable) -> bool:
        """Return True if rows before the next change have to be read again first."""
        return any(merged.has(shard) for shard in self.sought)

    # --- any thread

    def get(self, shard: Shard) -> Held | None:
        return self._held.get(shard)

    @property
    def waiting(self) -> frozenset[str]:
        """Origin names of shards that can't go on before others have made a change."""
        held = self._held.copy()
        return frozenset(shard.origin_name for shard, one in held.items() if one.sought is None)

    def waits(self, sink: str, now: float, feeds: Sequence[str] = ()) -> list[Wait]:
        """Return a wait for each shard; `feeds` haven't made a change that is waited for."""
        others = f", those of {', '.join(f'feed {feed}' for feed in feeds)} too" if feeds else ""
        return [
            Wait(
                f"sink {sink}",
                "held",
                now - held.since,
                table=shard.origin_name,
                count=held.rows,
                reason=held.conflict or f"it waits until all shards have made its schema change{others}",
            )
            for shard, held in self._held.copy().items()
        ]


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

    def end(self, position: TablePosition) -> None:
        """Note that the source's transaction has ended."""
        if self._is_open:
            tail = self._items[-1]
            assert isinstance(tail, Transaction)
            end = Transaction(tail.commit_ts, tail.start_ts, tail.source, [], position.position)
            self._items.append(end)
            self._is_open = False
        elif self._items and isinstance(self._items[-1], Ddl) and self._items[-1].commit_ts == position.ts:
            self._items[-1] = replace(self._items[-1], position=position.position)

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
