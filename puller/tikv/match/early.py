"""Commits and rollbacks received before their region's incremental scan is complete."""

from __future__ import annotations

from collections.abc import Iterator

from ....codec.blocks import NOTHING, new_builder
from ....events import Block, Ts
from .spill import Quota, SpilledBlock, groups_of


class Early:
    """Early rows as changes without values; a rollback's commit ts is 0. On disk beyond the feed's bound.
    Used in its region worker's turns only."""

    __slots__ = ("_last", "_places", "_quota", "_rows", "bytes")

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._rows = new_builder()
        self._last: Block = NOTHING
        """The rows in memory, once no more come."""
        self._places: list[SpilledBlock] = []
        self.bytes = 0
        """Bytes accounted for the rows in memory."""

    def add(self, commit_ts: Ts, start_ts: Ts, op: int, key: bytes) -> None:
        self._rows.add(commit_ts, start_ts, op, key, b"")
        self._quota.account(self, self._rows.bytes)

    def read(self) -> Iterator[Block]:
        """Yield all rows; none is added or spilled then. Raises StoreError."""
        if len(self._rows):
            self._last = self._rows.take()
        yield self._last
        for place in self._places:
            yield self._quota.shared.read(place)

    def spill(self, least: int) -> None:  # noqa: ARG002
        """Write all rows to disk. Raises StoreError."""
        for blocks in groups_of(self._rows.take()):
            self._places += self._quota.shared.write(blocks)
        self._quota.account(self, 0)

    def clear(self) -> None:
        """Drop all rows."""
        places, self._places = self._places, []
        self._rows, self._last = new_builder(), NOTHING
        self._quota.account(self, 0)
        self._quota.shared.free(places)
