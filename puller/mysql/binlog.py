"""Binlog events to raw changes: the tables they are of and the bounds of transactions. Rows aren't decoded.

Source: MariaDB's sql/log_event.h and the "Replication Protocol" pages of its knowledge base, MySQL's
libs/mysql/binlog/event. A payload of the dump is a status byte, then the event: a 19-byte header (time, type,
server, size, end position, flags), the body, a CRC32 of both.

A transaction begins with a GTID event. MariaDB's says if a single statement follows, which then ends it; of
MySQL's that is so unless the first statement is BEGIN or XA START.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as struct_error

from msgspec.structs import replace

from ...codec.mysql.entry import DDL, ROWS, encode_statement
from ...codec.mysql.position import BinlogOffset, Position, Rank
from ...dialects.mysql.zone import ServerZone
from ...errors import SourceError
from ...events import Changes, Ts, compose_ts
from .commit_clock import CommitClock
from .compression import ROWS_COMPRESSED, events_of_payload, uncompress_rows
from .cursor import HEADER, LogCursor
from .dml import changes_definitions
from .event import (
    EXECUTE_LOAD_QUERY,
    FORMAT_DESCRIPTION,
    GTID,
    HEARTBEAT,
    HEARTBEAT_V2,
    INCIDENT,
    MYSQL_GTIDS,
    PARTIAL_ROW_DATA,
    QUERY,
    QUERY_COMPRESSED,
    ROTATE,
    ROWS_EVENTS,
    TABLE_MAP,
    TRANSACTION_PAYLOAD,
    WITHOUT_EFFECT,
    XA_PREPARE,
    XID,
    flags_of,
)
from .prepared import COMMIT as XA_COMMIT
from .prepared import ROLLBACK as XA_ROLLBACK
from .prepared import Prepared, read_prepare
from .query import LoggedStatement
from .table_ids import UNWANTED, TableIds
from .transactions import Transactions
from .unneeded import Unneeded
from .whole import read_whole

_IGNORABLE = 0x80
_BOUNDS = ("BEGIN", "COMMIT")
_XA = ("XA START ", "XA END ", "XA PREPARE ")
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
        unneeded: Unneeded | None = None,
    ) -> None:
        """`unneeded` has the tables of which statements may be logged in place of rows."""
        self.events = 0
        self.row_events = 0
        self.transactions = 0
        self.epoch_seconds = 0
        """The source's time of the latest transaction, in Unix seconds."""
        self.caught_up = False
        """True if the last payloads end with a heartbeat: the source has nothing more."""
        self.reached = False
        """True if the stream has reached the position given to stop_at(); later events were dropped."""
        self._output = transactions
        self._prepared = Prepared()
        self._collects_until: Position | None = None
        self._out = transactions
        if position.prepared is not None:
            if position.by_gtid:
                raise SourceError(
                    f"{position}: an XA transaction is prepared that another server's log began: start again "
                    "with a new snapshot"
                )
            # Prepared transactions are read again; anything else up to the position was already.
            self._collects_until = position
            self._out = Transactions(CommitClock(), transactions.max_bytes)
            position = Position(*position.prepared)
        self._cursor = LogCursor(position)
        self._follows = follows
        self._unneeded = unneeded or Unneeded()
        self._tables = TableIds(follows, layout_number)
        self._until: Rank | None = None
        self._server_ts: Ts = 0
        self._zone = ServerZone()
        self._gtid = b""  # the body of the latest GTID event
        self._is_statement: bool | None = None  # the transaction is a single statement; None if not known yet
        self._is_half_of_alter = False
        self._is_of_mysql = False
        self._payload = b""  # the event whose payload is read
        self._arrive()

    @property
    def position(self) -> Position:
        """The position after the last complete transaction; before it while prepared ones are read again."""
        begin = self._prepared.begin
        return self._cursor.position if begin is None else replace(self._cursor.position, prepared=begin)

    def _text(self) -> str:
        """Return the position as text, which the cursor keeps ready."""
        return str(self._cursor) if self._prepared.begin is None else str(self.position)

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

    @property
    def has_gtids(self) -> bool:
        """True if the set of GTIDs before the position is known."""
        return self._cursor.has_gtids

    def know_gtids(self, gtids: str, server: str) -> None:
        """Learn the set of GTIDs before the position, and its server."""
        self._cursor.know_gtids(gtids, server)

    def move_to(self, server: str) -> None:
        """Go on at another server, after the same GTIDs. Raises SourceError if a transaction of which a part
        was sent would get a higher ts than some sink has for it."""
        clock = self._out.clock
        if self._prepared.begin is not None or self._collects_until is not None:
            raise SourceError(
                f"an XA transaction is prepared at {self.position}, which can't go on at server {server}: "
                "start again with a new snapshot, or connect to the server that was followed before"
            )
        if self._out.is_begun and clock.has_checkpoints_ahead:
            raise SourceError(
                f"the transaction after {self._cursor} was sent in part, and can't go on at server {server} "
                "while some sinks are ahead: start the feed again"
            )
        self._cursor.move_to(server)
        clock.move()

    def feed(self, payloads: list[bytes], between: Callable[[], None] | None = None) -> None:
        """Decode events. `between` is called after each transaction, and may commit others.

        Raises SourceError for an event that can't be followed or read.
        """
        self.caught_up = False
        try:
            if between is None:
                self._feed(payloads)
            else:
                self._feed_each(payloads, between)
        except (LookupError, ValueError, struct_error):
            raise SourceError(
                f"an event after {self._cursor} can't be read: check the server's disk and the network"
            ) from None

    def _feed_each(self, payloads: list[bytes], between: Callable[[], None]) -> None:
        for payload in payloads:
            transactions = self.transactions
            self._feed([payload])
            if self.transactions > transactions and self._collects_until is None and not self.reached:
                between()

    def _feed(self, payloads: list[bytes]) -> None:
        event_of = self._cursor.event
        index, count = 0, len(payloads)
        while index < count and not self.reached:
            payload = payloads[index]
            kind = payload[5]
            if kind == GTID or kind in MYSQL_GTIDS:
                first, index = index, self._take_whole(payloads, index)
                if index > first:
                    continue
            index += 1
            self.events += 1
            if kind in ROWS_EVENTS:
                layout = self._layout_at(payload[20:26])
                if layout != UNWANTED:
                    self._add_rows(event_of(payload), layout)
            elif kind == TABLE_MAP:
                self._map_table(event_of(payload))
            elif kind == XID:
                self._commit(event_of(payload))
            elif kind == GTID or kind in MYSQL_GTIDS:
                self._begin(kind, event_of(payload))
            elif kind in (HEARTBEAT, HEARTBEAT_V2):
                self.caught_up = True
                if kind == HEARTBEAT and not self._out.is_begun:
                    self._cursor.place(payload)
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
        if (
            self._collects_until is None
            and not self._out.is_begun
            and not self._out.clock.has_checkpoints_ahead
        ):
            self._out.advance_watermark(compose_ts(int(epoch_seconds) * 1000 - 1))

    @property
    def is_between(self) -> bool:
        """True if transactions of other origin may come here: up to a sink's checkpoint the log alone gives
        the timestamps, and at another server the position is to be one of its log."""
        out = self._out
        is_inside = out.is_begun or out.clock.has_checkpoints_ahead or not self._cursor.is_placed
        return self._collects_until is None and not is_inside

    def take(self) -> Changes | None:
        """Return the complete transactions and the received part of a large one; None if there are no
        changes."""
        changes = self._out.take(self._text())
        return changes if self._collects_until is None else None

    # --- transactions ----------------------------------------------------------------------------

    def _take_whole(self, payloads: list[bytes], first: int) -> int:
        """Take whole, regular transactions from that event on; return the index after them."""
        if self._until is not None or self._collects_until is not None or self._prepared.begin is not None:
            return first
        whole = read_whole(payloads, first, self._cursor, self._tables, self._out)
        if whole is None:
            return first
        self.events += whole.end - first
        self.transactions += whole.transactions
        self.row_events += whole.row_events
        self.epoch_seconds = whole.epoch_seconds
        return whole.end

    def _begin(self, kind: int, event: bytes) -> None:
        out = self._out
        if out.is_open:
            raise SourceError(f"the transaction after {self._cursor} is incomplete: check the server's disk")
        gtid = event[HEADER:]
        if out.is_begun and gtid != self._gtid:
            raise SourceError(
                f"the binlog was rewritten: what follows {self._cursor} is another transaction than before "
                "the connection was lost; start again with a new snapshot"
            )
        self._gtid = gtid
        self._cursor.begin(event)
        self.epoch_seconds = _u32(event)[0]
        out.begin(self.epoch_seconds)
        if kind == GTID:
            self._is_statement, out.is_kept_whole, self._is_half_of_alter = flags_of(gtid)
            self._is_of_mysql = False
        else:
            self._is_statement, self._is_half_of_alter, self._is_of_mysql = None, False, True

    def _commit(self, event: bytes) -> None:
        self._cursor.move(self._payload or event)
        self._cursor.commit()
        self.transactions += 1
        self._out.commit(self._text())
        self._arrive()

    def _prepare(self, event: bytes) -> None:
        if not self._out.is_open:
            raise self._inside()
        prepare = read_prepare(event[HEADER:])
        if not prepare.commits:
            place = self._cursor.position
            self._prepared.hold(prepare.xid, BinlogOffset(place.file, place.offset), self._out.withdraw())
        self._commit(event)

    def _rotate(self, payload: bytes) -> None:
        if self._cursor.rotate(payload):
            self._tables.forget()
            if self._out.is_begun:  # the server crashed while it wrote a transaction
                self._out.abandon(self._text())
            self._arrive()

    def _arrive(self) -> None:
        """Note that the stream is between two transactions."""
        until = self._collects_until
        if until is not None and self._cursor.is_at(until):
            if until.gtid:
                self._cursor.know_gtids(until.gtid, until.server)
            self._collects_until = None
            self._out = self._output
        if self._out.clock.has_checkpoints_ahead:
            self._out.clock.pass_to(self.position)
        if self._until is not None:
            self.reached = self._cursor.has_reached(self._until)

    def _inside(self) -> SourceError:
        return SourceError(f"{self._cursor} is inside a transaction: start between two")

    # --- rows ------------------------------------------------------------------------------------

    def _map_table(self, event: bytes) -> None:
        self._tables.assign(event[HEADER : HEADER + 6], event[HEADER + 8 :])

    def _layout_at(self, table_id: bytes) -> int:
        try:
            return self._tables[table_id]
        except KeyError:
            raise self._inside() from None

    def _add_rows(self, event: bytes, layout: int) -> None:
        if not self._out.is_open:
            raise self._inside()
        self.row_events += 1
        self._out.add(ROWS, event, layout)
        if self._out.is_kept_whole:
            self._prepared.check(self._out.open_bytes)

    # --- the rarer events ------------------------------------------------------------------------

    def _take_other(self, kind: int, event: bytes) -> None:
        if kind in (QUERY, QUERY_COMPRESSED):
            self._take_statement(event, LoggedStatement(event[HEADER:], compressed=kind == QUERY_COMPRESSED))
        elif kind == EXECUTE_LOAD_QUERY:
            # A query event has 13 bytes between its fixed part and its status variables.
            self._take_statement(event, LoggedStatement(event[HEADER : HEADER + 13] + event[HEADER + 26 :]))
        elif kind in ROWS_COMPRESSED:
            layout = self._layout_at(event[HEADER : HEADER + 6])
            if layout != UNWANTED:
                self._add_rows(uncompress_rows(event), layout)
        elif kind == XA_PREPARE:
            self._prepare(event)
        elif kind == TRANSACTION_PAYLOAD:
            self._take_payload(event)
        elif kind == INCIDENT:
            raise SourceError(
                f"after {self._cursor} the server says that it lost events ({_incident(event)}): start again "
                "with a new snapshot"
            )
        elif kind == PARTIAL_ROW_DATA:
            raise SourceError(
                f"after {self._cursor} the binlog has rows in pieces (an event of type {kind}), which can't "
                "be followed: change fewer or smaller rows at once, then start again with a new snapshot"
            )
        elif kind not in WITHOUT_EFFECT and not _u16(event, 17)[0] & _IGNORABLE:
            raise SourceError(
                f"after {self._cursor} the binlog has an event of type {kind}, which can't be followed"
            )
        elif not self._out.is_open:
            self._cursor.move(event)
            self._arrive()

    def _take_payload(self, payload: bytes) -> None:
        """Take the events of a compressed transaction. Their positions aren't those of the file."""
        if not self._out.is_open:
            raise self._inside()
        self._payload = payload
        try:
            for event in events_of_payload(payload[HEADER:]):
                self.events += 1
                kind = event[4]
                if kind in ROWS_EVENTS:
                    layout = self._layout_at(event[HEADER : HEADER + 6])
                    if layout != UNWANTED:
                        self._add_rows(event, layout)
                elif kind == TABLE_MAP:
                    self._map_table(event)
                elif kind == XID:
                    self._commit(event)
                else:
                    self._take_other(kind, event)
        finally:
            self._payload = b""
        if self._out.is_open:
            raise SourceError(f"the compressed transaction after {self._cursor} has no end")

    def _take_statement(self, event: bytes, logged: LoggedStatement) -> None:
        out = self._out
        if not out.is_open:
            raise self._inside()
        text = logged.text
        if self._is_statement is None:
            out.is_kept_whole = text.startswith("XA START ")
            self._is_statement = text != "BEGIN" and not out.is_kept_whole
        if text == "ROLLBACK":
            out.roll_back()
        elif text.startswith("SAVEPOINT "):
            out.save(text.removeprefix("SAVEPOINT "))
        elif text.startswith("ROLLBACK TO "):
            out.roll_back_to(text.removeprefix("ROLLBACK TO "))
        elif text.startswith(XA_COMMIT):
            xid = text.removeprefix(XA_COMMIT)
            if self._collects_until is None:
                out.restore(self._prepared.release(xid))
            else:  # whatever ended before the position counts already
                self._prepared.drop(xid)
        elif text.startswith(XA_ROLLBACK):
            self._prepared.drop(text.removeprefix(XA_ROLLBACK))
        elif text not in _BOUNDS and not text.startswith(_XA):
            is_definition = changes_definitions(logged, self._is_of_mysql, self._needs, self._cursor)
            if is_definition:
                self._unneeded.note_statement(text)
            if is_definition and not self._is_half_of_alter:
                end = self._cursor.after(event)
                out.add(DDL, encode_statement(logged.as_query(_u32(event)[0], self._zone, end)))
        if text in ("COMMIT", "ROLLBACK") or self._is_statement:
            self._commit(event)

    def _needs(self, schema: str, table: str) -> bool:
        """Return True for a followed table whose changed rows some target needs: also those of an XA
        transaction, which may be committed only after the table was loaded again."""
        is_needed = self._out.is_kept_whole or (schema, table) not in self._unneeded
        return is_needed and self._follows(schema, table)


def _incident(event: bytes) -> str:
    """Return the text of an INCIDENT event: after its number, with its length in front."""
    return event[HEADER + 3 : HEADER + 3 + event[HEADER + 2]].decode("utf-8", "replace")
