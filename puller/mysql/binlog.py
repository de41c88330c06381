"""Binlog events to raw changes: the tables they are of and the bounds of transactions. Rows aren't decoded.

Source: MariaDB's sql/log_event.h and the "Replication Protocol" pages of its knowledge base. A
payload of the dump is a status byte, then the event: a 19-byte header (time, type, server, size, end
position, flags), the body, a CRC32 of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct
from typing import Final

from ...codec.mysql.entry import DDL, ROWS, encode_statement
from ...codec.mysql.table_map import names_of
from ...errors import SourceError
from ...events import Changes, Ts, compose_ts
from .compression import ROWS_COMPRESSED, uncompress_rows
from .cursor import HEADER, Cursor
from .position import Position
from .query import DDL_VERBS, DML_VERBS, LoggedStatement, changed_tables, verb
from .transactions import Transactions
from .zone import ServerZone

QUERY: Final = 2
ROTATE: Final = 4
FORMAT_DESCRIPTION: Final = 15
XID: Final = 16
EXECUTE_LOAD_QUERY: Final = 18
TABLE_MAP: Final = 19
INCIDENT: Final = 26
HEARTBEAT: Final = 27
XA_PREPARE: Final = 38
GTID: Final = 162
QUERY_COMPRESSED: Final = 165
ROWS_EVENTS: Final = frozenset({23, 24, 25})  # write, update, delete
WITHOUT_EFFECT: Final = frozenset({
    3,  # the end of a file
    5, 13, 14,  # values that the next statement uses
    9, 17,  # data of the next LOAD DATA statement
    160, 161, 163, 164,  # MariaDB: annotation, checkpoint, list of GTIDs, start of encryption
})  # fmt: skip

_IGNORABLE = 0x80
_GTID_FLAGS = 12  # in a GTID's body, after the sequence number and domain
_STANDALONE, _GROUP_COMMIT, _PREPARED_XA = 1, 2, 64
_START_ALTER, _ROLLBACK_ALTER = 2, 8
_UNWANTED = 0
_NO_TABLE = b"\xff" * 6  # in an event that only marks the end of a statement
_SEQUENCE_COLUMNS = b"\x15next_not_cached_value\rminimum_value\rmaximum_value"

_u16 = Struct("<H").unpack_from
_u32 = Struct("<I").unpack_from


class BinlogDecoder:
    """Makes changes from the payloads of dumps. Each dump begins with resume() and at `position`."""

    def __init__(
        self,
        position: Position,
        transactions: Transactions,
        follows: Callable[[str, str], bool],
        layout_number: Callable[[bytes], int],
    ) -> None:
        self.events = 0
        self.row_events = 0
        self.transactions = 0
        self.epoch_seconds = 0
        """The source's time of the latest transaction, in Unix seconds."""
        self.caught_up = False
        """True if the last payloads end with a heartbeat: the source has nothing more."""
        self.reached = False
        """True if the stream has reached the position given to stop_at(); later events were dropped."""
        self._cursor = Cursor(position)
        self._out = transactions
        self._follows = follows
        self._layout_number = layout_number
        self._until: tuple[int, int] | None = None
        self._server_ts: Ts = 0
        self._zone = ServerZone()
        self._gtid = b""  # the body of the latest GTID event
        self._layouts: dict[bytes, int] = {}  # layout numbers by the payload of a Table_map
        self._tables: dict[bytes, int] = {_NO_TABLE: _UNWANTED}  # layout numbers by table id
        self._arrive()

    @property
    def position(self) -> Position:
        """The position after the last complete transaction."""
        return self._cursor.position

    def stop_at(self, position: Position | None) -> None:
        """Ignore everything after `position`, which lies between two transactions."""
        self._until = None if position is None else position.rank
        self.reached = False
        self._arrive()

    def resume(self, epoch_seconds: float, zone: ServerZone = ServerZone()) -> None:  # noqa: B008 - frozen
        """Begin a dump. `epoch_seconds` is the server's clock now, `zone` its own time zone."""
        self._server_ts = compose_ts(int(epoch_seconds * 1000))
        self._zone = zone
        self._out.interrupt()

    def feed(self, payloads: Iterable[bytes]) -> None:
        """Decode events. Raises SourceError for an event that can't be followed."""
        self.caught_up = False
        event_of = self._cursor.event
        for payload in payloads:
            if self.reached:
                return
            self.events += 1
            kind = payload[5]
            if kind in ROWS_EVENTS:
                layout = self._layout_at(payload[20:26])
                if layout != _UNWANTED:
                    self._add_rows(event_of(payload), layout)
            elif kind == TABLE_MAP:
                self._map_table(payload)
            elif kind == XID:
                self._commit(event_of(payload))
            elif kind == GTID:
                self._begin(event_of(payload))
            elif kind == HEARTBEAT:
                self.caught_up = True
            elif kind == ROTATE:
                self._rotate(payload)
            elif kind == FORMAT_DESCRIPTION:
                clock = self._out.clock
                clock.raise_to(self._cursor.describe(payload, clock.last, self._server_ts))
            else:
                self._take_other(kind, event_of(payload))

    def idle(self, epoch_seconds: float) -> None:
        """Note that the source has nothing more while its clock shows at least `epoch_seconds`.

        The commit clock advances to a millisecond before that second: a transaction of the second gets the
        same ts as without this call, and an older transaction gets a ts above it.
        """
        if not self._out.is_begun and not self._out.clock.has_checkpoints_ahead:
            self._out.advance_watermark(compose_ts(int(epoch_seconds) * 1000 - 1))

    def take(self) -> Changes | None:
        """Return the complete transactions and the received part of a large one; None if there are no
        changes."""
        return self._out.take(str(self._cursor))

    # --- transactions ----------------------------------------------------------------------------

    def _begin(self, event: bytes) -> None:
        if self._out.is_open:
            raise SourceError(f"the transaction after {self._cursor} is incomplete: check the server's disk")
        gtid = event[HEADER:]
        if self._out.is_begun and gtid != self._gtid:
            raise SourceError(
                f"the binlog was rewritten: what follows {self._cursor} is another transaction than before "
                "the connection was lost; start again with a new snapshot"
            )
        self._gtid = gtid
        self.epoch_seconds = _u32(event)[0]
        self._out.begin(self.epoch_seconds)

    def _commit(self, event: bytes) -> None:
        self._cursor.move(event)
        self.transactions += 1
        self._out.commit(str(self._cursor))
        self._arrive()

    def _rotate(self, payload: bytes) -> None:
        if self._cursor.rotate(payload):
            self._tables = {_NO_TABLE: _UNWANTED}
            if self._out.is_begun:  # the server crashed while it wrote a transaction
                self._out.abandon(str(self._cursor))
            self._arrive()

    def _arrive(self) -> None:
        """Note that the stream is between two transactions."""
        if self._out.clock.has_checkpoints_ahead:
            self._out.clock.pass_to(self.position)
        if self._until is not None:
            self.reached = self.position.rank >= self._until

    def _inside(self) -> SourceError:
        return SourceError(f"{self._cursor} is inside a transaction: start between two")

    # --- rows ------------------------------------------------------------------------------------

    def _map_table(self, payload: bytes) -> None:
        event = self._cursor.event(payload)
        table_map = event[HEADER + 8 :]
        layout = self._layouts.get(table_map)
        if layout is None:
            layout = self._layouts[table_map] = self._layout_of(table_map)
        self._tables[event[HEADER : HEADER + 6]] = layout

    def _layout_of(self, table_map: bytes) -> int:
        # A sequence's NEXT VALUE is logged like a row of a table.
        if not self._follows(*names_of(table_map)) or _SEQUENCE_COLUMNS in table_map:
            return _UNWANTED
        return self._layout_number(table_map)

    def _layout_at(self, table_id: bytes) -> int:
        try:
            return self._tables[table_id]
        except KeyError:
            raise self._inside() from None

    def _add_rows(self, event: bytes, layout: int) -> None:
        if not self._out.is_open:
            raise self._inside()
        if self._gtid[_GTID_FLAGS] & _PREPARED_XA:
            raise SourceError(
                f"the transaction after {self._cursor} is an XA transaction that is only prepared, which "
                "can't be followed; change the followed tables in ordinary transactions"
            )
        self.row_events += 1
        self._out.add(ROWS, event, layout)

    # --- the rarer events ------------------------------------------------------------------------

    def _take_other(self, kind: int, event: bytes) -> None:
        if kind in (QUERY, QUERY_COMPRESSED):
            self._take_statement(event, LoggedStatement(event[HEADER:], compressed=kind == QUERY_COMPRESSED))
        elif kind == EXECUTE_LOAD_QUERY:
            # A query event has 13 bytes between its fixed part and its status variables.
            self._take_statement(event, LoggedStatement(event[HEADER : HEADER + 13] + event[HEADER + 26 :]))
        elif kind in ROWS_COMPRESSED:
            layout = self._layout_at(event[HEADER : HEADER + 6])
            if layout != _UNWANTED:
                self._add_rows(uncompress_rows(event), layout)
        elif kind == XA_PREPARE:
            self._commit(event)
        elif kind == INCIDENT:
            raise SourceError(
                f"after {self._cursor} the server says that it lost events: start again with a new snapshot"
            )
        elif kind not in WITHOUT_EFFECT and not _u16(event, 17)[0] & _IGNORABLE:
            raise SourceError(
                f"after {self._cursor} the binlog has an event of type {kind}, which can't be followed"
            )
        elif not self._out.is_open:
            self._cursor.move(event)
            self._arrive()

    def _take_statement(self, event: bytes, logged: LoggedStatement) -> None:
        out = self._out
        if not out.is_open:
            raise self._inside()
        text = logged.text
        if text == "ROLLBACK":
            out.roll_back()
        elif text.startswith("SAVEPOINT "):
            out.save(text.removeprefix("SAVEPOINT "))
        elif text.startswith("ROLLBACK TO "):
            out.roll_back_to(text.removeprefix("ROLLBACK TO "))
        elif (first := verb(logged.without_settings)) in DDL_VERBS:
            if not self._is_half_of_alter():
                out.add(DDL, encode_statement(logged.as_query(_u32(event)[0], self._zone)))
        elif first in DML_VERBS:
            self._refuse(logged)
        if text in ("COMMIT", "ROLLBACK") or self._gtid[_GTID_FLAGS] & _STANDALONE:
            self._commit(event)

    def _is_half_of_alter(self) -> bool:
        """True for the first half of an ALTER, which binlog_alter_two_phase logs at its start and at its
        end."""
        flags = self._gtid[_GTID_FLAGS]
        at = _GTID_FLAGS + 1 + (8 if flags & _GROUP_COMMIT else 0)
        return bool(self._gtid[at] & (_START_ALTER | _ROLLBACK_ALTER))

    def _refuse(self, logged: LoggedStatement) -> None:
        """Raise SourceError if the statement may change a followed table."""
        tables = changed_tables(logged.without_settings)
        named = {(schema or logged.schema, name): None for schema, name in tables or ()}
        followed = [f"{schema}.{name}" for schema, name in named if self._follows(schema, name)]
        if tables is None or followed:
            of = (
                f"of {', '.join(followed)}"
                if followed
                else f"of tables that it doesn't name (schema {logged.schema})"
            )
            raise SourceError(
                f"after {self._cursor} the binlog has a statement instead of the rows {of}, "
                f"{logged.text[:200]!r}: set binlog_format = ROW for all sessions, then take a new snapshot"
            )
