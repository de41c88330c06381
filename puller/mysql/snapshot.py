"""A consistent view of the followed tables.

`START TRANSACTION WITH CONSISTENT SNAPSHOT` takes no locks, and MariaDB reports the position of the binlog at
its start: reads in the transaction return the tables' rows at that position. MySQL doesn't report it, and its
current position isn't exact: a transaction is in the binlog before it is visible. So there a global read
lock, under which no commit is under way, is held for the two statements.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Final

import pymysql
from msgspec.structs import replace

from ...codec.mysql.result_rows import SESSION
from ...codec.mysql.tokens import qualified as quoted
from ...dialects.mysql.client import (
    Server,
    Session,
    connect,
    disconnect,
    identify,
    is_mariadb,
    query,
    translated,
    version_numbers,
)
from ...dialects.mysql.key_range import chunk_query
from ...dialects.mysql.result import Result
from ...errors import Retryable, SourceError
from ...events import OrderedKey, Table
from .databases import read_databases
from .definitions import read_tables
from .failover import check_reached, gtids_at
from .load_progress import rows_up_to
from .options import MysqlOptions
from .position import Position
from .prepared import prepared_names
from .tables import Follows, FoundTable, SourceTable, find_tables, is_unchanged

_LOCK_SECONDS: Final = 10
BEGIN: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
_NO_BINLOG: Final = "the server writes no binlog: start it with log_bin"


class Snapshot:
    """The tables as of `position`. After an error, its connection can't be used any more."""

    def __init__(self, options: MysqlOptions, follows: Follows, known: Iterable[SourceTable] = ()) -> None:
        """`known` are definitions that tables had a while ago, which aren't read again here; hold() and
        is_unchanged() tell if they still have them. Raises Retryable or SourceError."""
        self._options = options
        self._session = connect(options)
        try:
            with translated(options):
                self.server: Server = identify(self._session)
                self._begin(follows, known)
        except BaseException:
            self.close()
            raise

    def _located(self, position: Position) -> Position:
        """Return the position with its GTIDs and its server, if the server has GTIDs."""
        gtid = gtids_at(self._session, position)
        return replace(position, gtid=gtid, server=self.server.identity) if gtid else position

    def close(self) -> None:
        disconnect(self._session)

    def _begin(self, follows: Follows, known: Iterable[SourceTable]) -> None:
        """Read the tables' definitions, and begin.

        They are read before the transaction, and hold() compares: the server refuses to read an old view of a
        table that was rebuilt since, but not of one that was altered instantly. Repeats if a table or
        database came or went meanwhile.
        """
        tables = {FoundTable(one.table.schema, one.table.name): one for one in known}
        while True:
            found = self._find(follows)
            missing = [one for one in found if one not in tables]
            copies_generated = self._options.copies_generated
            for one, table in read_tables(self._session, missing, copies_generated=copies_generated):
                if isinstance(table, SourceError):
                    raise table
                tables[one] = table
            self.definitions = read_databases(self._session)
            self.position = self._located(begin(self._session))
            if (self._find(follows), read_databases(self._session)) == (found, self.definitions):
                self.tables = [tables[one] for one in found if one in tables]
                return
            query(self._session, "ROLLBACK")

    def _find(self, follows: Follows) -> list[FoundTable]:
        return [one for one in find_tables(self._session) if follows(one.schema, one.name)]

    def check_reached(self, position: Position) -> None:
        """Check that the server has what is before `position`, which may be another server's.

        Raises Unavailable if it lags behind, and CheckpointError if it isn't known to be a replica.
        """
        if position.gtid and (position.by_gtid or position.server != self.server.identity):
            with translated(self._options):
                check_reached(self._session, self._options, position)

    def has_prepared(self) -> bool:
        """Return True if an XA transaction is prepared."""
        with translated(self._options):
            return bool(prepared_names(self._session))

    def hold(self, source: SourceTable) -> None:
        """Prevent `source` from being altered. Raises Retryable if it was altered already."""
        table = source.table
        with translated(self._options):
            query(self._session, "SAVEPOINT loading")
            query(self._session, f"SELECT 1 FROM {quoted(table.schema, table.name)} LIMIT 0")
            is_held = is_unchanged(self._session, source, copies_generated=self._options.copies_generated)
        if not is_held:
            raise Retryable(f"{table.full_name} was altered since the snapshot: taking a new one", wait=0.0)

    def let_go(self) -> None:
        """Release the table that was held last."""
        with translated(self._options):
            query(self._session, "ROLLBACK TO SAVEPOINT loading")

    def rows_up_to(self, source: SourceTable, key: OrderedKey) -> int:
        """Return about the number of a table's rows up to a key."""
        with translated(self._options):
            return rows_up_to(self._session, source, key)

    def select(self, table: Table, after: OrderedKey | None, limit: int | None) -> Result:
        """Select all rows of `table`, or with `limit` at most that many, ordered by key after the key
        `after`."""
        return self.run(table, chunk_query(table, after, limit))

    def run(self, table: Table, query: str) -> Result:
        """Return the rows of a query of all columns of `table`, on the snapshot's tables."""
        return Result(self._session, self._options, table, query)


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
        status = dict(query(session, "SHOW STATUS LIKE 'binlog_snapshot%'"))
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
    found = query(session, "SHOW BINARY LOG STATUS" if is_named_binary else "SHOW MASTER STATUS")
    if not found:
        raise SourceError(_NO_BINLOG)
    gtids = found[0][4] if len(found[0]) > 4 else ""  # of a MySQL
    return Position(found[0][0], int(found[0][1]), "".join(gtids.split()))
