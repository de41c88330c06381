"""The binlog: files of events as MariaDB 10.11 or MySQL 8.4 writes them, with CRC32 and GTIDs.

Source: MariaDB's sql/log_event.h and sql/log_event.cc, MySQL's libs/mysql/binlog/event.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Final, Literal, NamedTuple, TypeAlias
from zlib import crc32

from .gtids import GROUP, DomainGtids, Gtid, Gtids, IntervalGtids

Vendor: TypeAlias = Literal["MariaDB", "MySQL"]
VERSIONS: Final[dict[Vendor, str]] = {"MariaDB": "10.11.14-MariaDB-log", "MySQL": "8.4.6"}
FIRST_OFFSET: Final = 4
_MAGIC: Final = b"\xfebin"
_HEADER: Final = struct.Struct("<IBIIIH")
"""Time, type, server id, size, end, flags."""
_LOG_FORMATS: Final[dict[Vendor, bytes]] = {
    "MariaDB": bytes.fromhex(
        "13380d000800120004040404120000e400041a08000000080808020000000a0a0a0000000000000a0a0a"
    ) + bytes(119) + bytes.fromhex("041304000d0808080a0a0a"),
    "MySQL": bytes.fromhex(
        "13000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a280000"
    ),
}  # fmt: skip
"""The size of a header, and those of the fixed parts of each type of event."""
_CRC32: Final = b"\1"
_ARTIFICIAL: Final = 0x20
_STANDALONE, _TRANSACTIONAL, _PARALLEL, _DDL = 1, 4, 8, 32
_LOGICAL_CLOCK: Final = 2


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
    MYSQL_WRITE_ROWS = 30
    MYSQL_UPDATE_ROWS = 31
    MYSQL_DELETE_ROWS = 32
    MYSQL_GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    GTID = 162
    GTID_LIST = 163


class Event(NamedTuple):
    kind: Kind
    body: bytes


class NotInLog(Exception):
    """A position that the log doesn't have."""


class _Logged(NamedTuple):
    """A transaction in a file."""

    gtid: Gtid | None
    file: str
    begin: int
    end: int


