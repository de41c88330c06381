"""A consistent view of the followed tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from ...codec.mysql.collation import Charset
from ...codec.mysql.entry import Definitions
from ...codec.mysql.position import Position
from ...dialects.mysql.client import Server, Session, connect, disconnect, identify, query, translated
from ...dialects.mysql.result import Result
from ...errors import Retryable, SourceError
from ...events import OrderedKey, Table
from ...snapshot.mysql.definitions import read_tables
from ...snapshot.mysql.estimate import rows_up_to
from ...snapshot.mysql.tables import Follows, FoundTable, SourceTable, find_tables
from ...snapshot.mysql.view import begin, hold
from .failover import check_reached, gtids_at
from .options import MysqlOptions
from .prepared import prepared_names


class Snapshot:
    """The tables as of `position`. After an error, its connection can't be used any more."""

    def __init__(self, options: MysqlOptions, follows: Follows, known: Iterable[SourceTable] = ()) -> None:
        """`known` are definitions that tables had a while ago, which aren't read again here; hold() and
        is_unchanged() tell if they still have them. Raises Retryable or SourceError."""
        self._options = options
        self._session = connect(options)
        try:
            with translated(options):
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
            listed = self._find(follows)
            missing = [one for one in listed if one not in tables]
            copies_generated = self._options.copies_generated
            for one, table in read_tables(self._session, missing, copies_generated=copies_generated):
                if isinstance(table, SourceError):
                    raise table
                tables[one] = table
            self.definitions = read_databases(self._session)
            position = begin(self._session)
            # Asked after the position, the server's clock isn't before the creation of the position's file.
            self.server: Server = identify(self._session)
            self.position = self._located(position)
            if (self._find(follows), read_databases(self._session)) == (listed, self.definitions):
                self.tables = [tables[one] for one in listed if one in tables]
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
            is_held = hold(self._session, source, copies_generated=self._options.copies_generated)
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

    def run(self, table: Table, query: str) -> Result:
        """Return the rows of a query of all columns of `table`, on the snapshot's tables."""
        return Result(self._session, self._options, table, query)


_DATABASES: Final = """
SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA
ORDER BY SCHEMA_NAME
"""
_COLLATIONS: Final = """
SELECT CHARACTER_SET_NAME, DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS
"""


def read_databases(session: Session) -> Definitions:
    """Return the defaults of the server's databases, without tables."""
    return Definitions(
        databases=tuple(
            (name, Charset(charset, collation)) for name, charset, collation in query(session, _DATABASES)
        ),
        collations=dict(query(session, _COLLATIONS)),
        folds_names=query(session, "SELECT @@lower_case_table_names")[0][0] == 1,
    )
