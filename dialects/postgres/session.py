"""A session on a PostgreSQL server, over psycopg: its settings, its statements and its errors."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import psycopg

from ...errors import InvariantViolated, Retryable, SinkError
from ...events import Row
from ..address import Address
from ..database import MISSING, ObjectRejected, StatementRejected
from ..statement import ANY, Statement

LEAST_VERSION: Final = 14
"""The oldest server whose rows have hash values, by which rows without a key are found."""
LOCK_SECONDS: Final = 60
"""Timeout for a lock that another session has; after it the work is retried from the start."""

_SETTINGS: Final = {
    "standard_conforming_strings": "on",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "search_path": '"$user", public',
    "transform_null_equals": "off",
    "row_security": "off",  # a policy that hides rows is an error
    "default_transaction_isolation": "read committed",
    "lock_timeout": f"{LOCK_SECONDS}s",
    "statement_timeout": "0",
    "transaction_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "client_min_messages": "warning",
    "jit": "off",
}
"""Settings that every session has, as far as the server knows them."""
_SET: Final = (
    "SELECT set_config(s.name, w.setting, false) FROM pg_catalog.pg_settings AS s, "
    "unnest(%s::text[], %s::text[]) AS w(name, setting) WHERE s.name = w.name"
)
_SET_DURABLE: Final = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)

_MOST_BYTES: Final = (1 << 30) - 1024
"""Maximum length of a message to the server."""
_CANCEL_SECONDS: Final = 1.0
"""Timeout for the server to hear that a statement is canceled."""
_WAITING_HELPS: Final = {
    "25P03",  # idle in a transaction for too long
    "25P04",  # a transaction for too long
    "40001",  # serialization failure
    "40P01",  # deadlock
    "53300",  # too many connections
    "55P03",  # a lock isn't available
    "57014",  # query canceled
    "57P01",  # shutdown by the administrator
    "57P02",  # crash of another session
    "57P03",  # the server is starting or stopping
    "57P05",  # idle for too long
}
_CONTENTION: Final = {"40001", "40P01", "55P03"}
"""Codes of a SQL transaction that met another one, and can be repeated on the same connection."""
_ABOUT_A_ROW: Final = ("21", "22", "23", "44", "54000", "P0001")
"""Beginnings of codes of a row that doesn't fit: data, constraints, the size of an index's row, a trigger's
RAISE."""
_ABOUT_AN_OBJECT: Final = ("0A", "2BP01", "42", "54")
"""Beginnings of codes of a table that isn't there or is another one, of a missing right to it, and of a
definition that the server can't have."""
_NEVER: Final = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|does not exist|not permitted to log in"
    r"|permission denied|not currently accepting connections|does not support SSL|certificate"
    r"|invalid (?:connection option|\w+ value|port number|integer value)"
)
"""Reasons for which a connection will be refused again. libpq gives them as text only."""


