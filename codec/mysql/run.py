"""Runs that keep the bytes of the binlog, or of a snapshot, until their rows are asked for."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from struct import Struct as Packing

from ...errors import InvariantViolated, SourceError
from ...events import RowChange, Run, Table, Ts
from .result_rows import ResultRowsDecoder, row_starts
from .rows import RowsDecoder, op_of
from .values import UNREADABLE

_HEAD_BYTES = 19
_end_position = Packing("<13xI").unpack_from


class EventBlock:
    """Rows events of one layout that are counted and decoded together: those of many transactions, in order.

    Complete before any of its runs is looked at. Any thread may look.
    """

    __slots__ = ("_decoded", "commit_ts", "counts", "decoder", "events", "start_ts", "table")

    def __init__(self, decoder: RowsDecoder, table: Table) -> None:
        self.decoder = decoder
        self.events: list[bytes] = []
        self.table = table
        self.commit_ts: list[Ts] = []
        self.start_ts: list[Ts] = []
        self.counts: Sequence[int] = ()
        """Result of `count`; empty before it was called."""
        self._decoded: Sequence[list[RowChange] | None] | None = None

    def add(self, event: bytes, commit_ts: Ts, start_ts: Ts) -> EventRun:
        """Add a rows event (ROWS); return its rows, not decoded yet. Raises SourceError for other events."""
        op = op_of(event)
        if op is None:
            self.decoder.decode(event, commit_ts, start_ts)
            raise InvariantViolated("an event that isn't of rows was decoded")
        run = EventRun(commit_ts, start_ts, self.table, op, None, self, len(self.events))
        self.events.append(event)
        self.commit_ts.append(commit_ts)
        self.start_ts.append(start_ts)
        return run

    def count(self) -> Sequence[int]:
        """Return the number of changes of each event; -1 for those to be looked at one by one."""
        self.counts = self.decoder.counts(self.events)
        return self.counts

    def changes(self, place: int) -> list[RowChange]:
        """Return the changes of an event. Raises SourceError that tells the place, too."""
        if self._decoded is None:
            with self.decoder.lock:
                if self._decoded is None:
                    self._decoded = self.decoder.decode_all(self.events, self.commit_ts, self.start_ts)
        change = self._decoded[place]
        if change is None:
            event, ts = self.events[place], self.commit_ts[place]
            with self.decoder.lock:
                try:
                    change = self.decoder.decode(event, ts, self.start_ts[place])
                except SourceError as error:
                    raise unreadable(error, event, ts) from None
        return change


class EventRun(Run, eq=False, gc=False):
    """The rows of one rows event (ROWS)."""

    block: EventBlock
    place: int
    """Number of the event in its block."""
    _starts: array[int] | None = None
    _is_walked: bool = False

    @property
    def decoder(self) -> RowsDecoder:
        return self.block.decoder

    @property
    def event(self) -> bytes:
        return self.block.events[self.place]

    def __len__(self) -> int:
        if self.decoded is not None:
            return len(self.decoded)
        count = (self.block.counts or self.block.count())[self.place]
        if count >= 0:
            return count
        starts = self.starts()
        if starts is None:
            return len(self.changes())
        return len(starts) // 2 if self.op == "update" else len(starts)

    def starts(self) -> array[int] | None:
        """Where each row image of the event begins, an update's two after each other; as int64. None if the
        images aren't whole rows.

        Raises SourceError if the event isn't whole.
        """
        if not self._is_walked:
            try:
                starts = self.decoder.starts(self.event)
            except (SourceError, *UNREADABLE):
                starts = ()
            numbers = starts if starts is None or isinstance(starts, array) else array("q", starts)
            if numbers is not None and (not numbers or (self.op == "update" and len(numbers) % 2)):
                self.changes()  # says what is wrong
            self._starts = numbers
            self._is_walked = True
        return self._starts

    def changes(self) -> list[RowChange]:
        if self.decoded is None:
            self.decoded = self.block.changes(self.place)
        return self.decoded


def unreadable(error: SourceError, event: bytes, commit_ts: Ts) -> SourceError:
    """The error of a decoder with the event's place in the binlog."""
    position = _end_position(event)[0] if len(event) >= _HEAD_BYTES else 0
    where = f"the event ends at byte {position} of its binlog, its transaction has ts {commit_ts}"
    return SourceError(f"{error}; {where}")


class ResultRun(Run, eq=False, gc=False):
    """A stretch of snapshot rows (RESULT_ROWS)."""

    decoder: ResultRowsDecoder
    packets: bytes
    _starts: array[int] | None = None

    def __len__(self) -> int:
        return len(self.starts()) - 1

    def starts(self) -> array[int]:
        """Where the packets of each row begin, and where those of the last one end; as int64.

        Raises SourceError if a row is cut off.
        """
        if self._starts is None:
            try:
                self._starts = row_starts(self.packets)
            except ValueError:
                self.changes()  # says what is wrong
                raise
        return self._starts

    def changes(self) -> list[RowChange]:
        if self.decoded is None:
            with self.decoder.lock:
                if self.decoded is None:
                    try:
                        self.decoded = self.decoder.decode(self.packets, self.commit_ts, self.start_ts)
                    except SourceError as error:
                        raise SourceError(f"{error}; its chunk has ts {self.commit_ts}") from None
        return self.decoded