class Log:
    """The files in memory. Times are Unix seconds, of `now`."""

    def __init__(
        self, server_id: int, now: Callable[[], float], name: str = "binlog", vendor: Vendor = "MariaDB"
    ) -> None:
        """`name` begins the names of the files."""
        self.server_id = server_id
        self.vendor: Final = vendor
        self.gtids: Final[Gtids] = self.read_gtids("")
        """The ids of all transactions."""
        self.files: dict[str, bytearray] = {}
        """By name, the oldest first."""
        self.replicas: list[Log] = []
        """Logs of other servers that get each transaction of this one."""
        self._file_name = name.encode()
        self._now = now
        self._count = 0
        self._transactions: list[_Logged] = []
        self._begun: dict[tuple[str, int], _Logged] = {}
        """Transactions by their file and beginning."""
        self._begin_file()

    def read_gtids(self, text: str) -> Gtids:
        """Return a set of GTIDs of this log's form. Raises ValueError."""
        return DomainGtids(text) if self.vendor == "MariaDB" else IntervalGtids(text)

    @property
    def end(self) -> tuple[str, int]:
        """The present file and its size."""
        file, data = next(reversed(self.files.items()))
        return file, len(data)

    @property
    def transactions(self) -> int:
        """The number of transactions so far."""
        return len(self._transactions)

    @property
    def gtid(self) -> str:
        """The GTID of the last transaction; empty if it has none, and before the first."""
        gtid = self._transactions[-1].gtid if self._transactions else None
        return "" if gtid is None else self.gtids.text(gtid)

    def end_after(self, transactions: int) -> tuple[str, int]:
        """Return the position after that number of transactions."""
        if transactions == len(self._transactions):
            return self.end
        if not transactions:
            return next(iter(self.files)), FIRST_OFFSET
        last = self._transactions[transactions - 1]
        return last.file, last.end

    def add(self, events: Iterable[Event], *, is_statement: bool, domain: int | None = 0) -> Gtid | None:
        """Append a transaction, or a statement that is one; here and in the replicas. Return its GTID: none
        with None as its domain, as a MySQL allows."""
        gtid = None if domain is None else self.gtids.next(self.server_id, domain)
        whole = [self._gtid_event(gtid, is_statement=is_statement), *events]
        for log in (self, *self.replicas):
            log._add(whole, gtid, self.server_id)
        return gtid

    def _add(self, events: Sequence[Event], gtid: Gtid | None, origin: int) -> None:
        file, begin = self.end
        for event in events:
            self._append(event, origin)
        if gtid is not None:
            self.gtids.add(gtid)
        logged = _Logged(gtid, file, begin, self.end[1])
        self._transactions.append(logged)
        self._begun[file, begin] = logged

    def _gtid_event(self, gtid: Gtid | None, *, is_statement: bool) -> Event:
        if self.vendor == "MariaDB":
            assert gtid is not None
            flags = _STANDALONE | _PARALLEL | _DDL if is_statement else _TRANSACTIONAL | _PARALLEL
            return Event(Kind.GTID, struct.pack("<QIB6x", gtid.number, gtid.domain, flags))
        kind, uuid, number = Kind.ANONYMOUS_GTID, bytes(16), 0
        if gtid is not None:
            kind, uuid, number = Kind.MYSQL_GTID, GROUP.bytes, gtid.number
        order = len(self._transactions)
        return Event(kind, struct.pack("<B16sQBQQ", 0, uuid, number, _LOGICAL_CLOCK, order, order + 1))

    def xid(self) -> Event:
        """Return the event that commits the next transaction."""
        return Event(Kind.XID, struct.pack("<Q", len(self._transactions) + 1))

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

    def transactions_at(self, file: str, offset: int) -> int:
        """Return the number of the transactions before a position in one of the files."""
        names = [*self.files]
        return sum(
            one.file not in self.files
            or names.index(one.file) < names.index(file)
            or (one.file == file and one.end <= offset)
            for one in self._transactions
        )

    def gtids_at(self, file: str, offset: int) -> str | None:
        """Return the GTIDs before a position; None if it isn't between two transactions of the log."""
        if file not in self.files or not self._is_event(file, offset):
            return None
        gtids = self.read_gtids("")
        for one in self._transactions[: self.transactions_at(file, offset)]:
            if one.gtid is not None:
                gtids.add(one.gtid)
        return str(gtids)

    def reader(self, file: str, offset: int) -> Reader:
        """Return the events from a position on. Raises NotInLog."""
        if file not in self.files:
            raise NotInLog("Could not find first log file name in binary log index file")
        if not self._is_event(file, offset):
            raise NotInLog(f"{file} has no event at {offset}")
        return Reader(self, file, offset, offset)

    def reader_after(self, gtids: Gtids, named_offset: int) -> Reader:
        """Return the events of the transactions that a client hasn't, by their GTIDs; `named_offset` is what
        the first event names in place of its position.

        Raises NotInLog if some of the client's are unknown here, or if what follows was purged.
        """
        if self.vendor == "MariaDB" and not self.gtids.has_all(gtids):
            raise NotInLog(f"the GTIDs {gtids} aren't in the binlog")
        before: _Logged | None = None
        for one in self._transactions:
            if one.gtid is None or one.gtid not in gtids:
                if one.file not in self.files:
                    raise NotInLog(f"the binlog after the GTIDs {str(gtids) or 'none'} was purged")
                break
            before = one
        if before is None or before.file not in self.files:
            return Reader(self, next(iter(self.files)), FIRST_OFFSET, named_offset, gtids)
        return Reader(self, before.file, before.end, named_offset, gtids)

    def begun_at(self, file: str, offset: int) -> _Logged | None:
        """Return the transaction that begins at a position."""
        return self._begun.get((file, offset))

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
        version = VERSIONS[self.vendor].encode().ljust(50, b"\0")
        log_format = _LOG_FORMATS[self.vendor] + _CRC32
        body = struct.pack("<H", 4) + version + struct.pack("<I", created) + log_format
        self._append(Event(Kind.FORMAT_DESCRIPTION, body))
        kind = Kind.GTID_LIST if self.vendor == "MariaDB" else Kind.PREVIOUS_GTIDS
        self._append(Event(kind, self.gtids.encode()))

    def _name(self, number: int) -> bytes:
        return b"%s.%06d" % (self._file_name, number)

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

    def __init__(
        self, log: Log, file: str, offset: int, named_offset: int, skipped: Gtids | None = None
    ) -> None:
        """Transactions with the GTIDs `skipped` aren't sent."""
        self._log = log
        self._skipped = skipped
        self.file = file
        self.offset = offset
        self._pending = self._opening(file, offset, named_offset)

    def next(self) -> bytes:
        """Return the next event; empty at the log's end. Raises NotInLog if the file was purged, or if a
        transaction without a GTID comes after those of a client."""
        if self._pending:
            return self._pending.pop(0)
        data = self._log.files.get(self.file)
        if data is None:
            raise NotInLog(f"{self.file} was purged")
        self._skip()
        if self.offset < len(data):
            start, self.offset = self.offset, self.offset + event_bytes(data, self.offset)
            return bytes(data[start : self.offset])
        names = [*self._log.files]
        following = names[names.index(self.file) + 1 :]
        if not following:
            return b""
        self.file, self.offset = following[0], FIRST_OFFSET
        return self._log.named(self.file, FIRST_OFFSET)

    def _skip(self) -> None:
        """Pass over the transactions that the client has."""
        if self._skipped is None:
            return
        while logged := self._log.begun_at(self.file, self.offset):
            if logged.gtid is None:
                raise NotInLog("Cannot replicate anonymous transaction when AUTO_POSITION = 1")
            if logged.gtid not in self._skipped:
                return
            self.offset = logged.end

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