class PostgresSession:
    """One connection at a time, with autocommit, in UTC.

    Methods raise the driver's errors; `explain` converts them to ours. `identity` names the database in them.
    """

    def __init__(self, address: Address, identity: str) -> None:
        self._identity = identity
        self._options: dict[str, Any] = {
            "host": address.host or None,
            "port": address.port,
            "user": address.user,
            "password": address.password,
            "dbname": address.database or None,
            "connect_timeout": 10,
            "application_name": "tidemill",
            **address.query,
            "client_encoding": "UTF8",
        }
        self._connection: psycopg.Connection[Row] | None = None
        self._socket: socket.socket | None = None  # a duplicate of the connection's, for `interrupt`
        self._deferred: list[str] = []

    def connect(self) -> None:
        options = {name: value for name, value in self._options.items() if value is not None}
        self._deferred.clear()
        self._connection = psycopg.connect(autocommit=True, prepare_threshold=None, **options)
        self._socket = socket.socket(fileno=os.dup(self._connection.fileno()))
        info = self._connection.info
        version = info.server_version // 10_000
        if version < LEAST_VERSION:
            raise SinkError(f"{self._identity} is PostgreSQL {version}: use {LEAST_VERSION} or newer")
        encoding = info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise SinkError(
                f"{self._identity} stores text in {encoding}, which lacks characters of the source: name a "
                "database with ENCODING 'UTF8'"
            )
        self.rows(_SET, [*_SETTINGS], [*_SETTINGS.values()])
        self.rows(_SET_DURABLE)

    def close(self) -> None:
        """Close the connection, if there is one; an open transaction is rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if self._socket is not None:
            self._socket.close()

    def interrupt(self) -> None:
        """Make a statement fail that another thread waits for. Doesn't raise."""
        connection, duplicate = self._connection, self._socket
        if connection is None or duplicate is None:
            return
        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=_CANCEL_SECONDS)
        with suppress(OSError):  # closed meanwhile
            duplicate.shutdown(socket.SHUT_RDWR)

    # --- statements

    def defer(self, statement: str) -> None:
        """Send a statement without a result together with the next one."""
        self._deferred.append(statement)

    def execute(self, statement: str, *values: object) -> int:
        """Run a statement; return the number of its rows."""
        return self._run(statement, *values).rowcount

    def rows(self, query: str, *values: Any) -> list[Row]:
        """Run a query; return all its rows."""
        return self._run(query, *values).fetchall()

    def rollback(self) -> None:
        self._deferred.clear()
        self.execute("ROLLBACK")

    def commit(self) -> None:
        done = self._run("COMMIT").statusmessage
        if done != "COMMIT":  # it is ROLLBACK, and no error, after an error
            raise InvariantViolated(f"{self._identity} answered a COMMIT with {done}")

    def send(self, statements: Sequence[Statement]) -> None:
        """Run statements in one message. Raises StatementRejected if one has another number of rows."""
        first = len(self._deferred)
        text = ";".join([*self._deferred, *(statement.text for statement in statements)])
        if "\0" in text:  # it would end the message
            raise StatementRejected("PostgreSQL can't store the character NUL in a text")
        self._check_size(text)
        self._deferred.clear()
        cursor = self._cursor()
        cursor.execute(text)
        counts = [cursor.rowcount]
        while cursor.nextset():
            counts.append(cursor.rowcount)
        wanted = [statement.rows for statement in statements]
        if any(rows not in (ANY, count) for count, rows in zip(counts[first:], wanted, strict=True)):
            raise StatementRejected(MISSING)

    def copy(self, statement: str, blocks: Iterable[str]) -> int:
        """Run a COPY … FROM STDIN; return the number of its rows.

        The server reads one block while the next is made.
        """
        self._send_deferred()
        cursor = self._cursor()
        with cursor.copy(statement) as copy:
            for block in blocks:
                copy.write(block)
        return cursor.rowcount

    def _run(self, statement: str, *values: object) -> psycopg.Cursor[Row]:
        self._send_deferred()
        cursor = self._cursor()
        cursor.execute(statement, values or None)
        return cursor

    def _send_deferred(self) -> None:
        if self._deferred:
            text = ";".join(self._deferred)
            self._deferred.clear()
            self._cursor().execute(text)

    def _cursor(self) -> psycopg.Cursor[Row]:
        assert self._connection is not None
        return self._connection.cursor()

    def _check_size(self, text: str) -> None:
        if len(text) * 4 >= _MOST_BYTES and (size := len(text.encode())) >= _MOST_BYTES:
            raise SinkError(f"{self._identity}: rows of {size} bytes are more than PostgreSQL takes at once")

    # --- errors

    def is_contention(self, error: Exception) -> bool:
        """Return True if a SQL transaction met another one, and can be repeated on this connection."""
        return isinstance(error, psycopg.Error) and error.sqlstate in _CONTENTION

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        """Return tidemill's error for a driver's error; None for any other."""
        if isinstance(error, UnicodeEncodeError):
            return StatementRejected(f"PostgreSQL can't store the character {error.object[error.start]!r}")
        if not isinstance(error, psycopg.Error):
            return None
        code, reason = error.sqlstate or "", error.diag.message_primary or str(error).strip()
        said = f"{self._identity}: {doing}: {reason}"
        if code in _WAITING_HELPS or code.startswith("08"):
            return Retryable(said)
        if code.startswith(_ABOUT_A_ROW):
            detail = error.diag.message_detail
            return StatementRejected(f"{reason}: {detail}" if detail else reason)
        if code.startswith(_ABOUT_AN_OBJECT):
            return ObjectRejected(reason)
        is_lost = isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
        if not code and is_lost and not _NEVER.search(reason):
            return Retryable(said)
        return SinkError(said)
