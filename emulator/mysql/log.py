"""The binlog: files of events as MariaDB 10.11 writes them, with CRC32 and GTIDs.

Source: MariaDB's sql/log_event.h and sql/log_event.cc.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple
from zlib import crc32

VERSION: Final = "10.11.14-MariaDB-log"
FIRST_OFFSET: Final = 4
_MAGIC: Final = b"\xfebin"
_HEADER: Final = struct.Struct("<IBIIIH")
"""Time, type, server id, size, end, flags."""
_DOMAIN: Final = 0
_LOG_FORMAT: Final = bytes.fromhex(
    "13380d000800120004040404120000e400041a08000000080808020000000a0a0a0000000000000a0a0a"
) + bytes(119) + bytes.fromhex("041304000d0808080a0a0a")  # fmt: skip
"""The size of a header, and those of the fixed parts of each type of event."""
_CRC32: Final = b"\1"
_ARTIFICIAL: Final = 0x20
_STANDALONE, _TRANSACTIONAL, _PARALLEL, _DDL = 1, 4, 8, 32


class Kind(IntEnum):
    QUERY = 2
    ROTATE = 4
    FORMAT_DESCRIPTION = 15
    XID = 16
    TABLE_MAP = 19
    WRITE_ROWS = 23
    UPDATE_ROWS = 24
    DELETE_ROWS = 25
    HEARTBEAT = 27
    GTID = 162
    GTID_LIST = 163


class Event(NamedTuple):
    kind: Kind
    body: bytes


class NotInLog(Exception):
    """A position that the log doesn't have."""


class _End(NamedTuple):
    """The end of a transaction."""

    number: int
    """The number in its GTID."""
    origin: int
    """The id of the server that wrote it first, also in its GTID."""
    file: str
    offset: int


