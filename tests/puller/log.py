"""A binlog made of words, sent as a server would send it."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack
from zlib import crc32

from tidemill.codec.mysql import entry
from tidemill.codec.mysql.position import Position
from tidemill.codec.mysql.table_map import names_of
from tidemill.events import Changes, KvChange, physical_ms
from tidemill.puller.mysql.binlog import BinlogDecoder
from tidemill.puller.mysql.commit_clock import CommitClock
from tidemill.puller.mysql.transactions import Transactions
from tidemill.puller.mysql.unneeded import Unneeded

TYPES = {
    "stop": 3, "rotate": 4, "load": 18, "map": 19, "insert": 23, "update": 24, "delete": 25, "xid": 16,
    "query": 2, "xa_prepare": 38, "annotate": 160, "checkpoint": 161, "gtid": 162, "gtid_list": 163,
    "incident": 26, "unknown": 99,
}  # fmt: skip
TABLES = {"t": (1, "shop"), "u": (2, "shop"), "elsewhere": (3, "other"), "sequence": (4, "shop")}
GTID_FLAGS = {"standalone": 1, "xa": 64}
ALTER_FLAGS = {"start": 2, "end": 4, "undo": 8}


def name_of(number: int) -> str:
    return f"binlog.{number:06}"


class Log:
    """The server's side: files of events, readable from any position between two of them."""

    def __init__(self, *, checksums: bool = True, tells_ends: bool = True) -> None:
        """Without `tells_ends`, events inside a transaction have no end position, as of MariaDB 11.4."""
        self.checksums = checksums
        self.tells_ends = tells_ends
        self.now = 1
        self._file = 0
        self._offset = 0
        self._gtids = 0
        self._created: dict[int, int] = {}
        self.events: list[tuple[int, int, bytes]] = []
        """Number of the file, where it begins, payload."""
        self._begin_file()

    @property
    def end(self) -> Position:
        return Position(name_of(self._file), self._offset)

    def connect(self, start: Position) -> tuple[list[bytes], int]:
        """Return what a server sends first for `start`, and the number of the event that follows."""
        number, offset = start.rank.number, start.rank.offset
        payloads = [self._rotation(number, offset)]
        if offset > 4:
            payloads.append(self._description(number, end=0))
        places = [(file, begin) >= (number, offset) for file, begin, _ in self.events]
        return payloads, places.index(True) if any(places) else len(places)

    def add(self, words: str) -> None:
        """One event, for instance `gtid standalone`, `map t`, `insert t 20`, `query ALTER TABLE t ...`."""
        name, *rest = words.split()
        match name:
            case "at":
                self.now = int(rest[0])
            case "rotate":
                self._append("rotate", pack("<Q", 4) + name_of(self._file + 1).encode())
                self._begin_file()
            case "crash":
                self._begin_file()
            case "reset":
                self.events.clear()
                self._file = 0
                self._begin_file()
            case "heartbeat":
                self.events.append((self._file, self._offset, self._event(27, b"", 0)))
            case "gtid":
                self._gtids += 1
                flags = sum(GTID_FLAGS.get(word, 0) for word in rest)
                extra = sum(ALTER_FLAGS.get(word, 0) for word in rest)
                self._append(name, pack("<QIBB5x", self._gtids, 0, flags, extra))
            case "map":
                self._append(name, _table_map(rest[0]))
            case "insert" | "update" | "delete":
                table, *size = rest
                self._append(name, _table_id(table) + bytes(int(size[0]) if size else 10))
            case "query":
                self._append(name, _query(" ".join(rest)))
            case "load":
                query = _query(" ".join(rest))
                self._append(name, query[:13] + bytes(13) + query[13:])
            case "xa_prepare":  # its name, and "once" for ONE PHASE
                name_, *once = rest
                self._append(name, pack("<BIII", bool(once), 1, len(name_), 0) + name_.encode())
            case "incident":
                self._append(name, b"\1\0\x0bLOST_EVENTS")
            case _:
                self._append(name, b"\0" * 8)

    def forget_last_transaction(self) -> None:
        """Another one stands in its place."""
        gtid = TYPES["gtid"]
        last = max(i for i, (_, _, payload) in enumerate(self.events) if payload[5] == gtid)
        del self.events[last + 1 :]
        _, self._offset, _ = self.events.pop()
        self.add("gtid")

    def _append(self, name: str, body: bytes) -> None:
        size = 19 + len(body) + (4 if self.checksums else 0)
        told = self.tells_ends or name not in ("map", "insert", "update", "delete")
        payload = self._event(TYPES[name], body, self._offset + size if told else 0)
        self.events.append((self._file, self._offset, payload))
        self._offset += size

    def _begin_file(self) -> None:
        self._file += 1
        self._created[self._file] = self.now
        self.events.append((self._file, 0, self._rotation(self._file, 4)))
        description = self._description(self._file, end=4 + 252)
        self.events.append((self._file, 4, description))
        self._offset = 4 + 252
        self._append("gtid_list", b"\0" * 4)

    def _rotation(self, number: int, offset: int) -> bytes:
        return self._event(4, pack("<Q", offset) + name_of(number).encode(), 0, now=0)

    def _description(self, number: int, *, end: int) -> bytes:
        # Its checksum is there in any case, behind the byte that says whether others have one.
        body = bytes(252 - 19 - 5) + bytes([self.checksums])
        event = pack("<IBIIIH", self._created[number], 15, 1, 252, end, 0) + body
        return b"\0" + event + pack("<I", crc32(event))

    def _event(self, kind: int, body: bytes, end: int, *, now: int | None = None) -> bytes:
        size = 19 + len(body) + (4 if self.checksums else 0)
        event = pack("<IBIIIH", self.now if now is None else now, kind, 1, size, end, 0) + body
        return b"\0" + event + (pack("<I", crc32(event)) if self.checksums else b"")


