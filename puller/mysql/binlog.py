"""Binlog events into raw changes: which tables, where transactions begin and end; no row is decoded.

Source: MariaDB's sql/log_event.h and the "Replication Protocol" pages of its knowledge base. A
payload of the dump is a status byte, then the event: a 19-byte header (time, type, server, size, end
position, flags), the body, a CRC32 of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct
from typing import Final
from zlib import crc32

from ...codec.mysql.entry import (
    COMMIT,
    DDL,
    ROWS,
    VOID,
    Commit,
    encode_commit,
    encode_statement,
    entry_key,
)  # fmt: skip
from ...codec.mysql.table_map import names_of
from ...errors import SourceError
from ...events import PUT, Changes, KvChange, Ts, compose_ts
from .compression import ROWS_COMPRESSED, uncompress_rows
from .position import CommitClock, Position
from .query import DDL_VERBS, DML_VERBS, LoggedStatement, changed_tables, verb

QUERY: Final = 2
ROTATE: Final = 4
FORMAT_DESCRIPTION: Final = 15
XID: Final = 16
EXECUTE_LOAD_QUERY: Final = 18
TABLE_MAP: Final = 19
HEARTBEAT: Final = 27
XA_PREPARE: Final = 38
GTID: Final = 162
QUERY_COMPRESSED: Final = 165
ROWS_EVENTS: Final = frozenset({23, 24, 25})  # write, update, delete
WITHOUT_EFFECT: Final = frozenset({
    3,  # the file ends, another follows
    5, 13, 14,  # values for the statement that follows
    9, 17,  # data for the LOAD DATA statement that follows
    160, 161, 163, 164,  # MariaDB: annotation, checkpoint, list of GTIDs, start of encryption
})  # fmt: skip

_IGNORABLE = 0x80
_STANDALONE, _GROUP_COMMIT, _PREPARED_XA = 1, 2, 64
_START_ALTER, _ROLLBACK_ALTER = 2, 8
_HEADER = 19
_GTID_FLAGS = 12  # in a GTID's body, after sequence number and domain
_FILE_START = 4
_UNWANTED = 0
_SEQUENCE_COLUMNS = b"\x15next_not_cached_value\rminimum_value\rmaximum_value"

_u16 = Struct("<H").unpack_from
_u32 = Struct("<I").unpack_from
_u64 = Struct("<Q").unpack_from

# Made once, as most transactions are short.
_MADE_KEYS: Final = 64
_ROWS_KEYS: Final = [entry_key(number, ROWS) for number in range(_MADE_KEYS)]
_COMMIT_KEYS: Final = [entry_key(number, COMMIT) for number in range(_MADE_KEYS)]


class BinlogDecoder:
    """Makes changes from a dump's payloads.

    Each transaction ends with a COMMIT. Those without a change of a followed table only move the
    position: one empty transaction stands for all of them. Of one above `max_bytes` the parts are
    handed out as they come; should it not be committed in the end, a VOID takes them back.

    Each dump begins with resume() and at `position`. After a lost connection what was handed out of
    the transaction that was open is skipped.
    """

    def __init__(
        self,
        position: Position,
        clock: CommitClock,
        follows: Callable[[str, str], bool],
        layout_number: Callable[[bytes], int],
        *,
        max_bytes: int = 1 << 20,
    ) -> None:
        self.events = 0
        self.row_events = 0
        self.transactions = 0
        self.epoch_seconds = 0
        """The source's time of the latest transaction."""
        self.caught_up = False
        """The last event was a heartbeat: the source has nothing more."""
        self.reached = False
        """The stream stands at the place given to stop_at(); what came after it was dropped."""
        self._clock = clock
        self._follows = follows
        self._layout_number = layout_number
        self._max_bytes = max_bytes
        self._file = position.file
        self._offset = position.offset
        self._created: Ts = 0  # the file's own time; 0: not known yet
        self._server_ts: Ts = 0
        self._utc_offset = 0
        self._from_start = position.offset <= _FILE_START
        self._until: tuple[int, int] | None = None
        self._tail: int | None = -4  # where a payload's checksum begins
        self._layouts: dict[bytes, int] = {}  # by a Table_map's payload
        self._tables: dict[bytes, int] = {}  # by table id
        self._changes: list[KvChange] = []
        self._whole = 0  # so many of them are of complete transactions
        self._passed = False  # the position has moved since the last COMMIT
        # The latest transaction:
        self._open = False
        self._ts: Ts = 0
        self._gtid = b""
        self._number = 0  # of its last change
        self._handed = 0  # of its last change that take() has returned
        self._bytes = 0  # of its changes since
        self._savepoints: dict[str, int] = {}
        self._arrive()

    @property
    def position(self) -> Position:
        """After the last complete transaction."""
        return Position(self._file, self._offset)

    def stop_at(self, position: Position | None) -> None:
        """Take in nothing that lies behind `position`, a place between two transactions."""
        self._until = None if position is None else position.rank
        self.reached = False
        self._arrive()

    def feed(self, payloads: Iterable[bytes]) -> None:
        """Take events in. Raises SourceError where one can't be followed."""
        for payload in payloads:
            if self.reached:
                return
            self.events += 1
            kind = payload[5]
            if kind in ROWS_EVENTS:
                layout = self._tables[payload[20:26]]
                if layout != _UNWANTED:
                    self._add_rows(self._event(payload), layout)
            elif kind == TABLE_MAP:
                self._map_table(payload)
            elif kind == XID:
                self._commit(self._event(payload))
            elif kind == GTID:
                self._begin(self._event(payload))
            else:
                self._take_other(kind, payload)

    def take(self) -> Changes | None:
        """What is complete, and what there is of a large open transaction; None if there is nothing."""
        changes = self._changes
        whole = self._whole
        if self._passed:
            self._passed = False
            ts = self._clock.last
            commit = encode_commit(Commit(f"{self._file}:{self._offset}"))
            changes.insert(whole, KvChange(ts, ts, PUT, _COMMIT_KEYS[1], commit))
            whole += 1
        if self._bytes > self._max_bytes:
            whole = len(changes)
            self._handed = self._number
            self._bytes = 0
        self._changes = changes[whole:]
        self._whole = 0
        del changes[whole:]
        return Changes(changes, self._clock.last) if changes else None

    def resume(self, epoch_seconds: float, utc_offset_seconds: int = 0) -> None:
        """A dump begins at `position`; by the server's clock it is `epoch_seconds`, and its own time
        zone is so far ahead of UTC."""
        self._server_ts = compose_ts(int(epoch_seconds * 1000))
        self._utc_offset = utc_offset_seconds
        self._close()

    def idle(self, epoch_seconds: float) -> None:
        """The source has nothing more, and by its own clock it is at least `epoch_seconds` now."""
        if not (self._open or self._handed or self._clock.anchored):
            self._passed |= self._clock.raise_to(compose_ts(int(epoch_seconds * 1000)))

    # --- transactions ----------------------------------------------------------------------------

    def _begin(self, event: bytes) -> None:
        if self._open:
            raise SourceError(f"the transaction after {self.position} has no end: look at the server's disk")
        gtid = event[_HEADER:]
        if self._handed and gtid != self._gtid:
            raise SourceError(
                f"the binlog was rewritten: what follows {self.position} is another transaction than before "
                "the connection was lost; start again with a new snapshot"
            )
        self.epoch_seconds = _u32(event)[0]
        self._ts = self._clock.next(self.epoch_seconds)
        self._gtid = gtid
        self._open = True

    def _add_rows(self, event: bytes, layout: int) -> None:
        if not self._open:
            raise self._not_between()
        if self._gtid[_GTID_FLAGS] & _PREPARED_XA:
            raise SourceError(
                f"the transaction after {self.position} is an XA transaction that is only prepared: these "
                "can't be followed; change the followed tables in ordinary transactions"
            )
        self.row_events += 1
        self._number = number = self._number + 1
        if number > self._handed:
            key = _ROWS_KEYS[number] if number < _MADE_KEYS else entry_key(number, ROWS)
            self._changes.append(KvChange(self._ts, self._ts, PUT, key, event, b"", layout))
            self._bytes += len(event)

    def _add(self, number: int, kind: int, value: bytes = b"") -> None:
        self._changes.append(KvChange(self._ts, self._ts, PUT, entry_key(number, kind), value))

    def _commit(self, event: bytes) -> None:
        self._move(event)
        self.transactions += 1
        self._end()
        self._arrive()

    def _end(self) -> None:
        ts = self._ts
        number = self._number
        self._clock.last = ts
        if number:
            key = _COMMIT_KEYS[number + 1] if number + 1 < _MADE_KEYS else entry_key(number + 1, COMMIT)
            commit = encode_commit(Commit(f"{self._file}:{self._offset}"))
            self._changes.append(KvChange(ts, ts, PUT, key, commit))
            self._whole = len(self._changes)
        self._passed = not number
        self._handed = 0
        self._close()

    def _close(self) -> None:
        """No transaction is open; what wasn't handed out of it is gone."""
        del self._changes[self._whole :]
        self._open = False
        self._number = self._bytes = 0
        self._savepoints.clear()

    def _roll_back(self, savepoint: str = "") -> None:
        number = self._savepoints.get(savepoint, -1) if savepoint else 0
        if number < self._handed:
            if savepoint:
                raise SourceError(
                    f"the transaction after {self.position} goes back to savepoint {savepoint}, and what "
                    "followed that is sent on: take a new snapshot, with a larger max_batch_bytes"
                )
            self._void()
            return
        del self._changes[len(self._changes) - (self._number - number) :]
        self._number = number

    def _void(self) -> None:
        del self._changes[self._whole :]
        self._add(0, VOID)
        self._number = self._handed

    def _take_back(self) -> None:
        """The file ends within the transaction: the server went down while it wrote it.

        It uses up a ts all the same: in what parts it was read must not make a difference.
        """
        if self._handed:
            self._void()
            self._end()
        self._clock.last = self._ts
        self._close()

    # --- the other events ------------------------------------------------------------------------

    def _map_table(self, payload: bytes) -> None:
        table_map = payload[28 : self._tail]
        layout = self._layouts.get(table_map)
        if layout is None:
            self._event(payload)
            layout = self._layouts[table_map] = self._layout_of(table_map)
        self._tables[payload[20:26]] = layout

    def _layout_of(self, table_map: bytes) -> int:
        schema, table = names_of(table_map)
        # A sequence's NEXT VALUE is logged like a row of a table.
        if not self._follows(schema, table) or _SEQUENCE_COLUMNS in table_map:
            return _UNWANTED
        return self._layout_number(table_map)

    def _take_other(self, kind: int, payload: bytes) -> None:
        self.caught_up = kind == HEARTBEAT
        if kind == HEARTBEAT:
            return
        if kind == FORMAT_DESCRIPTION:
            self._describe(payload)
            return
        if kind == ROTATE:
            self._rotate(payload)
            return
        event = self._event(payload)
        if kind in (QUERY, QUERY_COMPRESSED):
            logged = LoggedStatement(event[_HEADER:], compressed=kind == QUERY_COMPRESSED)
            self._take_statement(event, logged)
        elif kind in ROWS_COMPRESSED:
            layout = self._tables[event[_HEADER : _HEADER + 6]]
            if layout != _UNWANTED:
                self._add_rows(uncompress_rows(event), layout)
        elif kind == XA_PREPARE:
            self._commit(event)
        elif kind == EXECUTE_LOAD_QUERY:
            # Thirteen bytes of its own stand between a query's fixed part and its status variables.
            logged = LoggedStatement(event[_HEADER : _HEADER + 13] + event[_HEADER + 26 :])
            self._take_statement(event, logged)
        elif kind not in WITHOUT_EFFECT and not _u16(event, 17)[0] & _IGNORABLE:
            raise SourceError(
                f"after {self.position} the binlog has an event of type {kind}, which can't be followed"
            )
        elif not self._open:
            self._move(event)
            self._arrive()

    def _take_statement(self, event: bytes, logged: LoggedStatement) -> None:
        if not self._open:
            raise self._not_between()
        text = logged.text
        if text == "ROLLBACK":
            self._roll_back()
        elif text.startswith("SAVEPOINT "):
            self._savepoints[text.removeprefix("SAVEPOINT ")] = self._number
        elif text.startswith("ROLLBACK TO "):
            self._roll_back(text.removeprefix("ROLLBACK TO "))
        elif (first := verb(text)) in DDL_VERBS:
            self._add_ddl(event, logged)
        elif first in DML_VERBS:
            self._refuse(logged)
        if text in ("COMMIT", "ROLLBACK") or self._gtid[_GTID_FLAGS] & _STANDALONE:
            self._commit(event)

    def _add_ddl(self, event: bytes, logged: LoggedStatement) -> None:
        if self._is_half_of_alter():
            return
        self._number += 1
        if self._number > self._handed:
            query = logged.as_query(_u32(event)[0], self._utc_offset)
            self._add(self._number, DDL, encode_statement(query))

    def _is_half_of_alter(self) -> bool:
        """With binlog_alter_two_phase an ALTER is logged when it starts and once more at its end."""
        flags = self._gtid[_GTID_FLAGS]
        at = _GTID_FLAGS + 1 + (8 if flags & _GROUP_COMMIT else 0)
        return bool(self._gtid[at] & (_START_ALTER | _ROLLBACK_ALTER))

    def _refuse(self, logged: LoggedStatement) -> None:
        """If it may change a followed table."""
        tables = changed_tables(logged.text)
        if tables is None or any(self._follows(schema or logged.schema, name) for schema, name in tables):
            raise SourceError(
                f"after {self.position} the binlog has a statement instead of rows, {logged.text[:200]!r}: "
                "set binlog_format = ROW for all sessions, then take a new snapshot"
            )

    def _describe(self, payload: bytes) -> None:
        """A format description: a file's first event, sent also when reading starts inside the file."""
        self._tail = -4 if payload[-5] else None
        created = compose_ts(_u32(payload, 1)[0] * 1000)
        if not self._from_start:
            # Later than the server's clock is no proof: that clock was set back.
            younger = 0 < self._clock.last < created <= self._server_ts
            if younger or self._created not in (0, created):
                raise SourceError(
                    f"{self._file} is younger than what was read of it up to {self.position}: the binlog was "
                    "reset, or this is another server; start again with a new snapshot"
                )
        self._clock.raise_to(created)
        self._created = created
        self._from_start = False

    def _rotate(self, payload: bytes) -> None:
        """The file that follows, or the one that reading starts in."""
        # Where reading starts, the checksum may be there before its presence is told.
        event = payload[1:-4] if crc32(payload[1:-4]) == _u32(payload, len(payload) - 4)[0] else payload[1:]
        file = event[_HEADER + 8 :].decode()
        if file == self._file:
            return
        self._file = file
        self._offset = _u64(event, _HEADER)[0]
        self._from_start = True
        self._tables.clear()
        if self._open or self._handed:
            self._take_back()
        self._arrive()

    def _event(self, payload: bytes) -> bytes:
        """Without status and checksum."""
        if self._tail is None:
            return payload[1:]
        event = payload[1:-4]
        if crc32(event) != _u32(payload, len(payload) - 4)[0]:
            raise SourceError(
                f"an event after {self.position} is damaged, its checksum is wrong: look at the server's "
                "disk and the network"
            )
        return event

    def _not_between(self) -> SourceError:
        return SourceError(f"{self.position} is inside a transaction: start between two")

    def _move(self, event: bytes) -> None:
        """To the event's end. Its 32 bits wrap where one transaction makes a file larger than 4 GiB."""
        end = _u32(event, 13)[0]
        if end:
            offset = self._offset & ~0xFFFFFFFF | end
            self._offset = offset if offset >= self._offset else offset + (1 << 32)

    def _arrive(self) -> None:
        """The stream stands between two transactions."""
        if self._clock.anchored:
            self._clock.pass_to(self.position)
        if self._until is not None:
            self.reached = self.position.rank >= self._until
