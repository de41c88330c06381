"""Positions in a binlog."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import NamedTuple

from msgspec import Struct

from ...errors import CheckpointError
from .gtid import parse_gtids

_PLACE = r"(.{1,512}?\.\d+):(\d+)"
_POSITION = re.compile(rf"{_PLACE}(?: gtid=(\S+))?(?: server=(\S+))?( by=gtid)?(?: prepared {_PLACE})?")


class BinlogOffset(NamedTuple):
    """A byte in a binlog."""

    file: str
    offset: int


class Position(Struct, frozen=True):
    """A position between two transactions, written "mysql-bin.000003:4711 gtid=0-1-100 server=1".

    File and offset are those of one server. The GTIDs are the same on every server of a replication topology;
    they are left out where they aren't known. GTIDs alone are a position too, "0-1-100". While an XA
    transaction is prepared, " prepared mysql-bin.000002:815" follows.
    """

    file: str
    offset: int
    gtid: str = ""
    """The set of GTIDs before this position; empty if it isn't known."""
    server: str = ""
    """The server whose file and offset these are; empty if it isn't known."""
    by_gtid: bool = False
    """True if a dump must start by GTID on every server. That is so after a change of servers: the new
    one's file may have some of these GTIDs after the offset too."""
    prepared: BinlogOffset | None = None
    """Where the oldest XA transaction begins that is prepared and not ended."""

    @classmethod
    def parse(cls, text: str) -> Position:
        """Parse a position. Raises CheckpointError if `text` isn't one."""
        if match := _POSITION.fullmatch(text):
            prepared = BinlogOffset(match[6], int(match[7])) if match[6] else None
            return cls(match[1], int(match[2]), match[3] or "", match[4] or "", bool(match[5]), prepared)
        try:
            if not text:
                raise ValueError
            return cls("", 0, str(parse_gtids(text)), by_gtid=True)
        except (CheckpointError, ValueError):
            raise CheckpointError(
                f"{text!r} is not a binlog position like 'mysql-bin.000003:4711', nor a set of GTIDs like "
                "'0-1-100' or 'uuid:1-100'"
            ) from None

    @property
    def without_gtids(self) -> Position:
        """File and offset alone, which are those of one server."""
        return Position(self.file, self.offset)

    @property
    def rank(self) -> Rank:
        """Sort key: file and offset on one server, the GTIDs where the servers differ."""
        return Rank(file_number(self.file), self.offset, self.gtid, self.server, self.by_gtid)

    def __str__(self) -> str:
        if not self.file:
            return self.gtid
        gtid = f" gtid={self.gtid}" if self.gtid else ""
        server = f" server={self.server}" if self.server else ""
        by = " by=gtid" if self.by_gtid else ""
        since = f" prepared {self.prepared.file}:{self.prepared.offset}" if self.prepared else ""
        return f"{self.file}:{self.offset}{gtid}{server}{by}{since}"


def file_number(file: str) -> int:
    """Return the number at the end of a binlog file's name; 0 for no name."""
    return int(file.rpartition(".")[2] or 0)


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Rank:
    """Sort key of the positions of one feed. They are on one line of history, so of two positions on
    different servers the later one has more transactions."""

    number: int
    """The number at the end of the file's name."""
    offset: int
    gtid: str = ""
    server: str = ""
    by_gtid: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rank) and len({*self._keys(other)}) == 1

    def __lt__(self, other: Rank) -> bool:
        ours, theirs = self._keys(other)
        return ours < theirs

    def __hash__(self) -> int:
        return 0  # equal positions may look different

    def _keys(self, other: Rank) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if self.compares_gtids(other):
            return (parse_gtids(self.gtid).transactions,), (parse_gtids(other.gtid).transactions,)
        return (self.number, self.offset), (other.number, other.offset)

    def compares_gtids(self, other: Rank) -> bool:
        if not self.gtid or not other.gtid:
            return False
        return self.by_gtid or other.by_gtid or self.server != other.server