def _table_id(table: str) -> bytes:
    return pack("<IHH", TABLES[table][0], 0, 1)


def _table_map(table: str) -> bytes:
    schema = TABLES[table][1]
    columns = b"\x15next_not_cached_value\rminimum_value\rmaximum_value" if table == "sequence" else b""
    names = b"".join(bytes([len(name)]) + name.encode() + b"\0" for name in (schema, table))
    return _table_id(table) + names + b"\x01\x03\0\0" + columns


def _query(statement: str) -> bytes:
    return pack("<IIBHH", 0, 0, 4, 0, 0) + b"shop\0" + statement.encode()


class Reader:
    """Our side: a decoder that reads a Log."""

    def __init__(
        self,
        log: Log,
        start: Position,
        clock: CommitClock | None = None,
        *,
        max_bytes: int = 1 << 20,
        again: Sequence[str] = (),
    ) -> None:
        """`again` has the full names of tables that are loaded again."""
        self.log = log
        self.unneeded = Unneeded(again)
        self.tables: list[str] = []
        """Names by layout number, from 1."""
        self.decoder = BinlogDecoder(
            start,
            Transactions(clock or CommitClock(), max_bytes),
            lambda schema, _: schema == "shop",
            self._number,
            self.unneeded,
        )
        self.connect()

    def connect(self) -> None:
        """Begin, or begin again after the connection was lost."""
        self.decoder.resume(self.log.now)
        self._queue, self._next = self.log.connect(self.decoder.position)

    def read(self, events: int | None = None) -> Changes | None:
        """Take the events that the server has sent since, or a number of them."""
        self._queue += [payload for _, _, payload in self.log.events[self._next :]]
        self._next = len(self.log.events)
        count = len(self._queue) if events is None else events
        self.decoder.feed(self._queue[:count])
        del self._queue[:count]
        return self.decoder.take()

    def _number(self, table_map: bytes) -> int:
        name = names_of(table_map)[1]
        if name not in self.tables:
            self.tables.append(name)
        return self.tables.index(name) + 1


def ts_in_words(ts: int) -> str:
    return f"{physical_ms(ts) / 1000:g}+{ts & 0x3FFFF}"


def in_words(changes: Changes | None, tables: list[str]) -> str:
    """A line for each transaction and for what is resolved."""
    if changes is None:
        return "nothing\n"
    lines: dict[int, list[str]] = {}
    for change in changes.changes:
        lines.setdefault(change.commit_ts, []).append(_change(change, tables))
    text = [f"{ts_in_words(ts)}: {', '.join(words)}" for ts, words in lines.items()]
    return "\n".join([*text, f"resolved {ts_in_words(changes.resolved)}"]) + "\n"


def _change(change: KvChange, tables: list[str]) -> str:
    number, kind = int.from_bytes(change.key[:8], "big"), change.key[8]
    match kind:
        case entry.ROWS:
            event = {23: "insert", 24: "update", 25: "delete"}[change.value[4]]
            what = f"{event} {tables[change.region_id - 1]}"
        case entry.DDL:
            what = entry.decode_statement(change.value).query
        case entry.COMMIT:
            what = "commit"
        case entry.ROLLBACK_MARKER:
            what = "void"
    position = entry.position_of(change)
    return f"{number} {what}" if position is None else f"{number} {what} at {position}"
