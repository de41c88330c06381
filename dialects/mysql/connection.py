"""A connection of PyMySQL that doesn't wait where it needn't."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from struct import Struct
from typing import Any, Final, NamedTuple

import pymysql.connections
from pymysql.connections import MAX_PACKET_LEN
from pymysql.constants import COMMAND

from ...config import from_query
from ..address import Address
from .client import Session
from .large import LargeValues
from .url_options import UrlOptions

_QUERY: Final = bytes([COMMAND.COM_QUERY])
_HEADER: Final = Struct("<I")
"""Length of a packet of the protocol in three bytes, and its number in one."""
_DUPLICATES: Final = re.compile(rb"Duplicates: (\d+)")
_PIECE_BYTES: Final = 1 << 18
"""Bytes of a packet of rows, which the server reads while the next one is made."""


class StatementOutcome(NamedTuple):
    """The server's answer to a statement."""

    rows: int
    """Number of rows that it found or inserted; a replaced one counts twice."""
    duplicates: int
    """Number of inserted rows that existed; 0 for a single one."""
    warnings: int


class Connection(Session):
    """Sends statements and receives their outcomes apart."""

    _result: Any
    _read_timeout: float | None

    def connect(self, sock: Any = None) -> None:
        """Connect, and don't wait for an answer of the handshake either for more than `connect_timeout`."""
        patience, self._read_timeout = self._read_timeout, self.connect_timeout
        try:
            super().connect(sock)
        finally:
            self._read_timeout = patience

    def send(self, statements: str, large: LargeValues | None = None) -> None:
        """Send a packet, whose outcomes must be received before anything else is sent.

        `large` has the values of the tokens in it.
        """
        if large is not None and large.has(statements):
            self._send_pieces(large, statements)
            return
        packet = statements.encode(self.encoding, "surrogateescape")
        self._execute_command(COMMAND.COM_QUERY, packet)

    def _send_pieces(self, large: LargeValues, statements: str) -> None:
        """Send a packet in pieces, divided into packets of the protocol where its length needs it."""
        self._execute_pieces(large.byte_size(statements) + 1, chain([_QUERY], large.pieces(statements)))
        large.drop(statements)

    def _execute_pieces(self, left: int, pieces: Iterator[bytes]) -> None:
        if not self._sock:
            raise pymysql.InterfaceError(0, "")
        self._result = None
        room = sequence = 0
        is_full = True  # a last packet that is full is followed by an empty one
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                if not room:
                    room = min(left, MAX_PACKET_LEN)
                    left -= room
                    is_full = room == MAX_PACKET_LEN
                    self._write_bytes(_HEADER.pack(room | (sequence & 0xFF) << 24))  # type: ignore[attr-defined]
                    sequence += 1
                part, rest = rest[:room], rest[room:]
                room -= len(part)
                self._write_bytes(part)  # type: ignore[attr-defined]
        if is_full:
            self._write_bytes(_HEADER.pack((sequence & 0xFF) << 24))  # type: ignore[attr-defined]
            sequence += 1
        self._next_seq_id = sequence % 256

    def load(self, statement: str, lines: str) -> None:
        """Send a LOAD DATA LOCAL and its rows, whose outcome must be received before anything else is sent.

        The rows are sent whatever file the server asks for: no file is ever read. A request for a file that
        follows any other statement is an error of PyMySQL's.
        """
        self.send(statement)
        asked = self._read_packet()
        if not asked.is_load_local_packet():
            raise pymysql.OperationalError(0, "the server didn't ask for the rows of a LOAD DATA LOCAL")
        data = lines.encode(self.encoding, "surrogateescape")
        for first in range(0, len(data), _PIECE_BYTES):
            self.write_packet(data[first : first + _PIECE_BYTES])
        self.write_packet(b"")

    def receive(self) -> list[StatementOutcome]:
        """Return the outcomes of the packet that was sent. Raises the error of the first that failed."""
        outcomes = []
        has_next = True
        while has_next:
            self._read_query_result()  # type: ignore[attr-defined]
            match = _DUPLICATES.search(self._result.message or b"")
            duplicates = int(match[1]) if match else 0
            outcomes.append(
                StatementOutcome(self._result.affected_rows, duplicates, self._result.warning_count)
            )
            has_next = self._result.has_next
        return outcomes


def connector(address: Address, **options: Any) -> Callable[[], Connection]:
    """Return a function that connects, with PyMySQL's `options` and those of the URL.

    Raises ConfigError for options of the URL.
    """
    url_options = from_query(UrlOptions, address.query)
    tls = url_options.tls
    arguments = options | url_options.driver
    for name, value in (("host", address.host), ("port", address.port), ("user", address.user)):
        if value:
            arguments[name] = value
    arguments["password"] = address.password or ""
    # The database is created if it is missing, so none is chosen.
    return lambda: Connection(**arguments, ssl=tls.context())
