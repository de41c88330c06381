"""Where a binlog is read, and the ts that a transaction there gets."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from ...errors import CheckpointError
from ...events import Checkpoint, Ts, compose_ts

_POSITION = re.compile(r"(.+\.\d+):(\d+)")


class Position(Struct, frozen=True):
    """A place between two events, written "mysql-bin.000003:4711"."""

    file: str
    offset: int

    @classmethod
    def parse(cls, text: str) -> Position:
        """Raises CheckpointError if `text` is not a position."""
        match = _POSITION.fullmatch(text)
        if match is None:
            raise CheckpointError(f"{text!r} is not a binlog position like 'mysql-bin.000003:4711'")
        return cls(match[1], int(match[2]))

    @property
    def rank(self) -> tuple[int, int]:
        """The order of one server's positions: the number at the end of the file's name, the offset."""
        return int(self.file.rpartition(".")[2]), self.offset

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"


class CommitClock:
    """Gives each transaction its commit ts: the time of its first event, or just above the last ts.

    The binlog's time is in seconds and may step back. Read again from an earlier checkpoint, a
    transaction gets the ts it had or a lower one, since the clock was also raised while the source
    was idle. The sink_checkpoints make up for that: the checkpoints of all sinks, to whose ts the clock is
    raised where the stream passes them. So what a sink already has is what is at or below the ts of
    its checkpoint, always.
    """

    def __init__(self, last: Ts = 0, sink_checkpoints: Iterable[Checkpoint] = ()) -> None:
        self.last = last
        """Of the last complete transaction, or what the clock was raised to since."""
        places = [
            (Position.parse(anchor.position).rank, anchor.ts)
            for anchor in sink_checkpoints
            if anchor.position
        ]
        self._sink_checkpoints = sorted(places, reverse=True)

    def next(self, epoch_seconds: int) -> Ts:
        """The ts of a transaction that begins. It is not `last` before it is complete."""
        return max(compose_ts(epoch_seconds * 1000), self.last + 1)

    def raise_to(self, ts: Ts) -> bool:
        """Give nothing at or below `ts` any more; False if that was so already."""
        if ts <= self.last:
            return False
        self.last = ts
        return True

    def pass_to(self, position: Position) -> None:
        """The stream stands at `position`, between two transactions."""
        while self._sink_checkpoints and self._sink_checkpoints[-1][0] <= position.rank:
            self.raise_to(self._sink_checkpoints.pop()[1])

    @property
    def anchored(self) -> bool:
        """There are sink_checkpoints ahead: up to them nothing may get a higher ts than it had."""
        return bool(self._sink_checkpoints)
