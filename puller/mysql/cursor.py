"""How far a binlog is read, file after file."""

from __future__ import annotations

from struct import Struct
from typing import Final
from zlib import crc32

from ...errors import SourceError
from ...events import Ts, compose_ts
from .position import Position

HEADER: Final = 19
_FILE_START: Final = 4

_u32 = Struct("<I").unpack_from
_u64 = Struct("<Q").unpack_from


class Cursor:
    """The place in the binlog behind what was read whole, and how events are written there."""

    def __init__(self, position: Position) -> None:
        self._file = position.file
        self._offset = position.offset
        self._from_start = position.offset <= _FILE_START
        self._created: Ts = 0  # the file's own time; 0: not known yet
        self._checked = True  # events have a checksum

    @property
    def position(self) -> Position:
        return Position(self._file, self._offset)

    def __str__(self) -> str:
        return f"{self._file}:{self._offset}"

    def event(self, payload: bytes) -> bytes:
        """The event of a payload, without its checksum. Raises SourceError if that is wrong."""
        if not self._checked:
            return payload[1:]
        event = payload[1:-4]
        if crc32(event) != _u32(payload, len(payload) - 4)[0]:
            raise SourceError(
                f"an event after {self} is damaged, its checksum is wrong: look at the server's disk and the "
                "network"
            )
        return event

    def move(self, event: bytes) -> None:
        """To the event's end. Its 32 bits wrap where one transaction makes a file larger than 4 GiB."""
        end = _u32(event, 13)[0]
        if end:
            offset = self._offset & ~0xFFFFFFFF | end
            self._offset = offset if offset >= self._offset else offset + (1 << 32)

    def rotate(self, payload: bytes) -> bool:
        """To another file; False if the event names the one that is read, as it does where a dump starts."""
        # At the start of a dump the checksum may be there before its presence is told.
        event = payload[1:-4] if crc32(payload[1:-4]) == _u32(payload, len(payload) - 4)[0] else payload[1:]
        file = event[HEADER + 8 :].decode()
        if file == self._file:
            return False
        self._file = file
        self._offset = _u64(event, HEADER)[0]
        self._from_start = True
        return True

    def describe(self, payload: bytes, read_until: Ts, server_ts: Ts) -> Ts:
        """When the file was made, by its format description: its first event, which is also sent where a
        dump starts inside the file.

        Raises SourceError if it is not the file that was read up to here, at `read_until`.
        """
        self._checked = payload[-5] == 1
        created_ms = _u32(payload, 1)[0] * 1000
        created = compose_ts(created_ms)
        if not self._from_start:
            # A file from the future is no proof: the server's clock was set back since. The clock of an idle
            # stream stops a millisecond before the second.
            younger = 0 < read_until < compose_ts(created_ms - 1) and created <= server_ts
            if younger or self._created not in (0, created):
                raise SourceError(
                    f"{self._file} is younger than what was read of it up to {self}: the binlog was "
                    "reset, or this is another server; start again with a new snapshot"
                )
        self._created = created
        self._from_start = False
        return created
