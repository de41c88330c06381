"""The tables of a feed on a MySQL or MariaDB server, read to compare and repair them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from math import copysign
from typing import Any, Final

from msgspec.structs import replace

from ...events import (
    FLOATS,
    OF_MARIADB,
    TEXTS,
    Row,
    Table,
    TableName,
)
from ..address import Address
from ..applied import APPLIED_TABLE, Applied
from ..database import CHECKPOINT_TABLE, OWN_SCHEMA
from ..options import MySqlOptions
from ..read import Key, Range, Settled, Summing
from ..sql_reader import FeedReader, explained
from ..syncpoints import Syncpoint, Syncpoints
from .fit import Fit
from .home import Home
from .modes import STRICT
from .mysql import MySqlOwnTables
from .repair import Repair
from .server import ServerOptions
from .server_rows import ServerRows
from .session import UTC, MySqlSession
from .tables import Tables

_SAME_EVERYWHERE: Final = ("_bin", "_general_ci", "latin1_swedish_ci")
"""Endings of collations that MariaDB and MySQL define in the same way."""


class MySqlReader(FeedReader):
    """The stored form of a row is the source's, except for a negative zero, which is text, and for documents
    of another source, which are printed in one way."""

    begin_reading = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
    begin_writing = "START TRANSACTION"

    def __init__(self, address: Address, options: MySqlOptions, feed: str) -> None:
        schema = options.schema or address.database
        server = ServerOptions(
            host="127.0.0.1" if address.host in (None, "localhost") else address.host,
            port=address.port or 3306,
        )
        super().__init__(f"mysql://{server.address}/{schema or ''}", feed)
        self._schema = schema
        self._session = MySqlSession(address, self.identity)
        with explained(self._session):
            self._session.connect()
            connection = self._session.connection
        self._fit = Fit(self._session, options.collations)
        self._tables = Tables(self._session, schema, self._fit)
        own = schema or OWN_SCHEMA
        self._home = Home(self._session, own, feed)
        self._own_tables = MySqlOwnTables(self._session, own)
        self.summing = self._reader = ServerRows(connection, server, self._qualified)
        self._prints_documents = False
        """True if the server prints documents in another way than the source."""
        self._repair = Repair(self._qualified)

    def close(self) -> None:
        self._session.close()

    def _qualified(self, table: Table) -> str:
        return self._tables.qualified((table.schema, table.name))

    def meet(self, source: Summing | None) -> None:
        self._prints_documents = source is None and not self._reader.is_mariadb

    def _rows(self, sql: str, *values: Any) -> list[Row]:
        return self._reader.rows(sql, *values)

    def _run(self, statement: str) -> int:
        with explained(self._session):
            return self._session.execute(statement)

    def _load_checkpoint(self) -> str | None:
        with explained(self._session):
            return self._home.load_checkpoint() if self._own_tables.has(CHECKPOINT_TABLE) else None

    def _applied(self) -> Sequence[Applied]:
        with explained(self._session):
            return self._home.applied.read() if self._own_tables.has(APPLIED_TABLE) else ()

    def last_syncpoint(self) -> Syncpoint | None:
        points = Syncpoints(self._own_tables, self._feed)
        with explained(self._session):
            return points.last() if points.exist() else None

    def _past(self, ts: int) -> tuple[str, str]:
        return f"SET SESSION tidb_snapshot='{ts}'", "SET SESSION tidb_snapshot=''"

    # --- tables

    def names(self) -> list[TableName]:
        """Return the tables if each is in its own schema; else the source's schema isn't known."""
        if self._schema:
            return []
        rows = self._rows(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
        )
        return [(schema, table) for schema, table in rows if schema != OWN_SCHEMA]

    def _columns(self, table: Table) -> Mapping[str, str]:
        return self._tables.columns((table.schema, table.name)) or {}

    def _types(self, table: Table) -> list[str]:
        return self._tables.types(table.columns)

    def sorts_as(self, table: Table, source: Summing | None) -> bool:
        if source is None or source.is_mariadb is None:
            return all(table.columns[i].kind not in TEXTS | OF_MARIADB for i in table.key)
        collations = self._collations(table)
        for column in (table.columns[i] for i in table.key):
            if column.kind in OF_MARIADB and source.is_mariadb != self._reader.is_mariadb:
                return False
            if column.kind in TEXTS:
                if collations.get(column.name.lower()) != column.collation or column.collation is None:
                    return False
                if source.is_mariadb != self._reader.is_mariadb and not column.collation.endswith(
                    _SAME_EVERYWHERE
                ):
                    return False
        return True

    def _collations(self, table: Table) -> dict[str, str]:
        return dict(
            self._rows(
                "SELECT LOWER(column_name), collation_name FROM information_schema.columns "
                "WHERE table_schema = %s AND table_name = %s",
                self._tables.schema_of((table.schema, table.name)),
                table.name,
            )
        )

    # --- rows

    def stored(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        change: list[tuple[int, Any]] = []
        if not self._reader.is_mariadb:  # MariaDB has no negative zero
            change += [(i, _zero) for i, one in enumerate(table.columns) if one.kind in FLOATS]
        if self._prints_documents:
            change += [(i, _printed) for i, column in enumerate(table.columns) if column.kind == "json"]
        if not change:
            return list(rows)
        made = []
        for row in rows:
            values = list(row)
            for i, convert in change:
                values[i] = convert(values[i])
            made.append(tuple(values))
        return made

    def source_keys(self, table: Table, keys: Sequence[Key]) -> list[Key]:  # noqa: ARG002
        return [tuple([-0.0 if part == "-0.0" else part for part in key]) for key in keys]

    def between(self, table: Table, within: Range, limit: int) -> Iterator[list[Row]]:
        after, upto = (None if key is None else self.source_keys(table, [key])[0] for key in within)
        for rows in self._reader.between(table, Range(after, upto), limit):
            yield self.stored(table, rows)

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        return self.stored(table, self._reader.rows_of(table, self.source_keys(table, keys)))

    def every(self, table: Table) -> Iterator[list[Row]]:
        for rows in self._reader.every(table):
            yield self.stored(table, rows)

    # --- repair

    def begin_script(self) -> list[str]:
        return [
            f"SET NAMES utf8mb4, time_zone='{UTC}', foreign_key_checks=0, "
            f"sql_mode='{STRICT},NO_BACKSLASH_ESCAPES'"
        ]

    def repair(self, table: Table, difference: Settled) -> list[str]:
        return self._repair.statements(
            self._typed(table), difference, native_json=not self._reader.is_mariadb
        )

    def _typed(self, table: Table) -> Table:
        """Return the table with the types of its columns here."""
        return replace(table, columns=tuple(map(self._fit.typed, table.columns)))

    def _present(self, table: Table, key: Key) -> object:
        if not table.key:
            where = self._repair.where(self._typed(table), key, native_json=not self._reader.is_mariadb)
            rows = self._rows(f"SELECT COUNT(*) FROM {self._qualified(table)} WHERE {where} FOR UPDATE")
            return rows[0][0]
        stored = self._reader.rows_of(table, self.source_keys(table, [key]), "FOR UPDATE")
        rows = [row for row in self.stored(table, stored) if tuple([row[i] for i in table.key]) == key]
        return rows[0] if rows else None


def _zero(value: object) -> object:
    """Return a negative zero as text: it equals another zero."""
    return "-0.0" if value is not None and value == 0 and copysign(1, value) < 0 else value


def _printed(document: str | None) -> str | None:
    return None if document is None else json.dumps(json.loads(document), sort_keys=True, ensure_ascii=False)
