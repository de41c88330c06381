"""The commit ts of a binlog's transactions."""

from __future__ import annotations

from collections.abc import Iterable

from ...codec.mysql.gtid import parse_gtids
from ...codec.mysql.position import Position
from ...errors import SourceError
from ...events import Checkpoint, TablePosition, Ts, compose_ts
from ..lane import ALONE, Lane


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
            (Position.parse(begun.position), begun.ts)
            for checkpoint in sink_checkpoints
            for begun in (TablePosition(checkpoint.ts, checkpoint.position), *checkpoint.tables.values())
            if begun.position and begun.ts >= checkpoint.ts
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
            position_of_sink, ts = self._sink_checkpoints[-1]
            if not self._has_passed(position_of_sink, position):
                return
            self.raise_to(ts)
            self._sink_checkpoints.pop()

    def _has_passed(self, passed: Position, position: Position) -> bool:
        if not passed.rank.compares_gtids(position.rank):
            return passed.rank <= position.rank
        theirs, ours = parse_gtids(passed.gtid), parse_gtids(position.gtid)
        if ours.contains(theirs):
            return True
        if theirs.contains(ours):
            return False
        raise SourceError(
            f"the transactions up to {position} are in another order than those that a sink has, up to "
            f"{passed}: connect to the server that was followed before until all sinks are at one position"
        )

    @property
    def is_plain(self) -> bool:
        """True if a transaction's ts depends on its time and the last ts alone."""
        return self._is_alone and not self._sink_checkpoints

    @property
    def has_checkpoints_ahead(self) -> bool:
        """True if sink checkpoints are ahead: up to them no transaction may get a higher ts than before."""
        return bool(self._sink_checkpoints)
