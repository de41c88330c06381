"""The comparison of one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from ..dialects.read import Key, Reader, Settled
from ..events import Checkpoint, Table
from .chunks import Chunks, KeyMark
from .pace import Pace
from .settle import Settling
from .side import SourceRows
from .spool import Spool

_CANDIDATES: Final = 1_000
"""Number of candidates that are looked at together, ..."""
_SETTLE_SECONDS: Final = 5.0
"""... and time after which fewer are, so that a stop finds few that weren't."""


class TableComparison:
    """Compares the columns that both sides have."""

    def __init__(
        self,
        source: SourceRows,
        target: Reader,
        table: Table,
        differs: str,
        pace: Pace,
        settling: Settling,
    ) -> None:
        """`settling` looks again at rows of the same table that differ."""
        self.table = table
        """Has the columns of both sides only."""
        self.differs = differs
        """Differences of the target's table; empty if there are none."""
        self.rows = 0
        """Number of the source's rows compared, without those before `after`."""
        self.waiting: list[Key] = []
        """Keys of rows that may differ, and weren't read again."""
        self.reached: KeyMark | None = None
        """End of the rows that are compared and settled, if the table is compared by ranges of its key."""
        self._source = source
        self._target = target
        self._pace = pace
        self._settling = settling

    @property
    def moving(self) -> int:
        """Number of rows that changed at every look."""
        return self._settling.moving

    def differences(self, checkpoint: Checkpoint, after: KeyMark | None = None) -> Iterator[list[Settled]]:
        """Yield the differences, those that were settled together in one list. Rows up to `after` aren't
        compared, if the table is compared by ranges."""
        source, table = self._source, self.table
        source.view(checkpoint, table.full_name)
        way: Chunks | Spool
        if table.key and source.is_ordered(table) and self._target.sorts_as(table, source.summing):
            way = Chunks(source, self._target, table, self._pace, after)
        else:
            way = Spool(source, self._target, table, self._pace)
        waiting, since = self.waiting, self._pace.now()
        for keys in way.candidates():
            self.rows = way.rows
            if not waiting:
                since = self._pace.now()
            waiting += keys
            while len(waiting) >= _CANDIDATES or (waiting and self._pace.now() - since >= _SETTLE_SECONDS):
                yield self.settled(waiting[:_CANDIDATES])
                del waiting[:_CANDIDATES]
            if not waiting and isinstance(way, Chunks):
                self.reached = way.reached
        self.rows = way.rows
        yield self.settled(waiting)
        waiting.clear()

    def settled(self, keys: Sequence[Key]) -> list[Settled]:
        """Return the differences among these stored keys."""
        # Deletions first: another spelling of a key may be the same key in the target.
        return sorted(self._settling.settle(keys), key=lambda one: one.source is not None)


def reduced(table: Table, names: Sequence[str]) -> Table | None:
    """Return the table with these columns; None if its key is not among them."""
    kept = [i for i, column in enumerate(table.columns) if column.name in set(names)]
    if not kept or not set(table.key) <= set(kept):
        return None
    places = {old: new for new, old in enumerate(kept)}
    key: Key = tuple(places[i] for i in table.key)
    return replace(table, columns=tuple(table.columns[i] for i in kept), key=key)
