"""A connection of PyMySQL that doesn't wait where it needn't."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import pymysql.connections
from pymysql.constants import COMMAND
from sqlalchemy import Engine, event

from ...codec.mysql.shared_tls import SharedTls

_DUPLICATES: Final = re.compile(rb"Duplicates: (\d+)")
_PIECE_BYTES: Final = 1 << 18
"""Bytes of a packet of rows, which the server reads while the next one is made."""


class Outcome(NamedTuple):
    """The server's answer to a statement."""

    rows: int
    """Number of rows that it found or inserted; a replaced one counts twice."""
    duplicates: int
    """Number of inserted rows that existed; 0 for a single one."""
    warnings: int


class Connection(SharedTls, pymysql.connections.Connection):
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

    def send(self, statements: str) -> None:
        """Send a packet, whose outcomes must be received before anything else is sent."""
        packet = statements.encode(self.encoding, "surrogateescape")
        self._execute_command(COMMAND.COM_QUERY, packet)  # type: ignore[attr-defined]

    def load(self, statement: str, lines: str) -> None:
        """Send a LOAD DATA LOCAL and its rows, whose outcome must be received before anything else is sent.

        The rows are sent whatever file the server asks for: no file is ever read. A request for a file that
        follows any other statement is an error of PyMySQL's.
        """
        self.send(statement)
        asked = self._read_packet()  # type: ignore[no-untyped-call]
        if not asked.is_load_local_packet():
            raise pymysql.OperationalError(0, "the server didn't ask for the rows of a LOAD DATA LOCAL")
        data = lines.encode(self.encoding, "surrogateescape")
        for first in range(0, len(data), _PIECE_BYTES):
            self.write_packet(data[first : first + _PIECE_BYTES])
        self.write_packet(b"")

    def receive(self) -> list[Outcome]:
        """Return the outcomes of the packet that was sent. Raises the error of the first that failed."""
        outcomes = []
        has_next = True
        while has_next:
            self._read_query_result()  # type: ignore[attr-defined]
            found = _DUPLICATES.search(self._result.message or b"")
            duplicates = int(found[1]) if found else 0
            outcomes.append(Outcome(self._result.affected_rows, duplicates, self._result.warning_count))
            has_next = self._result.has_next
        return outcomes


def use_own_connections(engine: Engine) -> None:
    """Have an engine make such connections."""

    def connect(_dialect: object, _record: object, args: list[Any], options: dict[str, Any]) -> Connection:
        return Connection(*args, **options)

    event.listen(engine, "do_connect", connect)
