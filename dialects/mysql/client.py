"""Sessions on the server, and translation of its errors."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal, Protocol

import pymysql
import pymysql.connections
from msgspec import Struct
from pymysql.constants import CR, ER
from pymysql.protocol import MysqlPacket

from ...codec.mysql.tls import Guarded, rejected_certificate
from ...errors import Retryable, SourceError, TidemillError
from ...events import Row
from .server import ServerOptions
from .zone import SAMPLES_QUERY, ServerZone

# The server may wait up to a day for reads: backpressure must not cut the connection. Some values of
# sql_mode change how information_schema writes strings and names; with this one, MySQL compares dates such as
# 2024-02-31, which a key may have. MySQL may hide the keys that it generates, which the binlog has.
_SESSION: Final = """
SET net_write_timeout = 86400, wait_timeout = 86400, time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'
/*!80030 , show_gipk_in_create_table_and_information_schema = ON */
"""
_IDENTIFY: Final = "SELECT {}, @@version, UNIX_TIMESTAMP(NOW(6))"
_UNAVAILABLE: Final = frozenset({
    CR.CR_CONNECTION_ERROR, CR.CR_CONN_HOST_ERROR, CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST,
    ER.CON_COUNT_ERROR, ER.SERVER_SHUTDOWN, ER.TOO_MANY_USER_CONNECTIONS, ER.NET_READ_ERROR,
    ER.NET_WRITE_INTERRUPTED,
    1927,  # MariaDB: connection was killed
})  # fmt: skip
_RETRYABLE: Final = frozenset({
    ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK, ER.QUERY_INTERRUPTED,
    ER.TABLE_DEF_CHANGED, ER.NO_SUCH_TABLE,  # the table's definition changed since the snapshot began
    ER.MAX_PREPARED_STMT_COUNT_REACHED,
    1615,  # the prepared statement was invalidated again and again by changes of its table
})  # fmt: skip


class Unavailable(Retryable):
    """This server can't be followed now; another one of the same topology may be."""


class _Packet(Protocol):
    def get_all_data(self) -> bytes: ...
    def is_load_local_packet(self) -> bool: ...


class Session(Guarded, pymysql.connections.Connection):
    """PyMySQL's connection, which sends no password in clear."""

    if TYPE_CHECKING:  # the driver's types lack these
        _current_timeout: float

        def _execute_command(self, command: int, sql: str | bytes) -> None: ...
        def _read_packet(self, packet_type: type[MysqlPacket] = ...) -> _Packet: ...
        def get_server_info(self) -> str: ...


def connect(options: ServerOptions) -> Session:
    """Open a session in UTC and utf8mb4, with autocommit. Raises Retryable or Fatal."""
    with translated(options):
        session = Session(
            host=options.host,
            port=options.port,
            user=options.user,
            password=options.password.encode(),
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=options.timeout_seconds,
            read_timeout=options.timeout_seconds,
            write_timeout=options.timeout_seconds,
            init_command=_SESSION,
            program_name="tidemill",
            ssl=options.tls.context(),
            defer_connect=True,
        )
        session.connect(options.dial())
        return session


def disconnect(session: Session) -> None:
    """Close the session in any state."""
    with contextlib.suppress(pymysql.err.Error):
        session.close()


def query(session: Session, sql: str, *values: object) -> list[Row]:
    """Run a query and return all rows of its small result. Raises pymysql's errors: use it inside
    translated()."""
    with session.cursor() as cursor:
        cursor.execute(sql, values or None)
        return list(cursor.fetchall())


def show_create_table(session: Session, name: str) -> str:
    """Return a table's definition; bytes that aren't UTF-8, of a binary default, are surrogates in it.

    `name` is quoted. Raises pymysql's errors: use it inside translated().
    """
    session.use_unicode = False
    try:
        ((_, statement, *_),) = query(session, f"SHOW CREATE TABLE {name}")
    finally:
        session.use_unicode = True
    return bytes(statement).decode(errors="surrogateescape")


def is_mariadb(session: Session) -> bool:
    """True for MariaDB, False for MySQL, by what the server said at login."""
    return "mariadb" in session.get_server_info().lower()


def version_numbers(version: str) -> tuple[int, int, int]:
    """Return the first three numbers of a version such as "10.11.6-MariaDB-log"; 0 for each that it lacks."""
    major, minor, patch, *_ = *map(int, re.findall(r"\d+", version)), 0, 0, 0
    return major, minor, patch


class Server(Struct, frozen=True):
    """The server behind a connection."""

    vendor: Literal["MariaDB", "MySQL"]
    identity: str
    """The server_id of MariaDB, the server_uuid of MySQL."""
    version: str
    epoch_seconds: float
    """The server's clock when it was asked, in Unix seconds."""
    zone: ServerZone

    @property
    def source(self) -> str:
        """The source's identity, as checkpoints carry it."""
        return f"{self.vendor.lower()} server {self.identity}"


def identify(session: Session) -> Server:
    """Ask the server for its identity and its zone. Raises pymysql's errors: use it inside translated()."""
    samples = tuple((int(moment), int(offset)) for moment, offset in query(session, SAMPLES_QUERY))
    return _identified(session, ServerZone(samples))


def source_of(session: Session) -> str:
    """Ask the server for the source's identity only. Raises as identify() does."""
    return _identified(session, ServerZone()).source


def _identified(session: Session, zone: ServerZone) -> Server:
    vendor: Literal["MariaDB", "MySQL"] = "MariaDB" if is_mariadb(session) else "MySQL"
    variable = "@@server_id" if vendor == "MariaDB" else "@@server_uuid"
    identity, version, seconds = query(session, _IDENTIFY.format(variable))[0]
    return Server(vendor, str(identity), version, float(seconds), zone)


@contextlib.contextmanager
def translated(options: ServerOptions) -> Iterator[None]:
    """Translate pymysql's errors inside the block to Retryable or SourceError."""
    try:
        yield
    except pymysql.err.Error as error:
        raise translation(options, error) from error


def translation(options: ServerOptions, error: pymysql.err.Error) -> TidemillError:
    code, message = error.args if len(error.args) == 2 else (0, str(error))
    if rejected_certificate(error):
        return SourceError(f"{options.address}: the server's certificate is not accepted: {message}")
    if isinstance(error, pymysql.err.InterfaceError) and not code:  # used after it was cut
        return Unavailable(f"{options.address}: the connection is closed")
    if code in _UNAVAILABLE:
        return Unavailable(f"{options.address}: {message}")
    if code in _RETRYABLE:
        return Retryable(f"{options.address}: {message}")
    if code == ER.ACCESS_DENIED_ERROR:
        return SourceError(f"{options.address}: {message}: check user and password")
    return SourceError(f"{options.address}: {message} (error {code})")
