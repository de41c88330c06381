"""Commits and rollbacks received before their region's incremental scan is complete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import msgpack

from .spill import BLOCK_BYTES, ROW_BYTES, Quota, SpilledBlock

Row: TypeAlias = tuple[int, int, int, bytes]
"""Commit ts (0: a rollback), start ts, op, raw key."""

_encode: Final = msgpack.Encoder().encode
_decode: Final = msgpack.Decoder(list[Row]).decode


class Early:
    """Early rows in order of arrival; on disk beyond the feed's bound. Used in its region worker's turns
    only."""

    __slots__ = ("__weakref__", "_places", "_quota", "_rows", "bytes")

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._rows: list[Row] = []
        self._places: list[SpilledBlock] = []
        self.bytes = 0
        """Bytes accounted for the rows in memory."""

    def add(self, row: Row) -> None:
        self._rows.append(row)
        self._quota.grew(self, ROW_BYTES + len(row[3]))

    def read(self) -> Iterator[list[Row]]:
        """Yield all rows, in chunks."""
        for place in self._places:
            yield _decode(self._quota.shared.read(place))
        yield self._rows

    def spill(self, least: int) -> None:  # noqa: ARG002
        """Write all rows to disk. Raises StoreError; then nothing is lost."""
        rows = max(1, BLOCK_BYTES // (self.bytes // len(self._rows)))
        blocks = [_encode(self._rows[at : at + rows]) for at in range(0, len(self._rows), rows)]
        for at in range(0, len(blocks), 16):
            self._places += self._quota.shared.write(blocks[at : at + 16])
        self._rows = []
        self._quota.grew(self, -self.bytes)

    def clear(self) -> None:
        """Drop all rows."""
        places, self._places, self._rows = self._places, [], []
        if self.bytes:
            self._quota.grew(self, -self.bytes)
        self._quota.shared.free(places)
