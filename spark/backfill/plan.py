"""Which tables a backfill reads, and in which chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal
from uuid import uuid4

from msgspec import Struct

from ...errors import InvariantViolated
from ...events import Table, Ts

STRIDE: Final = 1 << 20
"""Timestamps of a chunk, one for each of its pieces: four milliseconds, which no chunk is read in."""


_OWN_UID: Final = 1 << 31
"""The sorter counts its uids from 1: it never comes here."""


def new_uid() -> int:
    return _OWN_UID | uuid4().int & _OWN_UID - 1


class ChunkPlan(Struct, frozen=True, omit_defaults=True):
    """A part of a table."""

    number: int
    """Unique in the plan; higher ones come later in the order of delivery."""
    after: int | None = None
    """MariaDB: only rows whose first key column is above; None: from the first row on."""
    up_to: int | None = None
    """... and at or below."""
    start: bytes = b""
    """TiKV: raw keys from here ..."""
    end: bytes = b""
    """... up to but not including this."""


class TablePlan(Struct, frozen=True, omit_defaults=True):
    number: int
    """That of its definition, below those of its chunks; the sorter's number of its keyspace."""
    table: Table
    chunks: tuple[ChunkPlan, ...]
    by_key: bool = False
    """Its rows come in the order of its key, which is of integers, and can be resumed behind any of them."""
    exact: bool = True
    """A chunk is of one moment; otherwise of some time between two positions."""
    since: str = ""
    """MariaDB: where the binlog stood before the table was planned: the plan has what was altered before."""
    rows_estimated: int = 0
    info: bytes = b""
    """TiKV: its definition there."""


class Plan(Struct, frozen=True):
    """Everything that tasks need to know, beside how the source is reached."""

    kind: Literal["mariadb", "tikv"]
    uid: int
    """Of this backfill's keys, and of no sorter's: those are small."""
    source: str
    patterns: tuple[str, ...]
    position: str
    """MariaDB: where the binlog stood before anything was read. TiKV: the ts that is read at."""
    surveyed: str
    """MariaDB: where the binlog stood before the tables were looked for last."""
    base: Ts
    tables: tuple[TablePlan, ...]
    next_number: int

    def first_ts(self, number: int) -> Ts:
        """Of the chunk's pieces, or of a table's definition."""
        return self.base + number * STRIDE

    def piece_ts(self, number: int, piece: int) -> Ts:
        if piece >= STRIDE - 1:
            raise InvariantViolated(f"chunk {number} has more than {STRIDE} pieces: make smaller chunks")
        return self.first_ts(number) + piece

    @property
    def end_ts(self) -> Ts:
        """Above that of every chunk: that of the moment which all of them are of in the end."""
        return self.first_ts(self.next_number)

    def chunks(self) -> Iterator[tuple[TablePlan, ChunkPlan]]:
        for table in self.tables:
            for chunk in table.chunks:
                yield table, chunk

    def find(self, number: int) -> tuple[TablePlan, ChunkPlan]:
        return next(found for found in self.chunks() if found[1].number == number)
