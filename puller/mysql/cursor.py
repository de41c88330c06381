"""The read position in a binlog, across files."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from ...codec.mysql.gtid import MARIADB_GTID, MYSQL_GTID, MYSQL_TAGGED_GTID, parse_gtids
from ...codec.mysql.position import Position, Rank, file_number
from ...errors import SourceError
from ...events import Ts, compose_ts

HEADER: Final = 19
_FILE_START: Final = 4
_BEFORE_STATUS: Final = 0x0F6A7026
"""A CRC that the status byte, a zero, turns into that of nothing: so the event's CRC needs no copy of it."""
_WITH_OWN_CRC: Final = 0x2144DF1C
"""CRC of any bytes followed by their own CRC."""

_u32 = Struct("<I").unpack_from
_u64 = Struct("<Q").unpack_from


class Ahead(NamedTuple):
    """Parts that the positions of the next transactions share, while they are of one file and origin."""

    file: str
    """Text of the position up to the offset."""
    offset: int
    origin: bytes | None
    """Of their GTIDs; None if the positions have none, so that any is right."""
    number: int
    """The latest GTID's."""
    before: str
    """Text between the offset and the number."""
    after: str
    are_checked: bool
    """True if events end in a checksum."""


class LogCursor:
    """The position after the last complete event, and how events are written there."""

    def __init__(self, position: Position) -> None:
        self._file = position.file
        self._number = file_number(position.file)
        self._offset = position.offset
        self._server = position.server
        self._from_start = position.offset <= _FILE_START
        self._created: Ts = 0  # creation time of the file; 0 while unknown
        self._checked = True  # events have a checksum
        self._arrives_at: str | None = None  # the other server whose first file's name is to come
        self._by_gtid = position.by_gtid
        self.is_placed = True
        """False between the arrival at another server and the first event that tells a place in its log."""
        self._gtids = parse_gtids(position.gtid) if position.gtid else None
        self._gtid = b""  # the GTID event of the open transaction
        self._place: str | None = None  # the end of the position's text; None until it is asked for

    @property
    def position(self) -> Position:
        gtids = "" if self._gtids is None else str(self._gtids)
        if not gtids:
            return Position(self._file, self._offset)
        return Position(self._file, self._offset, gtids, self._server, self._by_gtid)

    @property
    def has_gtids(self) -> bool:
        """True if the set of GTIDs before the position is known."""
        return self._gtids is not None

    def __str__(self) -> str:
        if not self._file:
            return str(self.position)
        place = self._place
        if place is None:
            place = self._place = self._text_of_place()
        return f"{self._file}:{self._offset}{place}"

    def is_at(self, position: Position) -> bool:
        """True if the cursor is at or after a position on the same server, by file and offset."""
        return Position(self._file, self._offset).rank >= position.without_gtids.rank

    def has_reached(self, rank: Rank) -> bool:
        """True if the cursor is at or after a position, which may be another server's."""
        if rank.gtid and (self._by_gtid or rank.by_gtid or rank.server != self._server):
            return self.position.rank >= rank
        return (self._number, self._offset) >= (rank.number, rank.offset)

    def know_gtids(self, gtids: str, server: str) -> None:
        """Learn the set of GTIDs before the position, and its server."""
        self._gtids = parse_gtids(gtids)
        self._server = server
        self._place = None

    def move_to(self, server: str) -> None:
        """Go on at another server, after the same GTIDs: its first event names the file."""
        self._arrives_at = server
        self.is_placed = False

    def place(self, payload: bytes) -> None:
        """Take the place from a heartbeat, if it isn't known: everything before it was sent. A server may
        have nothing after the GTIDs at which another one's log was left. Not inside a transaction."""
        if not self.is_placed and self._arrives_at is None:
            heartbeat = self.event(payload)
            if heartbeat[HEADER:].decode() == self._file:
                self.move(heartbeat)

    def begin(self, event: bytes) -> None:
        """Note the GTID event of a transaction."""
        self._gtid = event

    def commit(self) -> None:
        """Note that this transaction is complete."""
        if self._gtids is not None and self._gtid:
            if self._gtid[4] in (MARIADB_GTID, MYSQL_GTID, MYSQL_TAGGED_GTID):
                self._gtids.add(self._gtid)
            else:  # without a GTID: the set before the next position isn't known
                self._gtids = None
            self._gtid = b""
            self._place = None

    @property
    def ahead(self) -> Ahead | None:
        """None if the next position can be any."""
        if not self._file:
            return None
        file = f"{self._file}:"
        if self._gtids is None:
            return Ahead(file, self._offset, None, 0, "", "", self._checked)
        latest = self._gtids.latest
        if latest is None:
            return None
        after = f"{latest.after} server={self._server}{' by=gtid' if self._by_gtid else ''}"
        return Ahead(
            file, self._offset, latest.origin, latest.number, f" gtid={latest.before}", after, self._checked
        )

    def advance(self, offset: int, number: int) -> None:
        """Move to the end of a transaction ahead, with the number of its GTID."""
        self._offset = offset
        self.is_placed = True
        self._gtid = b""
        if self._gtids is not None:
            self._gtids.move(number)
            self._place = None

    def _text_of_place(self) -> str:
        gtids = "" if self._gtids is None else str(self._gtids)
        by = " by=gtid" if self._by_gtid else ""
        return f" gtid={gtids} server={self._server}{by}" if gtids else ""

    def event(self, payload: bytes) -> bytes:
        """Return the event of a payload without its checksum. Raises SourceError if the checksum is wrong."""
        if not self._checked:
            return payload[1:]
        if crc32(payload, _BEFORE_STATUS) != _WITH_OWN_CRC:
            raise SourceError(
                f"an event after {self} is damaged, its checksum is wrong: check the server's disk and the "
                "network"
            )
        return payload[1:-4]

    def move(self, event: bytes) -> None:
        """Move to the end of the event. Its 32-bit position wraps if one transaction makes a file larger than
        4 GiB."""
        self._offset = self._end_of(event)
        self.is_placed = True

    def after(self, event: bytes) -> str:
        """Return the position at the end of the event, without moving there."""
        return f"{self._file}:{self._end_of(event)}"

    def _end_of(self, event: bytes) -> int:
        end = _u32(event, 13)[0]
        if not end:
            return self._offset
        offset: int = self._offset & ~0xFFFFFFFF | end
        return offset if offset >= self._offset else offset + (1 << 32)

    def rotate(self, payload: bytes) -> bool:
        """Move to another file; False if the event names the current file, as at the start of a dump."""
        # At the start of a dump, a checksum may be present before it is announced.
        event = payload[1:-4] if crc32(payload[1:-4]) == _u32(payload, len(payload) - 4)[0] else payload[1:]
        file = event[HEADER + 8 :].decode()
        if self._arrives_at is not None:
            self._server, self._arrives_at, self._by_gtid = self._arrives_at, None, True
            self._place = None
        elif file == self._file:
            return False
        self._file = file
        self._number = file_number(file)
        self._offset = _u64(event, HEADER)[0]
        self._from_start = True
        return True

    def describe(self, payload: bytes, read_until: Ts, server_ts: Ts) -> Ts:
        """Read the file's creation time from its format description, the first event of a file. It is also
        sent when a dump starts inside the file.

        Raises SourceError if it isn't the file that was read before, up to `read_until`.
        """
        self._checked = payload[-5] == 1
        created_ms = _u32(payload, 1)[0] * 1000
        created = compose_ts(created_ms)
        if not self._from_start and not self._by_gtid:
            # A file with a later time is no proof: the server's clock may have been set back since. The
            # commit clock of an idle stream stops a millisecond before the second.
            younger = 0 < read_until < compose_ts(created_ms - 1) and created <= server_ts
            if younger or self._created not in (0, created):
                raise SourceError(
                    f"{self._file} is younger than what was read of it up to {self}: the binlog was "
                    "reset, or this is another server; start again with a new snapshot"
                )
        self._created = created
        self._from_start = False
        return created
