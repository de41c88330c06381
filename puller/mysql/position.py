"""Positions in a binlog, and the commit ts of its transactions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from ...errors import CheckpointError
from ...events import Checkpoint, Ts, compose_ts
from ..lane import ALONE, Lane

_PLACE = r"(\S+\.\d+):(\d+)"
_POSITION = re.compile(rf"{_PLACE}(?: prepared {_PLACE})?")


class Place(NamedTuple):
    """A byte in a binlog."""

    file: str
    offset: int


class Position(Struct, frozen=True):
    """A position between two transactions, written "mysql-bin.000003:4711".

    While an XA transaction is prepared, " prepared mysql-bin.000002:815" follows.
    """

    file: str
    offset: int
    prepared: Place | None = None
    """Where the oldest XA transaction begins that is prepared and not ended."""

    @classmethod
    def parse(cls, text: str) -> Position:
        """Parse a position. Raises CheckpointError if `text` isn't one."""
        match = _POSITION.fullmatch(text)
        if match is None:
            raise CheckpointError(f"{text!r} is not a binlog position like 'mysql-bin.000003:4711'")
        prepared = Place(match[3], int(match[4])) if match[3] else None
        return cls(match[1], int(match[2]), prepared)

    @property
    def rank(self) -> tuple[int, int]:
        """Sort key of one server's positions: the number at the end of the file's name, the offset."""
        return int(self.file.rpartition(".")[2]), self.offset

    def __str__(self) -> str:
        since = f" prepared {self.prepared.file}:{self.prepared.offset}" if self.prepared else ""
        return f"{self.file}:{self.offset}{since}"


class CommitClock:
    """Assigns commit timestamps: the time of a transaction's first event, or just above the last ts.

    The binlog's time is in seconds and may step back. After a restart from an earlier checkpoint, a
    transaction gets the same ts or a lower one, since the clock was also raised while the source was idle.
    The checkpoints of all sinks (`sink_checkpoints`) correct that: the clock is raised to a checkpoint's ts
    where the stream passes its position. So a sink already has exactly the changes at or below the ts of its
    checkpoint.

    Of several sources each keeps to its `lane`. `last` is rounded down to it, so the next ts is the lowest of
    the lane above what `last` was given as.
    """

    def __init__(self, last: Ts = 0, sink_checkpoints: Iterable[Checkpoint] = (), lane: Lane = ALONE) -> None:
        self._lane = lane
        self.last = lane.at_most(last)
        """The ts of the last complete transaction, or the ts that the clock was raised to since."""
        places = [
            (Position.parse(checkpoint.position).rank, checkpoint.ts)
            for checkpoint in sink_checkpoints
            if checkpoint.position
        ]
        self._sink_checkpoints = sorted(places, reverse=True)

    def next(self, epoch_seconds: int) -> Ts:
        """Return the ts of a transaction that begins. It becomes `last` when the transaction is complete."""
        return self._lane.at_least(max(compose_ts(epoch_seconds * 1000), self.last + 1))

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
        """Note that the stream is at `position`, between two transactions."""
        while self._sink_checkpoints and self._sink_checkpoints[-1][0] <= position.rank:
            self.raise_to(self._sink_checkpoints.pop()[1])

    @property
    def has_checkpoints_ahead(self) -> bool:
        """True if sink checkpoints are ahead: up to them no transaction may get a higher ts than before."""
        return bool(self._sink_checkpoints)
