"""Consistent views of a server's tables, and the positions of the binlog that belong to them.

`START TRANSACTION WITH CONSISTENT SNAPSHOT` takes no locks, and MariaDB reports the position of the binlog at
its start: reads in the transaction return the tables' rows at that position. MySQL doesn't report it, and its
current position isn't exact: a transaction is in the binlog before it is visible. So there a global read
lock, under which no commit is under way, is held for the two statements, or the view has two positions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final

import pymysql

from ...codec.mysql.position import Position
from ...codec.mysql.result_rows import SESSION
from ...codec.mysql.tokens import qualified as quoted
from ...dialects.mysql.client import (
    Session,
    connect,
    disconnect,
    is_mariadb,
    query,
    source_of,
    translated,
    version_numbers,
)
from ...dialects.mysql.server import ServerOptions
from ...errors import SourceError
from ..errors import TableAltered
from .definitions import is_unchanged
from .tables import SourceTable

_LOCK_SECONDS: Final = 10
BEGIN: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
_NO_BINLOG: Final = "the server writes no binlog: start it with log_bin"


def prepare(session: Session) -> None:
    """Set up a session for `begin_view`. Raises pymysql's errors: use it inside translated()."""
    settings = f"{SESSION}, lock_wait_timeout = {_LOCK_SECONDS}"
    query(session, f"{settings}, idle_transaction_timeout = 0" if is_mariadb(session) else settings)
    query(session, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    # A session that may write to the binlog keeps a table's metadata lock after it rolls back to a savepoint:
    # an ALTER of a loaded table would wait for the end of the snapshot.
    with contextlib.suppress(pymysql.err.OperationalError):
        query(session, "SET sql_log_bin = 0")


def begin(session: Session) -> Position:
    """Start a read view of the present and return the binlog's position.

    Raises SourceError, or pymysql's errors: use it inside translated().
    """
    prepare(session)
    return begin_view(session)


def begin_view(session: Session) -> Position:
    """Start a read view in a prepared session, as `begin` does."""
    if is_mariadb(session):
        query(session, BEGIN)
        status: dict[str, str] = dict(query(session, "SHOW STATUS LIKE 'binlog_snapshot%'"))
        if not status.get("Binlog_snapshot_file"):
            raise SourceError(_NO_BINLOG)
        return Position(status["Binlog_snapshot_file"], int(status["Binlog_snapshot_position"]))
    query(session, "FLUSH TABLES WITH READ LOCK")
    query(session, BEGIN)
    position = current_end(session)
    query(session, "UNLOCK TABLES")
    return position


def begin_unlocked(session: Session) -> Position:
    """Start a read view of the present without a lock, and return a position of the binlog.

    A MariaDB tells that of the view. With a MySQL the view has no changes after the position, and may lack
    the last ones before it. Raises as `begin` does.
    """
    prepare(session)
    if is_mariadb(session):
        return begin_view(session)
    query(session, BEGIN)
    return current_end(session).without_gtids


def current_end(session: Session) -> Position:
    """Return the end of the binlog, without a lock.

    Raises SourceError, or pymysql's errors: use it inside translated().
    """
    # SHOW MASTER STATUS needs a privilege more.
    return begin(session) if is_mariadb(session) else listed_end(session)


def listed_end(session: Session) -> Position:
    """Return the end of the binlog as the server lists it; a view that begins now may lack the last changes
    before it. Raises as `current_end` does."""
    is_named_binary = not is_mariadb(session) and version_numbers(session.get_server_info()) >= (8, 2)
    rows = query(session, "SHOW BINARY LOG STATUS" if is_named_binary else "SHOW MASTER STATUS")
    if not rows:
        raise SourceError(_NO_BINLOG)
    gtids = rows[0][4] if len(rows[0]) > 4 else ""  # of a MySQL
    return Position(rows[0][0], int(rows[0][1]), "".join(gtids.split()))


def hold(
    session: Session, table: SourceTable, *, has_catalog: bool = True, copies_generated: bool = True
) -> bool:
    """Lock a table's definition until the transaction ends; return False if it isn't the known one.

    `has_catalog` and `copies_generated` are those with which it was read. Raises pymysql's errors: use it
    inside translated().
    """
    with contextlib.suppress(pymysql.err.Error):  # the table was dropped, or the next statement fails, too
        query(session, f"SELECT 1 FROM {quoted(table.table.schema, table.table.name)} LIMIT 0")
    return is_unchanged(session, table, has_catalog=has_catalog, copies_generated=copies_generated)


@contextlib.contextmanager
def table_view(
    options: ServerOptions, source: str, table: SourceTable, begin: Callable[[Session], Position]
) -> Iterator[tuple[Session, Position]]:
    """Connect to the server `source`, and begin a view by `begin` or `begin_unlocked`, in which the table's
    definition stays locked; yield the session and the view's position.

    The table was read without a catalog. Raises TableAltered, SourceError for another server, and Retryable.
    """
    session = connect(options)
    try:
        with translated(options):
            if (present := source_of(session)) != source:
                raise SourceError(f"{options.address} is {present}, and the read was planned on {source}")
            position = begin(session)
            if not hold(session, table, has_catalog=False):
                raise TableAltered(table.table.full_name)
        yield session, position
    finally:
        disconnect(session)
