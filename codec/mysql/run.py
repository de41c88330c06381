"""Runs that keep the bytes of the binlog, or of a snapshot, until their rows are asked for."""

from __future__ import annotations

from array import array
from struct import Struct as Packing

from ...errors import SourceError
from ...events import RowChange, Run, Ts
from .result_rows import ResultRowsDecoder, row_starts
from .rows import RowsDecoder
from .values import UNREADABLE

_HEAD_BYTES = 19
_end_position = Packing("<13xI").unpack_from


class EventRun(Run, eq=False, gc=False):
    """The rows of one rows event (ROWS)."""

    decoder: RowsDecoder
    event: bytes
    _starts: array[int] | None = None
    _is_walked: bool = False

    def __len__(self) -> int:
        if self.decoded is not None:
            return len(self.decoded)
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
            found = starts if starts is None or isinstance(starts, array) else array("q", starts)
            if found is not None and (not found or (self.op == "update" and len(found) % 2)):
                self.changes()  # says what is wrong
            self._starts = found
            self._is_walked = True
        return self._starts

    def changes(self) -> list[RowChange]:
        if self.decoded is None:
            with self.decoder.lock:
                if self.decoded is None:
                    try:
                        self.decoded = self.decoder.decode(self.event, self.commit_ts, self.start_ts)
                    except SourceError as error:
                        raise unreadable(error, self.event, self.commit_ts) from None
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
