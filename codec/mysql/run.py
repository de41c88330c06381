"""Runs that keep the bytes of the binlog, or of a snapshot, until their rows are asked for."""

from __future__ import annotations

from struct import Struct as Packing

from ...errors import SourceError
from ...events import RowChange, Run
from .rows import RowsDecoder
from .text_rows import TextRowsDecoder

_end_position = Packing("<13xI").unpack_from


class EventRun(Run, eq=False, gc=False):
    """The rows of one rows event (ROWS)."""

    decoder: RowsDecoder
    event: bytes

    def changes(self) -> list[RowChange]:
        if self.decoded is None:
            with self.decoder.lock:
                if self.decoded is None:
                    try:
                        self.decoded = self.decoder.decode(self.event, self.commit_ts, self.start_ts)
                    except SourceError as error:
                        raise SourceError(f"{error}; {self._place()}") from None
        return self.decoded

    def _place(self) -> str:
        (position,) = _end_position(self.event)
        return f"the event ends at byte {position} of its binlog, its transaction has ts {self.commit_ts}"


class TextRun(Run, eq=False, gc=False):
    """A stretch of snapshot rows (TEXT_ROWS)."""

    decoder: TextRowsDecoder
    packets: bytes

    def changes(self) -> list[RowChange]:
        if self.decoded is None:
            with self.decoder.lock:
                if self.decoded is None:
                    try:
                        self.decoded = self.decoder.decode(self.packets, self.commit_ts, self.start_ts)
                    except SourceError as error:
                        raise SourceError(f"{error}; its chunk has ts {self.commit_ts}") from None
        return self.decoded
