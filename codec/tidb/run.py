"""Runs that keep TiKV's bytes until their rows are asked for."""

from __future__ import annotations

from collections.abc import Sequence

from ...events import KvChange, RowChange, Run
from .changes import ChangesDecoder
from .row_decoder import RowDecoder


class KvBlock:
    """Raw changes of one table that are decoded together: those of many transactions, in their order.

    Each of them changes a row: `op_of` isn't None, and it is no fill.
    """

    __slots__ = ("_decoded", "changes", "decoder")

    def __init__(self, decoder: ChangesDecoder, changes: list[KvChange]) -> None:
        self.decoder = decoder
        self.changes = changes
        self._decoded: list[RowChange] | None = None

    def rows(self) -> list[RowChange]:
        """Return the row changes, decoded once. Raises SourceError."""
        if self._decoded is None:
            with self.decoder.lock:
                if self._decoded is None:
                    changes_read = self.decoder.read(self.changes)
                    self._decoded = [change for change in changes_read if change is not None]
        return self._decoded


class KvRun(Run, eq=False, gc=False):
    """Consecutive changes of a block, of one operation."""

    block: KvBlock
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def changes(self) -> list[RowChange]:
        if self.decoded is None:
            self.decoded = self.block.rows()[self.start : self.stop]
        return self.decoded

    def raw(self) -> list[KvChange]:
        """Return the changes as they came."""
        return self.block.changes[self.start : self.stop]


class PairsRun(Run, eq=False, gc=False):
    """Rows that were read at a ts, as inserts."""

    rows: RowDecoder
    keys: Sequence[bytes]
    values: Sequence[bytes]
    """The value of each key."""

    def __len__(self) -> int:
        return len(self.keys)

    def changes(self) -> list[RowChange]:
        if self.decoded is None:
            rows_read = self.rows.decode(list(zip(self.keys, self.values, strict=True)))
            ts, table = self.commit_ts, self.table
            self.decoded = [RowChange(ts, self.start_ts, table, self.op, None, row) for row in rows_read]
        return self.decoded
