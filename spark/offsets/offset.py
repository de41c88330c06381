"""How far a stream has come: a resolved ts and the source's own position there."""

from __future__ import annotations

from typing import Any, Final, Protocol

from msgspec import Struct

from ...errors import CheckpointError
from ...events import Checkpoint, Table, Ts
from ...puller.mysql.position import Position
from ..read.parts import WHOLE, Part

_FIELDS: Final[dict[str, type]] = {"ts": int, "position": str, "source": str}


class Offset(Struct, frozen=True):
    """Everything at or below `ts` has been, and the source stands at `position` there.

    TiKV: the position is the ts. Binlog: `ts` is the clock's, with which reading goes on at `position`, so
    that whoever reads from an offset gives every transaction the same ts.
    """

    ts: Ts
    position: str
    source: str
    """The source's identity: the offset means nothing to another."""

    @classmethod
    def read(cls, fields: Any) -> Offset:
        """Of Spark's JSON. Raises CheckpointError if it isn't an offset of tidemill's."""
        for name, kind in _FIELDS.items():
            if not isinstance(fields, dict) or not isinstance(fields.get(name), kind):
                raise CheckpointError(
                    f"the query's checkpoint holds the offset {fields!r}, which isn't tidemill's: it "
                    f"lacks {name}; give the query a checkpointLocation of its own"
                )
        return cls(fields["ts"], fields["position"], fields["source"])

    def fields(self) -> dict[str, Any]:
        """For Spark's JSON."""
        return {"ts": self.ts, "position": self.position, "source": self.source}

    def is_after(self, other: Offset) -> bool:
        """True if the source, the same for both, was at `other` first."""
        if self.position.isdecimal():  # a ts
            return self.ts > other.ts
        return Position.parse(self.position).rank > Position.parse(other.position).rank

    @property
    def checkpoint(self) -> Checkpoint:
        """Where a feed resumes that has everything up to here."""
        return Checkpoint(self.ts, self.position, None, self.source)


def ts_offset(ts: Ts, source: str) -> Offset:
    """Of a source whose positions are timestamps."""
    return Offset(ts, str(ts), source)


class Limit(Struct, frozen=True):
    """How much may lie between two offsets; 0: no bound. A single transaction may go beyond it."""

    rows: int = 0
    bytes: int = 0


class Offsets(Protocol):
    """Asks a source about its offsets. For one thread; raises Retryable and Fatal, all of it."""

    source: str
    """The source's identity."""

    def tables(self) -> list[Table]:
        """Those that are followed, as they are now. Raises ConfigError where a pattern matches none."""

    def latest(self) -> Offset:
        """The source's end."""

    def earliest(self) -> Offset:
        """The first that the source still has."""

    def at(self, ts: Ts) -> Offset:
        """Behind all that was committed up to `ts`. Raises ConfigError if that is gone, or yet to come."""

    def at_position(self, position: str) -> Offset:
        """Raises ConfigError for what isn't a position of this source."""

    def check(self, start: Offset) -> None:
        """Raises CheckpointError for an offset of another source, SourceError if what follows is gone."""

    def following(self, start: Offset, end: Offset | None, limit: Limit) -> Offset:
        """How far a batch from `start` goes: at most to `end`, or the present end; `start` if there is
        nothing."""

    def bounds(self, start: Offset, end: Offset, part: Part = WHOLE) -> tuple[bytes, ...] | None:
        """Raw keys that divide the part's rows of (start, end], of a snapshot at both, into at most as many
        ranges as there are to be partitions; None: tables are to be left whole."""

    def oldest(self, at: Offset) -> Ts:
        """Commit ts of the first change after `at` that is followed, or a ts before it; 0: there is none."""

    def lag(self, at: Offset) -> dict[str, Any]:
        """The source's present end as fields; `lagSeconds`: the age of the oldest change after `at`, 0 if
        there is none; and, where that can be told, `backlogBytes`."""

    def close(self) -> None:
        """Safe to repeat."""
