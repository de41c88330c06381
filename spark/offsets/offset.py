"""The offset of a stream: a resolved ts, and the source's position there."""

from __future__ import annotations

from typing import Any, Final, Protocol

from msgspec import Struct

from ...codec.mysql.position import Position
from ...errors import CheckpointError
from ...events import MAX_LOGICAL, Checkpoint, Table, Ts
from ..read.parts import WHOLE, Part

_FIELDS: Final[dict[str, type]] = {"ts": int, "position": str, "source": str}


class Offset(Struct, frozen=True):
    """All changes at or below `ts` are before the offset; `position` is the source's position there.

    TiKV: the position is the ts. Binlog: `ts` is the clock with which reading continues at `position`, so
    every reader that starts from an offset gives a transaction the same ts.
    """

    ts: Ts
    position: str
    source: str
    """Identity of the source; the offset isn't valid for any other."""

    @classmethod
    def read(cls, fields: Any) -> Offset:
        """Return the offset in Spark's JSON. Raises CheckpointError if it isn't one of tidemill."""
        for name, kind in _FIELDS.items():
            if not isinstance(fields, dict) or not isinstance(fields.get(name), kind):
                raise CheckpointError(
                    f"the query's checkpoint holds the offset {fields!r}, which isn't tidemill's: it "
                    f"lacks {name}; give the query a checkpointLocation of its own"
                )
        return cls(fields["ts"], fields["position"], fields["source"])

    def fields(self) -> dict[str, object]:
        """Return the fields for Spark's JSON."""
        return {"ts": self.ts, "position": self.position, "source": self.source}

    def is_after(self, other: Offset) -> bool:
        """True if `other`, of the same source, comes first."""
        if self.position.isdecimal():  # a ts
            return self.ts > other.ts
        return Position.parse(self.position).rank > Position.parse(other.position).rank

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint of a feed that has everything up to the offset."""
        return Checkpoint(self.ts, self.position, None, self.source)


def ts_offset(ts: Ts, source: str) -> Offset:
    """Return an offset of a source whose positions are timestamps."""
    return Offset(ts, str(ts), source)


def lower_bound(second: Ts) -> Ts:
    """Return the ts of an offset of a binlog at which the clock is unknown, but not below this second."""
    return second - 1


def is_exact(ts: Ts) -> bool:
    """Return False for a `lower_bound`."""
    return ts & MAX_LOGICAL != MAX_LOGICAL


class Limit(Struct, frozen=True):
    """Maximum size of a batch; 0: unlimited. A single transaction may exceed it."""

    rows: int = 0
    bytes: int = 0


class Offsets(Protocol):
    """Queries a source about its offsets. For one thread; every method raises Retryable and Fatal."""

    source: str
    """Identity of the source."""

    def tables(self) -> list[Table]:
        """Return the followed tables as they are now. Raises ConfigError if a pattern matches none."""

    def latest(self) -> Offset:
        """Return the offset of the source's end."""

    def earliest(self) -> Offset:
        """Return the oldest offset that the source still has."""

    def at(self, ts: Ts) -> Offset:
        """Return the offset after all commits up to `ts`. Raises SourceError if the changes after it were
        purged, ConfigError if `ts` is in the future."""

    def at_position(self, position: str) -> Offset:
        """Return the offset at a position. Raises ConfigError if it isn't one of this source."""

    def check(self, start: Offset) -> None:
        """Raise CheckpointError for another source's offset, SourceError if changes after it were purged."""

    def following(self, start: Offset, end: Offset | None, limit: Limit) -> Offset:
        """Return the end of the batch after `start`: at most `end`, or the source's end if that is None.

        Returns `start` if there are no changes.
        """

    def bounds(self, start: Offset, end: Offset, part: Part = WHOLE) -> tuple[bytes, ...] | None:
        """Return the raw keys that divide the part's changes in (start, end] into ranges, one per task.

        If `start` equals `end`, they divide the rows of a snapshot. None: tables can't be divided.
        """

    def oldest(self, at: Offset) -> Ts:
        """Return the commit ts of the first followed change after `at`, or a ts before it; 0: none."""

    def lag(self, at: Offset) -> dict[str, object]:
        """Return the fields of the source's end, with `lagSeconds`, the age of the oldest change after `at`
        or 0, and `backlogBytes` if it is known."""

    def close(self) -> None:
        """Close the connections. Safe to repeat."""
