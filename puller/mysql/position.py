"""Positions in a binlog, and the commit ts of its transactions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import total_ordering
from typing import NamedTuple

from msgspec import Struct

from ...errors import CheckpointError, SourceError
from ...events import Checkpoint, TablePosition, Ts, compose_ts
from ..lane import ALONE, Lane
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
        here, there = self._keys(other)
        return here < there

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


class CommitClock:
    """Assigns commit timestamps: the time of a transaction's first event, or just above the last ts.

    The binlog's time is in seconds and may step back. After a restart from an earlier checkpoint, a
    transaction gets the same ts or a lower one, since the clock was also raised while the source was idle.
    The checkpoints of all sinks (`sink_checkpoints`) correct that: the clock is raised to the ts of a
    checkpoint, or of a table that is ahead of it, where the stream passes the position. So a sink already has
    exactly the changes at or below the ts of its checkpoint.

    Of several sources each keeps to its `lane`. `last` is rounded down to it, so the next ts is the lowest of
    the lane above what `last` was given as.
    """

    def __init__(self, last: Ts = 0, sink_checkpoints: Iterable[Checkpoint] = (), lane: Lane = ALONE) -> None:
        self._lane = lane
        self._is_alone = lane.count == 1
        self.last = lane.at_most(last)
        """The ts of the last complete transaction, or the ts that the clock was raised to since."""
        places = [
            (Position.parse(at.position), at.ts)
            for checkpoint in sink_checkpoints
            for at in (TablePosition(checkpoint.ts, checkpoint.position), *checkpoint.tables.values())
            if at.position and at.ts >= checkpoint.ts
        ]
        self._sink_checkpoints = sorted(places, key=lambda place: (place[0].rank, place[1]), reverse=True)
        self._is_moved = False

    def next(self, epoch_seconds: int) -> Ts:
        """Return the ts of a transaction that begins. It becomes `last` when the transaction is complete."""
        ts = compose_ts(epoch_seconds * 1000)
        if ts <= self.last or (self._is_moved and self._sink_checkpoints):
            ts = self.last + 1
        return ts if self._is_alone else self._lane.at_least(ts)

    def move(self) -> None:
        """Note that the stream goes on at another server, whose binlog may have other times.

        Up to the sink checkpoints that are ahead, timestamps are given without gaps: so no transaction gets a
        higher ts than it had.
        """
        self._is_moved = True

    def raise_to(self, ts: Ts) -> bool:
        """Give only ts above `ts` from now on; False if that was so already."""
        ts = self._lane.at_most(ts)
        if ts <= self.last:
            return False
        self.last = ts
        return True

    def advance_watermark(self, ts: Ts) -> bool:
        """Raise the clock to `ts`, rounded up to the lane; False if it was there already."""
        return self.raise_to(self._lane.at_least(ts))

    def pass_to(self, position: Position) -> None:
        """Note that the stream is at `position`, between two transactions.

        Raises SourceError if another server has the transactions in another order, and so neither has all
        those that a sink has, nor only such.
        """
        while self._sink_checkpoints:
            at, ts = self._sink_checkpoints[-1]
            if not self._has_passed(at, position):
                return
            self.raise_to(ts)
            self._sink_checkpoints.pop()

    def _has_passed(self, at: Position, position: Position) -> bool:
        if not at.rank.compares_gtids(position.rank):
            return at.rank <= position.rank
        there, here = parse_gtids(at.gtid), parse_gtids(position.gtid)
        if here.contains(there):
            return True
        if there.contains(here):
            return False
        raise SourceError(
            f"the transactions up to {position} are in another order than those that a sink has, up to {at}: "
            "connect to the server that was followed before until all sinks are at one position"
        )

    @property
    def has_checkpoints_ahead(self) -> bool:
        """True if sink checkpoints are ahead: up to them no transaction may get a higher ts than before."""
        return bool(self._sink_checkpoints)
