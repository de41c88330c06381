"""Long answers of a server, read directly from the socket.

pymysql connects, logs in and sends the command; the bytes of the answer are read here in large chunks.
pymysql buffers none of them: a server sends nothing between its answer to one command and the next command.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from ssl import SSLSocket
from struct import Struct
from typing import Final

import pymysql
from pymysql.constants.COMMAND import COM_STMT_CLOSE, COM_STMT_EXECUTE, COM_STMT_PREPARE

from ...codec.mysql.result_rows import check_types
from ...events import Table
from .client import Session, Unavailable, translated
from .packets import RowCutter
from .server import ServerOptions

READ_BYTES: Final = 256 * 1024
POLL_SECONDS: Final = 0.2
"""Maximum wait of a read, so that the reader can do other work."""

_PREPARED: Final = Struct("<BIHH")
"""Status 0, the statement's number, its columns and parameters."""
_EXECUTE: Final = Struct("<IBI")
"""The statement's number, no cursor, one iteration."""
_uint32: Final = Struct("<I")
_AFTER_TYPE: Final = 5
"""Bytes of a column definition after the type: flags, decimals and two unused ones."""


class Result:
    """The rows of a large query in the binary protocol, uncopied, as they are received.

    Its session can be used again when `done`.
    """

    def __init__(self, session: Session, options: ServerOptions, table: Table, sql: str) -> None:
        """`sql` selects the columns of `table`, as `codec.mysql.result_rows` reads them. Raises Retryable or
        SourceError."""
        self._options = options
        self._session = session
        self._table = table
        self._cutter = RowCutter()
        self._is_checked = False
        with translated(options):
            self._statement = _prepared(session, sql)
            session._execute_command(COM_STMT_EXECUTE, _EXECUTE.pack(self._statement, 0, 1))
            self._socket = taken_over(session)

    @property
    def done(self) -> bool:
        return self._cutter.done

    @property
    def rows(self) -> int:
        """Number of rows received."""
        return self._cutter.rows

    @property
    def last_row(self) -> bytes:
        """The last row received."""
        return self._cutter.last_row

    def read(self) -> bytes:
        """Return whole row packets; empty after POLL_SECONDS of silence. Raises Retryable or SourceError."""
        packets = self._cutter.feed(receive(self._socket, self._options))
        if self._cutter.is_described and not self._is_checked:
            check_types(self._table, list(map(_type_of, self._cutter.head[1:])))
            self._is_checked = True
        if self._cutter.done:
            with translated(self._options):
                if self._cutter.error:
                    raise error_of(self._cutter.error)
                self._session._execute_command(COM_STMT_CLOSE, _uint32.pack(self._statement))
        return packets


def _prepared(session: Session, sql: str) -> int:
    """Prepare a statement without parameters; return its number. Raises pymysql's errors."""
    session._execute_command(COM_STMT_PREPARE, sql)
    statement: int
    _, statement, columns, _ = _PREPARED.unpack_from(session._read_packet().get_all_data())
    for _ in range(columns + 1):  # each column, and the packet that ends their list
        session._read_packet()
    return statement


def _type_of(definition: bytes) -> int:
    """Return the type of a column: it is followed by 5 bytes at the definition's end."""
    return definition[-_AFTER_TYPE - 1]


def cut(session: Session) -> None:
    """Have what another thread waits for in this session fail at once, with Unavailable."""
    if (stream := session._sock) is not None:
        plain = socket.socket if isinstance(stream, SSLSocket) else type(stream)
        with suppress(OSError):
            plain.shutdown(stream, socket.SHUT_RDWR)  # TLS's own would touch that thread's state


def taken_over(session: Session) -> socket.socket:
    stream = session._sock
    assert stream is not None
    stream.settimeout(POLL_SECONDS)
    session._current_timeout = POLL_SECONDS  # pymysql restores its own timeout when it reads
    for name, value in ("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3):
        if hasattr(socket, name):
            stream.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return stream


def receive(stream: socket.socket, options: ServerOptions) -> bytes:
    """Return the bytes received; empty after POLL_SECONDS of silence. Raises Retryable if the connection is
    closed."""
    try:
        data = stream.recv(READ_BYTES)
    except TimeoutError:
        return b""
    except OSError as error:
        raise Unavailable(f"{options.address}: connection lost: {error}") from error
    if not data:
        raise Unavailable(f"{options.address}: the server closed the connection")
    return data


def error_of(payload: bytes) -> pymysql.err.Error:
    try:
        pymysql.err.raise_mysql_exception(payload)
    except pymysql.err.Error as error:
        return error
