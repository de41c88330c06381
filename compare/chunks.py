"""Candidates of a table whose keys have the same order on both sides: by ranges of the key.

A range of the source's rows is compared by checksums if both servers can compute them, and halved until it is
small. Then, or without checksums, its rows are read from both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from ..dialects.read import Key, Range, Reader, Summing
from ..events import Row, Table
from .pace import Pace
from .side import SourceRows

CHUNK_ROWS: Final = 20_000
"""Number of rows of a checksum: about 0.1 s of a server's time."""
PAGE_ROWS: Final = 1_000
"""Number of rows that are read at once; a range is halved until it has no more."""


class KeyMark(NamedTuple):
    """A row's key: rows up to it are compared."""

    source: Key
    stored: Key


class Chunks:
    """Compares one table. `rows` counts the source's rows that were compared."""

    def __init__(
        self, source: SourceRows, target: Reader, table: Table, pace: Pace, after: KeyMark | None = None
    ) -> None:
        """`after` is the end of the rows that were compared before."""
        self._source = source
        self._target = target
        self._table = table
        self._pace = pace
        self.rows = 0
        self.reached = after
        """End of the ranges whose candidates were all yielded."""

    def candidates(self) -> Iterator[list[Key]]:
        """Yield stored keys of rows that may differ, after each range. The sides are read at different
        times."""
        source, target = self._source.summing, self._target.summing
        return self._by_rows() if source is None or target is None else self._by_checksums(source, target)

    # --- checksums

    def _by_checksums(self, source: Summing, target: Summing) -> Iterator[list[Key]]:
        after = self.reached.source if self.reached is not None else None
        while True:
            upto = source.bound(self._table, Range(after, None), self._pace.limit(CHUNK_ROWS))
            yield from self._halve(source, target, Range(after, upto), is_whole=True)
            if upto is None:
                return
            after = upto
            self.reached = KeyMark(upto, upto)

    def _halve(
        self, source: Summing, target: Summing, within: Range, *, is_whole: bool = False
    ) -> Iterator[list[Key]]:
        """Yield the candidates of a range; with `is_whole` it wasn't read before."""
        with ThreadPoolExecutor(1) as other:  # both servers work at once
            answer = other.submit(target.checksum, self._table, within)
            ours = source.checksum(self._table, within)
            same = ours == answer.result() and ours.bits is not None
        self._pace.spend(ours.rows)
        if is_whole:
            self.rows += ours.rows
        if same:
            yield []
            return
        middle = source.bound(self._table, within, ours.rows // 2) if ours.rows > PAGE_ROWS else None
        if middle is None or middle == within.upto:
            rows = [row for page in source.between(self._table, within, PAGE_ROWS) for row in page]
            differing = self._differing(rows, within)  # before a pause, in which rows may change
            self._pace.spend(len(rows))
            yield differing
            return
        yield from self._halve(source, target, Range(within.after, middle))
        yield from self._halve(source, target, Range(middle, within.upto))

    # --- rows

    def _by_rows(self) -> Iterator[list[Key]]:
        after, stored_after = self.reached if self.reached is not None else (None, None)
        while True:
            self._view_checkpoint()
            limit = self._pace.limit(PAGE_ROWS)
            rows = self._source.page(self._table, after, limit)
            upto = stored_upto = None
            if len(rows) == limit:
                upto = self._key(rows[-1])
                stored_upto = self._key(self._target.stored(self._table, rows[-1:])[0])
            differing = self._differing(rows, Range(stored_after, stored_upto))
            self._pace.spend(len(rows))
            self.rows += len(rows)
            yield differing
            if upto is None or stored_upto is None:
                return
            after, stored_after = upto, stored_upto
            self.reached = KeyMark(upto, stored_upto)

    def _view_checkpoint(self) -> None:
        """Read the next rows as of the target's present checkpoint, if the source can: it needn't keep older
        versions for the whole table."""
        if self._source.reads_at_checkpoint and (checkpoint := self._target.checkpoint()) is not None:
            self._source.view(checkpoint, self._table.full_name)

    def _differing(self, rows: list[Row], within: Range) -> list[Key]:
        """Return the keys of rows that differ from the target's in a range of stored keys."""
        ours = {self._key(row): row for row in self._target.stored(self._table, rows)}
        missing = []
        for page in self._target.between(self._table, within, PAGE_ROWS):
            for row in page:
                key = self._key(row)
                if ours.pop(key, None) != row:
                    missing.append(key)
        return missing + list(ours)

    def _key(self, row: Row) -> Key:
        return tuple([row[i] for i in self._table.key])
