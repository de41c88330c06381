"""The plan of a backfill: tables and their chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal
from uuid import uuid4

from msgspec import Struct

from ...errors import InvariantViolated
from ...events import OrderedKey, Table, Ts

STRIDE: Final = 1 << 20
"""Timestamps reserved for a chunk, one per piece: 4 ms, less than reading any chunk takes."""

VERSION: Final = 2
"""Version of the files in a backfill's directory."""
_OWN_UID: Final = 1 << 31
"""Lowest uid of a backfill: the sorter's uids count from 1 and never reach it."""


def new_uid() -> int:
    return _OWN_UID | uuid4().int & _OWN_UID - 1


class ChunkPlan(Struct, frozen=True, omit_defaults=True):
    """A chunk of a table."""

    number: int
    """Unique in the plan; higher ones come later in the order of delivery."""
    after: OrderedKey | None = None
    """MariaDB: lower bound of the keys, exclusive; None: from the first row."""
    up_to: OrderedKey | None = None
    """MariaDB: upper bound of the keys, inclusive; None: to the last row."""
    start: bytes = b""
    """TiKV: first raw key."""
    end: bytes = b""
    """TiKV: end of the raw keys, exclusive."""


class TablePlan(Struct, frozen=True, omit_defaults=True):
    number: int
    """Number of the table's definition, below those of its chunks; its keyspace in the sorter."""
    table: Table
    chunks: tuple[ChunkPlan, ...]
    by_key: bool = False
    """True if rows come in the order of their keys, so that loading can resume after any row."""
    exact: bool = True
    """True if each chunk is of one position; otherwise of a range between two positions."""
    since: str = ""
    """MariaDB: the binlog position before the table was planned; the plan includes earlier alterations."""
    rows_estimated: int = 0
    digest: bytes = b""
    """MariaDB: hash of the definition, as in a SourceTable."""
    info: bytes = b""
    """TiKV: the table's definition at the plan's ts."""


class BackfillPlan(Struct, frozen=True):
    """Everything that tasks need, except how to reach the source."""

    kind: Literal["mariadb", "tikv"]
    uid: int
    """Prefix of this backfill's keys, above any sorter's uid."""
    source: str
    patterns: tuple[str, ...]
    position: str
    """MariaDB: the binlog position before anything was read. TiKV: the ts of the reads."""
    surveyed: str
    """MariaDB: the binlog position before the last search for tables."""
    base: Ts
    tables: tuple[TablePlan, ...]
    next_number: int
    version: int = VERSION

    def first_ts(self, number: int) -> Ts:
        """Return the first ts of a chunk's pieces, or the ts of a table's definition."""
        return self.base + number * STRIDE

    def piece_ts(self, number: int, piece: int) -> Ts:
        if piece >= STRIDE - 1:
            raise InvariantViolated(f"chunk {number} has more than {STRIDE} pieces: make smaller chunks")
        return self.first_ts(number) + piece

    @property
    def end_ts(self) -> Ts:
        """The ts of the finished backfill, above that of every chunk."""
        return self.first_ts(self.next_number)

    def chunks(self) -> Iterator[tuple[TablePlan, ChunkPlan]]:
        for table in self.tables:
            for chunk in table.chunks:
                yield table, chunk

    def find(self, number: int) -> tuple[TablePlan, ChunkPlan]:
        return next(one for one in self.chunks() if one[1].number == number)
