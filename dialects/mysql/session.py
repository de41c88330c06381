"""A session on a MySQL or MariaDB server, over PyMySQL: its settings, its statements and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from socket import SHUT_RDWR
from typing import Final

import pymysql
from pymysql.constants import CLIENT

from ...codec.mysql.tls import rejected_certificate
from ...errors import Retryable, SinkError
from ...events import Row
from ..address import Address
from ..database import ObjectRejected, StatementRejected
from ..statement import quoted
from . import text as text
from . import tidb
from .client import version_numbers
from .connection import Connection, StatementOutcome, connector
from .large import LargeValues
from .modes import STRICT, WITHOUT_STRICT

UTC: Final = "+00:00"

_PATIENCE: Final = "wait_timeout=86400"
_MARIADB_PATIENCE: Final = (
    f"{_PATIENCE}, max_statement_time=0, idle_transaction_timeout=0, idle_write_transaction_timeout=0"
)
"""Settings by which a long statement, or a transaction that waits for its next rows, isn't ended."""

_WAITING_HELPS: Final = tidb.WAITING_HELPS | {
    1020,  # a row has changed since the transaction's snapshot (innodb_snapshot_isolation)
    1040,  # too many connections
    1053,  # server shutdown in progress
    1203,  # too many connections of this user
    1205,  # lock wait timeout
    1213,  # deadlock
    1226,  # a limit of this user is exceeded: connections or statements per hour
    1317,  # query killed
    1927,  # connection killed
    2002,  # can't connect through the socket
    2003,  # can't connect to the host
    2006,  # server has gone away
    2013,  # connection lost during a query
    2055,  # connection lost
    4031,  # disconnected for idleness
}
_CONTENTION: Final = tidb.CONTENTION | {1020, 1205, 1213}
"""Errors of a transaction that met another one."""
_ABOUT_A_ROW: Final = tidb.ABOUT_A_ROW | {
    1022, 1048, 1062, 1118, 1169, 1216, 1217, 1264, 1265, 1292, 1366, 1367, 1406, 1411, 1416, 1441, 1451,
    1452, 1525, 1526, 1557, 1586, 1644, 1690, 1761, 1762, 1859, 3140, 3819, 4025,
}  # fmt: skip
"""Errors of a row that doesn't fit: duplicate key, out of range, truncated, a constraint, a trigger's
signal."""
_ABOUT_AN_OBJECT: Final = {
    1050, 1051, 1054, 1059, 1060, 1061, 1063, 1064, 1067, 1068, 1069, 1070, 1071, 1072, 1073, 1074,
    1075, 1089, 1090, 1091, 1101, 1110, 1113, 1115, 1117, 1121, 1136, 1138, 1142, 1143, 1146, 1163,
    1166, 1167, 1170, 1171, 1214, 1273, 1286, 1347, 1364, 1425, 1426, 1427, 1439, 1701, 1709, 1822,
    1825, 1826, 1830, 1832, 1833, 1834, 1901, 1903, 1904, 3105, 3106, 3752, 3757, 3780, 3813, 4078,
    4161,
}  # fmt: skip
"""Errors of a table that isn't there or is another one, of a missing right to it, and of a definition that
the server can't have."""

_TRUNCATED: Final = 1265
"""Code of the warning about a value that isn't a member of an ENUM."""
_MOST_WARNINGS: Final = 0xFFFF
_TEMPORARY_BYTES: Final = 1 << 30
"""Maximum size of a temporary table of TiDB, by default 64 MiB: one has the rows of a batch to find."""
_LOADING: Final = {
    "local_infile": ("ON",),
    "binlog_format": ("ROW", "MIXED"),  # a log of statements has a warning for each load
    "wsrep_load_data_splitting": ("OFF",),  # ON: commits after every 10,000 rows
}
"""Values of settings with which rows may be loaded; of a missing setting the first one counts."""