class Log:
    """The files in memory. Times are Unix seconds, of `now`."""

    def __init__(self, server_id: int, now: Callable[[], float], name: str = "binlog") -> None:
        """`name` begins the names of the files."""
        self.server_id = server_id
        self.files: dict[str, bytearray] = {}
        """By name, the oldest first."""
        self.replicas: list[Log] = []
        """Logs of other servers that get each transaction of this one."""
        self._file_name = name.encode()
        self._now = now
        self._count = 0
        self._ends: list[_End] = []
        self._number = 0
        self._begin_file()

    @property
    def end(self) -> tuple[str, int]:
        """The present file and its size."""
        file, data = next(reversed(self.files.items()))
        return file, len(data)

    @property
    def gtid(self) -> str:
        """The last GTID; empty before the first."""
        return self._gtid(self._number)

    def add(self, events: Iterable[Event], *, is_statement: bool) -> None:
        """Append a transaction, or a statement that is one; here and in the replicas."""
        flags = _STANDALONE | _PARALLEL | _DDL if is_statement else _TRANSACTIONAL | _PARALLEL
        gtid = struct.pack("<QIB6x", self._number + 1, _DOMAIN, flags)
        whole = [Event(Kind.GTID, gtid), *events]
        for log in (self, *self.replicas):
            log._add(whole, self.server_id)

    def _add(self, events: Sequence[Event], origin: int) -> None:
        for event in events:
            self._append(event, origin)
        self._number += 1
        self._ends.append(_End(self._number, origin, *self.end))

    def xid(self) -> Event:
        """Return the event that commits the next transaction."""
        return Event(Kind.XID, struct.pack("<Q", self._number + 1))

    def rotate(self) -> None:
        """Begin a new file, as FLUSH BINARY LOGS does."""
        self._append(Event(Kind.ROTATE, struct.pack("<Q", FIRST_OFFSET) + self._name(self._count + 1)))
        self._begin_file()

    def purge(self, before: str) -> None:
        """Remove the files before this one. Raises ValueError if there is none of this name."""
        if before not in self.files:
            raise ValueError(f"there is no file {before}; there are {', '.join(self.files)}")
        for name in [*self.files]:
            if name == before:
                return
            del self.files[name]

    def gtid_at(self, file: str, offset: int) -> str | None:
        """Return the last GTID before a position; None if it isn't between two transactions of the log."""
        if file not in self.files or not self._is_event(file, offset):
            return None
        names = [*self.files]
        number = 0
        for end in self._ends:
            is_before = end.file not in self.files or names.index(end.file) < names.index(file)
            if is_before or (end.file == file and end.offset <= offset):
                number = end.number
        return self._gtid(number)

    def after_gtid(self, gtid: str) -> tuple[str, int]:
        """Return the position after the transaction of a GTID, or the beginning for an empty one.

        Raises NotInLog if that is unknown here, or if what follows was purged.
        """
        first = next(iter(self.files))
        try:
            domain, _, number = map(int, gtid.split("-")) if gtid else (_DOMAIN, 0, 0)
        except ValueError:
            raise NotInLog(f"the GTID {gtid!r} can't be read") from None
        at = bisect_left(self._ends, number, key=lambda end: end.number)
        if domain != _DOMAIN or number > self._number or (number and self._ends[at].number != number):
            raise NotInLog(f"the GTID {gtid} isn't in the binlog")
        following = self._ends[at + 1 if number else 0 :]
        if following and following[0].file not in self.files:
            raise NotInLog(f"the binlog after the GTID {gtid or 'none'} was purged")
        if not number or self._ends[at].file not in self.files:
            return first, FIRST_OFFSET
        return self._ends[at].file, self._ends[at].offset

    def reader(self, file: str, offset: int, named_offset: int | None = None) -> Reader:
        """Return the events from a position on; `named_offset` is what the first one names instead.

        Raises NotInLog.
        """
        if file not in self.files:
            raise NotInLog("Could not find first log file name in binary log index file")
        if not self._is_event(file, offset):
            raise NotInLog(f"{file} has no event at {offset}")
        return Reader(self, file, offset, offset if named_offset is None else named_offset)

    def heartbeat(self, reader: Reader) -> bytes:
        """Return the event that says that the reader has everything."""
        return self._framed(Event(Kind.HEARTBEAT, reader.file.encode()), 0, reader.offset, 0)

    def named(self, file: str, offset: int) -> bytes:
        """Return the event that names the file which is sent next."""
        body = struct.pack("<Q", offset) + file.encode()
        return self._framed(Event(Kind.ROTATE, body), 0, 0, _ARTIFICIAL)

    def _is_event(self, file: str, offset: int) -> bool:
        data, at = self.files[file], FIRST_OFFSET
        while at < offset < len(data):
            at += event_bytes(data, at)
        return offset in (at, len(data))

    def _begin_file(self) -> None:
        self._count += 1
        self.files[self._name(self._count).decode()] = bytearray(_MAGIC)
        created = int(self._now())
        version = VERSION.encode().ljust(50, b"\0")
        body = struct.pack("<H", 4) + version + struct.pack("<I", created) + _LOG_FORMAT + _CRC32
        self._append(Event(Kind.FORMAT_DESCRIPTION, body))
        origin = self._ends[-1].origin if self._ends else 0
        state = struct.pack("<IIQ", _DOMAIN, origin, self._number) if self._number else b""
        self._append(Event(Kind.GTID_LIST, struct.pack("<I", bool(state)) + state))

    def _name(self, number: int) -> bytes:
        return b"%s.%06d" % (self._file_name, number)

    def _gtid(self, number: int) -> str:
        return f"{_DOMAIN}-{self._ends[number - 1].origin}-{number}" if number else ""

    def _append(self, event: Event, origin: int = 0) -> None:
        file, offset = self.end
        size = _HEADER.size + len(event.body) + 4
        self.files[file] += self._framed(event, int(self._now()), offset + size, 0, origin)

    def _framed(self, event: Event, seconds: int, end: int, flags: int, origin: int = 0) -> bytes:
        size = _HEADER.size + len(event.body) + 4
        server_id = origin or self.server_id
        framed = _HEADER.pack(seconds, event.kind, server_id, size, end, flags) + event.body
        return framed + crc32(framed).to_bytes(4, "little")


class Reader:
    """The events for one replica: first the name and the format of the file, then those from a position."""

    def __init__(self, log: Log, file: str, offset: int, named_offset: int) -> None:
        self._log = log
        self.file = file
        self.offset = offset
        self._pending = self._opening(file, offset, named_offset)

    def next(self) -> bytes:
        """Return the next event; empty at the log's end. Raises NotInLog if the file was purged."""
        if self._pending:
            return self._pending.pop(0)
        data = self._log.files.get(self.file)
        if data is None:
            raise NotInLog(f"{self.file} was purged")
        if self.offset < len(data):
            start, self.offset = self.offset, self.offset + event_bytes(data, self.offset)
            return bytes(data[start : self.offset])
        names = [*self._log.files]
        following = names[names.index(self.file) + 1 :]
        if not following:
            return b""
        self.file, self.offset = following[0], FIRST_OFFSET
        return self._log.named(self.file, FIRST_OFFSET)

    def _opening(self, file: str, offset: int, named_offset: int) -> list[bytes]:
        pending = [self._log.named(file, named_offset)]
        if offset > FIRST_OFFSET:
            data = self._log.files[file]
            pending.append(bytes(data[FIRST_OFFSET : FIRST_OFFSET + event_bytes(data, FIRST_OFFSET)]))
        return pending


def event_bytes(data: bytes | bytearray, offset: int) -> int:
    """Return the size of the event at an offset."""
    size: int = _HEADER.unpack_from(data, offset)[3]
    return size
