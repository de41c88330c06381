"""Many changes of a MySQL table without a key by a few statements, which read the table twice.

A row without a key has no identity: of equal rows, any one is as good as another. So changes that follow each
other have the same result as their sum: rows that must be there and go, and rows that come. The rows to go
are put into a temporary table and counted in the table, by every byte of every column; then all rows that
equal them are deleted, and those of them that stay are inserted again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import pymysql

from ...events import Row, Table
from ..database import MISSING, StatementRejected
from ..groups import ChangeGroup
from ..net import net_of
from ..statement import Statement, joined, quoted
from . import text as text
from .enum import InvalidMembers
from .session import MySqlSession

FEWEST: Final = 4
"""Least number of rows to find for which this is faster than one statement each."""
_MOST_SPARE: Final = 100
"""If more equal rows than this stay, the others are deleted by a statement of their own."""
_NOT_POSSIBLE: Final = {1044, 1142, 1117, 1118}
"""Errors of CREATE TEMPORARY TABLE: no right to create one; too many columns, or too large a row."""


class KeylessTable:
    """One table without a key, at one version of its schema."""

    def __init__(
        self,
        session: MySqlSession,
        send: Callable[[list[Statement]], None],
        table: Table,
        schema: str,
        home: str,
    ) -> None:
        """`send` runs statements, and raises StatementRejected for one of another number of rows. `schema` is
        the table's schema in the target, `home` the quoted name of the temporary table's."""
        self._session = session
        self._send = send
        self._columns = _columns(session, schema, table)
        self._names = [text.name(column.name) for column in table.columns]
        self._table = f"{text.name(schema)}.{text.name(table.name)}"
        self._triggers = (
            "SELECT 1 FROM information_schema.triggers WHERE "
            f"event_object_schema={quoted(schema)} AND event_object_table={quoted(table.name)} LIMIT 1"
        )
        self._values = text.compile_values(table)
        self._invalid = InvalidMembers(table)
        self._where = text.compile_where(table, native_json=not session.is_mariadb)
        self._rows = f"{home}.tidemill_rows"
        taken = {column.name.lower() for column in table.columns}
        self._number, self._hash = (_free(name, taken) for name in ("tidemill_number", "tidemill_hash"))
        same = " AND ".join(text.same_columns(column, self._table, "r") for column in table.columns)
        self._same_rows = (
            f"{self._table} STRAIGHT_JOIN {self._rows} AS r "
            f"ON r.{self._hash}={text.hash_of(table.columns, self._table)} AND {same}"
        )
        self._set_hash = f"UPDATE {self._rows} AS r SET r.{self._hash}={text.hash_of(table.columns, 'r')}"

    def apply(self, groups: Sequence[ChangeGroup], max_chars: int) -> bool:
        """Apply changes; return False, having done nothing, if each must be a statement.

        Triggers of the target fire once for each change. Raises StatementRejected if a row is missing.
        """
        if self._session.rows(self._triggers) or not self._create():
            return False
        gone, come = net_of(groups)
        if gone:
            come += self._delete(gone, max_chars)
        self._insert(list(come.elements()), max_chars)
        self._session.execute(f"DROP TEMPORARY TABLE {self._rows}")
        return True

    def _delete(self, gone: Counter[Row], max_chars: int) -> Counter[Row]:
        """Delete these rows, and others that equal them; return those others."""
        rows, wanted = list(gone), list(gone.values())
        self._fill(rows, max_chars)
        count = f"SELECT r.{self._number},COUNT(*) FROM {self._same_rows} GROUP BY 1 FOR UPDATE"
        counts: dict[int, int] = dict(self._session.rows(count))
        spare = [counts.get(number, 0) - count for number, count in enumerate(wanted)]
        if min(spare) < 0:
            raise StatementRejected(MISSING)
        alone = [number for number, count in enumerate(spare) if count > _MOST_SPARE]
        self._delete_all(alone, sum(counts.values()) - sum(counts[number] for number in alone))
        for number, where in zip(alone, self._where([rows[number] for number in alone]), strict=True):
            delete = f"DELETE FROM {self._table} WHERE {where} LIMIT {wanted[number]}"
            self._send([Statement(delete, wanted[number])])
            spare[number] = 0
        return Counter(dict(zip(rows, spare, strict=True)))

    def _create(self) -> bool:
        self._session.execute(f"DROP TEMPORARY TABLE IF EXISTS {self._rows}")
        parts = [f"{self._number} INT DEFAULT 0", f"{self._hash} INT UNSIGNED", *self._columns]
        try:
            self._session.define(
                f"CREATE TEMPORARY TABLE {self._rows} ({', '.join(parts)}, KEY ({self._hash})) ENGINE=InnoDB"
            )
        except pymysql.MySQLError as error:
            if error.args[0] in _NOT_POSSIBLE:
                return False
            raise
        return True

    def _fill(self, rows: Sequence[Row], max_chars: int) -> None:
        values = [f"({number},{value[1:]}" for number, value in enumerate(self._values(rows))]
        start = f"INSERT INTO {self._rows} ({','.join([self._number, *self._names])}) VALUES "
        for statement in joined(start, ",", values, "", max_chars, self._invalid.count(rows)):
            self._send([statement])
        self._session.execute(self._set_hash)

    def _delete_all(self, but: Sequence[int], count: int) -> None:
        others = f" WHERE r.{self._number} NOT IN ({','.join(map(str, but))})" if but else ""
        self._send([Statement(f"DELETE {self._table} FROM {self._same_rows}{others}", count)])

    def _insert(self, rows: Sequence[Row], max_chars: int) -> None:
        start = f"INSERT INTO {self._table} ({','.join(self._names)}) VALUES "
        invalid = self._invalid.count(rows)
        for statement in joined(start, ",", self._values(rows), "", max_chars, invalid):
            self._send([statement])


def _columns(session: MySqlSession, schema: str, table: Table) -> list[str]:
    """Return definitions of a table's columns as they are in the target, but without what is checked or
    computed there.

    Neither CREATE TABLE ... SELECT, which TiDB lacks, nor LIKE, which takes over indexes and generated
    columns, gives that.
    """
    rows = session.rows(
        "SELECT LOWER(column_name), column_type, character_set_name, collation_name "
        "FROM information_schema.columns "
        f"WHERE table_schema={quoted(schema)} AND table_name={quoted(table.name)}"
    )
    types = {
        column: f"{type_} CHARACTER SET {charset} COLLATE {collation}" if collation else type_
        for column, type_, charset, collation in rows
    }
    names = [column.name for column in table.columns]
    return [f"{text.name(name)} {types[name.lower()]} NULL" for name in names]


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