_LOADING_FORBIDDEN: Final = {1148, 1235, 3948, 4166}
"""Errors of a server, or of a proxy before it, that doesn't take LOAD DATA LOCAL."""


class LoadRejected(StatementRejected):
    """LOAD DATA LOCAL was refused, or rows of it: INSERT may do, or names the row."""


class MySqlSession:
    """One connection at a time, with autocommit, in UTC.

    FOUND_ROWS makes the server count rows that a statement found, changed or not. Methods raise the driver's
    errors; `explain` converts them to ours. `identity` names the server in them.
    """

    def __init__(self, address: Address, identity: str) -> None:
        self._identity = identity
        self._connect = connector(
            address,
            client_flag=CLIENT.FOUND_ROWS | CLIENT.MULTI_STATEMENTS | CLIENT.LOCAL_FILES,
            charset="utf8mb4",
            autocommit=True,  # transactions are explicit; none is opened by accident
            connect_timeout=10,
        )
        self._connection: Connection | None = None
        self.large = LargeValues()
        self.packet_bytes = 0
        """The server's max_allowed_packet."""
        self.is_mariadb = False
        self.inserted = ""
        """Template of an inserted value in ON DUPLICATE KEY UPDATE."""
        self.is_tidb = False
        self._loads_lines: bool | None = None  # None until it is asked for
        self.folds_names = False

    def connect(self) -> None:
        try:
            self._connection = self._connect()
        except RuntimeError as error:  # PyMySQL lacks a package that the server's login needs
            raise SinkError(f"{self._identity}: {error}") from error
        ((version, packet_bytes, lower_case),) = self.rows(
            "SELECT VERSION(), @@max_allowed_packet, @@lower_case_table_names"
        )
        self.is_mariadb = "mariadb" in version.lower()
        has_alias = not self.is_mariadb and version_numbers(version) >= (8, 0, 19)
        self.inserted = "fresh.{}" if has_alias else "VALUES({})"
        self.is_tidb = tidb.is_tidb(version)
        if self.is_tidb and (why := tidb.too_old(version)):
            raise SinkError(f"{self._identity}: {why}")
        self._loads_lines = None
        self.packet_bytes = int(packet_bytes)
        self.folds_names = bool(lower_case)
        self.execute(f"SET time_zone='{UTC}', foreign_key_checks=0, sql_safe_updates=0")
        self.execute(f"SET {_MARIADB_PATIENCE if self.is_mariadb else _PATIENCE}")
        if self.is_tidb:  # an optimistic transaction would show a row's error at its COMMIT only
            self.execute(f"SET tidb_txn_mode='pessimistic', tidb_tmp_table_max_size={_TEMPORARY_BYTES}")
        self._set_modes(f"{STRICT},NO_BACKSLASH_ESCAPES")

    @property
    def loads_lines(self) -> bool:
        """True if the server takes LOAD DATA LOCAL as a part of a transaction, like any other statement."""
        if self._loads_lines is None:
            self._loads_lines = not self.is_tidb and self._allows_lines()
        return self._loads_lines

    def _allows_lines(self) -> bool:
        names = ",".join(map(quoted, _LOADING))
        values: dict[str, str] = dict(self.rows(f"SHOW VARIABLES WHERE Variable_name IN ({names})"))
        return all(values.get(name, wanted[0]) in wanted for name, wanted in _LOADING.items())

    def close(self) -> None:
        """Close the connection, if there is one; an open transaction is rolled back."""
        self.large.clear()
        connection, self._connection = self._connection, None
        if connection is not None and connection.open:
            connection.close()

    def interrupt(self) -> None:
        """Make a statement fail that another thread waits for. Doesn't raise."""
        connection = self._connection
        with suppress(OSError, AttributeError):  # closed meanwhile
            connection._sock.shutdown(SHUT_RDWR)  # type: ignore[union-attr]

    @property
    def connection(self) -> Connection:
        assert self._connection is not None
        return self._connection

    def cursor(self) -> pymysql.cursors.Cursor:
        return self.connection.cursor()

    def execute(self, statement: str) -> int:
        """Run a statement; return the number of rows that it found."""
        with self.cursor() as cursor:
            return cursor.execute(statement)

    def execute_all(self, statements: Sequence[str]) -> list[StatementOutcome]:
        """Run statements in one packet."""
        self.connection.send(";".join(statements), self.large)
        return self.connection.receive()

    def load(self, statement: str, lines: str) -> None:
        """Send a LOAD DATA LOCAL, as Connection.load. Raises LoadRejected."""
        try:
            self.connection.load(statement, lines)
        except pymysql.MySQLError as error:
            if error.args and error.args[0] in _LOADING_FORBIDDEN:
                raise LoadRejected(str(error.args[-1])) from error
            raise

    def rows(self, statement: str) -> list[Row]:
        """Run a query; return all its rows."""
        with self.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def define(self, statement: str, modes: str = STRICT) -> None:
        """Run a statement that contains text of the source, whose strings have backslash escapes."""
        self._set_modes(modes)
        try:
            self.execute(statement)
        except pymysql.MySQLError:
            with suppress(pymysql.MySQLError):  # the connection may be lost
                self._set_modes(f"{STRICT},NO_BACKSLASH_ESCAPES")
            raise
        self._set_modes(f"{STRICT},NO_BACKSLASH_ESCAPES")

    def execute_invalid(self, statement: str, invalid: int) -> StatementOutcome:
        """Run a statement that stores this number of invalid values of ENUM columns.

        Raises StatementRejected if the server adapts any other value.
        """
        self._set_modes(f"{WITHOUT_STRICT},NO_BACKSLASH_ESCAPES")
        try:
            self.execute(f"SET max_error_count={_MOST_WARNINGS}")
            (outcome,) = self.execute_all([statement])
            warnings = [warning for warning in self.rows("SHOW WARNINGS") if warning[0] != "Note"]
        finally:
            self._set_modes(f"{STRICT},NO_BACKSLASH_ESCAPES")
        others = [text for _, code, text in warnings if code != _TRUNCATED]
        if others or len(warnings) != invalid:
            texts = others or [text for *_, text in warnings] or ["no warning about an invalid ENUM value"]
            raise StatementRejected(texts[0])
        return outcome

    def _set_modes(self, modes: str) -> None:
        self.execute(f"SET sql_mode='{modes}'")

    def create_schema(self, schema: str) -> None:
        """Create the schema if it is missing; the right to create is needed only then."""
        if not self.rows(f"SELECT 1 FROM information_schema.schemata WHERE schema_name={quoted(schema)}"):
            self.execute(f"CREATE DATABASE IF NOT EXISTS {text.name(schema)}")

    def is_contention(self, error: Exception) -> bool:
        """Return True if a SQL transaction met another one, and can be repeated on this connection."""
        return isinstance(error, pymysql.MySQLError) and bool(error.args) and error.args[0] in _CONTENTION

    def explain(self, error: Exception, doing: str) -> StatementRejected | Retryable | SinkError | None:
        """Return tidemill's error for a driver's error; None for any other."""
        if not isinstance(error, pymysql.MySQLError):
            return None
        code = error.args[0] if error.args else 0
        if rejected_certificate(error):
            return SinkError(f"{self._identity}: the server's certificate is not accepted: {error.args[-1]}")
        said = f"{self._identity}: {doing}: {error.args[-1] if error.args else error}"
        is_later = code in _WAITING_HELPS or tidb.TRY_AGAIN in said
        if is_later or isinstance(error, pymysql.InterfaceError):
            return Retryable(said)
        if code in _ABOUT_A_ROW:
            return StatementRejected(str(error.args[-1]))
        if code in _ABOUT_AN_OBJECT:
            return ObjectRejected(str(error.args[-1]))
        return SinkError(said)
