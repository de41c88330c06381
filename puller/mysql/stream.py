"""The binlog's events, read directly from the socket.

The only module that uses internals of mysql-replication, which connects, logs in, negotiates checksums and
heartbeats and sends the command.
"""

from __future__ import annotations

import os
import socket
from contextlib import closing
from dataclasses import replace
from itertools import count
from struct import Struct
from typing import Final
from zlib import crc32

import pymysql
from pymysql.constants import ER
from pymysql.constants.COMMAND import COM_BINLOG_DUMP_GTID

from ...codec.mysql.gtid import MySqlGtids
from ...codec.mysql.position import Position
from ...dialects.mysql.client import (
    Session,
    Unavailable,
    connect,
    disconnect,
    identify,
    query,
    translated,
    translation,
)
from ...dialects.mysql.packets import PacketCutter
from ...dialects.mysql.result import POLL_SECONDS, error_of, receive, taken_over
from ...errors import SourceError, TidemillError
from .failover import check_reached, gtids_at
from .options import MysqlOptions

_ERROR: Final = 0xFF
_DUMP_AFTER: Final = Struct("<HIIQI")
"""Flags, the reader's server id, length of a file's name, offset, length of the set of GTIDs."""
_THROUGH_GTID: Final = 4
_FILE_START: Final = 4
_calls = count()


def own_server_id() -> int:
    """Return a server id that is unlikely to collide with another replica's; a new one at every call."""
    return crc32(f"{socket.gethostname()}/{os.getpid()}/{next(_calls)}".encode()) | 1


class Dump:
    """The binlog from a position: the server sends events as they are written.

    It starts at file and offset on the position's own server, and after the same GTIDs on another one.
    """

    def __init__(self, options: MysqlOptions, position: Position, *, wants_gtids: bool = False) -> None:
        """With `wants_gtids`, the GTIDs before a position without them are looked up, if the server can.

        Raises Retryable or SourceError.
        """
        if position.offset > 0xFFFFFFFF:
            raise SourceError(
                f"{position} is beyond 4 GiB, and no server can start a dump there: start again with a new "
                "snapshot, and change less in one transaction"
            )
        self._options = options
        self._position = position
        self._cutter = PacketCutter()
        self.bytes = 0
        """Bytes read."""
        self.is_by_gtid = False
        """True if the dump starts by GTID: its first event names the file."""
        self.gtids: str | None = None
        """The GTIDs before the position, if they were wanted and the server knows them."""
        self._wants_gtids = wants_gtids
        self._end = b""
        self._silent_seconds = 0.0
        self.session = connect(options)
        """The connection; another thread may `cut` it."""
        try:
            with translated(options):
                self._start()
            self._socket = taken_over(self.session)
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        options, position = self._options, self._position
        self.server = identify(self.session)
        self.is_by_gtid = position.by_gtid or position.server not in ("", self.server.identity)
        if self.is_by_gtid:
            check_reached(self.session, options, position)
        elif self._wants_gtids:
            self.gtids = gtids_at(self.session, position)
        # A server that no longer writes checksums may have older files with checksums. MySQL has the settings
        # under new names and reads the old ones too.
        self.session.query("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")
        if self.is_by_gtid and self.server.vendor != "MariaDB":
            self._start_after(MySqlGtids(position.gtid))
            return
        from pymysqlreplication import BinLogStreamReader  # only a dump needs it

        reader = BinLogStreamReader(
            connection_settings={},
            server_id=options.server_id,
            log_file=position.file,
            log_pos=position.offset,
            auto_position=position.gtid if self.is_by_gtid else None,
            resume_stream=True,
            blocking=True,
            slave_heartbeat=options.heartbeat_seconds,
            is_mariadb=self.is_by_gtid,  # True requests by GTID only
            enable_logging=False,
            pymysql_wrapper=lambda **_: self.session,
        )
        # This is the first step of fetchone(), which would also connect a second time and reconnect by itself
        # whenever the connection is lost.
        reader._BinLogStreamReader__connect_to_stream()

    def _start_after(self, gtids: MySqlGtids) -> None:
        """Request the dump of a MySQL by GTID, which mysql-replication can't with tags in the set."""
        nanoseconds = int(self._options.heartbeat_seconds * 1e9)
        self.session.query(
            f"SET @master_heartbeat_period = {nanoseconds}, @source_heartbeat_period = {nanoseconds}"
        )
        encoded = gtids.encode()
        request = _DUMP_AFTER.pack(_THROUGH_GTID, self._options.server_id, 0, _FILE_START, len(encoded))
        self.session._execute_command(COM_BINLOG_DUMP_GTID, request + encoded)

    def read(self, wait_seconds: float = POLL_SECONDS) -> list[bytes]:
        """Return the payloads of events; none after `wait_seconds` of silence.

        Raises Retryable if the connection is lost, SourceError if the server refuses.
        """
        if self._end:
            raise self._ended()
        if self._socket.gettimeout() != wait_seconds:
            self._socket.settimeout(wait_seconds)
        data = receive(self._socket, self._options)
        if not data:
            self._silent_seconds += wait_seconds
            if self._silent_seconds > 3 * self._options.heartbeat_seconds + 1:
                raise Unavailable(f"{self._options.address}: silent for {self._silent_seconds:.0f} s")
            return []
        self._silent_seconds = 0.0
        self.bytes += len(data)
        payloads = self._cutter.feed(data)
        if payloads and payloads[-1][0]:  # an error or EOF packet is the last one
            self._end = payloads.pop()
            return payloads or self.read(wait_seconds)
        return payloads

    def close(self) -> None:
        disconnect(self.session)

    def _ended(self) -> TidemillError:
        if self._end[0] != _ERROR:
            return Unavailable(f"{self._options.address}: the server ended the stream")
        error = error_of(self._end)
        if error.args[0] != ER.MASTER_FATAL_ERROR_READING_BINLOG:
            return translation(self._options, error)
        try:
            session = connect(self._options)
        except TidemillError:
            held = ""
        else:
            held = f"; the server holds {_binlogs(session)}"
            disconnect(session)
        return SourceError(
            f"{self._options.address}: can't read the binlog from {self._position}: {error.args[1]}{held}. "
            "Load all tables again (tidemill resume FEED --resnapshot '*'), or begin with empty targets; if "
            "the position was purged, have the server keep binlogs longer (binlog_expire_logs_seconds)"
        )


def try_position(options: MysqlOptions, position: Position) -> None:
    """Check that the server sends its log from a position. Raises Retryable or SourceError."""
    numbered = replace(options, server_id=options.server_id or own_server_id())
    begin = position if position.prepared is None else Position(*position.prepared)
    with closing(Dump(numbered, begin)) as dump:
        while not dump.read():  # the server refuses at once, or sends the name of the log's file
            pass


def _binlogs(session: Session) -> str:
    """Describe the first and the last binlog."""
    try:
        rows = query(session, "SHOW BINARY LOGS")
    except pymysql.err.Error as error:
        return f"binlogs that it doesn't list ({error.args[1]})"
    return f"{rows[0][0]} to {rows[-1][0]} (which ends at {rows[-1][1]})"
