"""Candidates of a table without a key, or whose keys have another order in the target: by hashes on disk.

All rows of both sides are read once. A hash of each is counted in a temporary file, up for the source and
down for the target; what isn't at zero then is read again, to know the rows. So the memory doesn't grow with
the table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from hashlib import blake2b
from typing import Final

from ..dialects.read import Key, Reader
from ..events import Row, Table
from .pace import Pace
from .side import SourceRows

BATCH: Final = 5_000
"""Maximum number of differing hashes whose rows are in memory at once."""
_COUNT: Final = "INSERT INTO hashes VALUES (?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count"


class Spool:
    """Compares one table. `rows` counts the source's rows that were compared."""

    def __init__(self, source: SourceRows, target: Reader, table: Table, pace: Pace) -> None:
        self._source = source
        self._target = target
        self._table = table
        self._pace = pace
        self.rows = 0

    def candidates(self) -> Iterator[list[Key]]:
        """Yield stored keys of rows that may differ; of a table without a key whole rows."""
        with closing(sqlite3.connect("", isolation_level=None)) as hashes:  # a file that SQLite deletes
            hashes.execute("CREATE TABLE hashes (hash BLOB PRIMARY KEY, count INTEGER) WITHOUT ROWID")
            hashes.execute("BEGIN")
            for page in self._ours():
                self.rows += len(page)
                hashes.executemany(_COUNT, [(hash_of(row), 1) for row in page])
                yield []
            for page in self._theirs():
                hashes.executemany(_COUNT, [(hash_of(row), -1) for row in page])
                yield []
            hashes.execute("DELETE FROM hashes WHERE count = 0")
            last = b""
            while True:
                rows = hashes.execute(
                    "SELECT hash FROM hashes WHERE hash > ? ORDER BY hash LIMIT ?", (last, BATCH)
                ).fetchall()
                if not rows:
                    return
                last = rows[-1][0]
                yield self._keys({value for (value,) in rows})

    def _keys(self, wanted: set[bytes]) -> list[Key]:
        keys: dict[Key, None] = {}
        for pages in self._theirs(), self._ours():  # extra rows first: they may be in the way of missing ones
            for page in pages:
                keys |= dict.fromkeys(self._key(row) for row in page if hash_of(row) in wanted)
        return list(keys)

    def _ours(self) -> Iterator[list[Row]]:
        return self._paced(self._target.stored(self._table, page) for page in self._source.every(self._table))

    def _theirs(self) -> Iterator[list[Row]]:
        return self._paced(self._target.every(self._table))

    def _paced(self, pages: Iterable[list[Row]]) -> Iterator[list[Row]]:
        for page in pages:
            self._pace.spend(len(page))
            yield page

    def _key(self, row: Row) -> Key:
        return tuple([row[i] for i in self._table.key]) if self._table.key else row


def hash_of(row: Row) -> bytes:
    return blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=16).digest()
