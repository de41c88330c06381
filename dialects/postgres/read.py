"""The tables of a feed in PostgreSQL, read to compare and repair them.

Rows are compared as they are stored (docs/postgres-types.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

from ...events import WITH_DATE, Checkpoint, Row, Table, TableName
from ...events.per_table import PerTable
from ..address import Address
from ..checkpoint import FeedCheckpoint, explained
from ..database import OWN_SCHEMA, difference
from ..options import PostgresOptions
from ..read import Key, Range, Settled, Summing
from .home import Home
from .session import PostgresSession
from .tables import Tables
from .text import name
from .types import INTEGERS
from .values import Form, form_of, literal

_SORTED: Final = INTEGERS | WITH_DATE | {"decimal", "float", "double", "bit", "time", "binary", "varbinary"}
"""Kinds whose values sort as in the source."""
_KEYS: Final = 200
_PAGE_ROWS: Final = 5_000


class PostgresReader:
    """Reads by short statements over one session, except for a table without a key."""

    summing: Summing | None = None

    def __init__(self, address: Address, options: PostgresOptions, feed: str) -> None:
        self._schema = options.schema
        server = f"{address.query.get('host') or address.host or 'localhost'}:{address.port or 5432}"
        self.identity = "/".join(filter(None, [f"postgresql://{server}", address.database, options.schema]))
        self._session = PostgresSession(address, self.identity)
        with explained(self._session):
            self._session.connect()
        self._tables = Tables(self._session, options.schema, dates_as_text=options.dates == "text")
        self._home = Home(self._session, self._tables, options.schema or OWN_SCHEMA, feed)
        self._checkpoint = FeedCheckpoint(self.identity, feed, self._load_checkpoint, self._run)
        self._forms = PerTable(self._forms_of)

    def close(self) -> None:
        self._session.close()

    def meet(self, source: Summing | None) -> None:
        """Do nothing: rows are stored in one way."""

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        with explained(self._session):
            return self._session.rows(sql, *values)

    def _run(self, statement: str) -> int:
        with explained(self._session):
            return self._session.execute(statement)

    # --- the checkpoint

    def _load_checkpoint(self) -> str | None:
        with explained(self._session):
            return self._home.load_checkpoint() if self._home.is_there() else None

    def checkpoint(self) -> Checkpoint | None:
        return self._checkpoint.load()

    def reading(self) -> AbstractContextManager[Checkpoint]:
        return self._checkpoint.reading("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    # --- tables

    def _qualified(self, table: Table) -> str:
        return self._tables.qualified((table.schema, table.name))

    def names(self) -> list[TableName]:
        """Return the tables if each is in its own schema; else the source's schema isn't known."""
        if self._schema:
            return []
        return self._rows(
            "SELECT schemaname::text, tablename::text FROM pg_catalog.pg_tables WHERE schemaname <> %s "
            "AND schemaname <> 'information_schema' AND schemaname NOT LIKE 'pg\\_%%'",
            OWN_SCHEMA,
        )

    def _columns(self, table: Table) -> dict[str, str]:
        with explained(self._session):
            return {column.name: column.type for column in self._tables.find((table.schema, table.name))}

    def differs(self, table: Table) -> str | None:
        have = self._columns(table)
        if not have:
            return None
        return difference(
            have, {one.name: have.get(one.name, self._tables.type_of(one)) for one in table.columns}
        )

    def common(self, table: Table) -> list[str]:
        have = self._columns(table)
        return [column.name for column in table.columns if column.name in have]

    def sorts_as(self, table: Table, source: Summing | None) -> bool:  # noqa: ARG002
        kinds = _SORTED - WITH_DATE if self._tables.dates_as_text else _SORTED
        return all(table.columns[i].kind in kinds for i in table.key)

    # --- rows

    def _forms_of(self, table: Table) -> list[Form]:
        return [form_of(column, self._tables.type_of(column)) for column in table.columns]

    def stored(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        convert = [form.stored for form in self._forms[table]]
        return [
            tuple([None if v is None else to(v) for to, v in zip(convert, row, strict=True)]) for row in rows
        ]

    def source_keys(self, table: Table, keys: Sequence[Key]) -> list[Key]:
        convert = [self._forms[table][i].source for i in table.key]
        found = []
        for key in keys:
            with suppress(ValueError, ArithmeticError):  # not a value of this kind
                found.append(tuple([to(value) for to, value in zip(convert, key, strict=True)]))
        return found

    def _select(self, table: Table, rest: str) -> str:
        columns = ",".join(form.expression for form in self._forms[table])
        return f"SELECT {columns} FROM {self._qualified(table)} {rest}"

    def _read(self, table: Table, query: str) -> list[Row]:
        convert = [form.read for form in self._forms[table]]
        return [
            tuple([None if v is None else to(v) for to, v in zip(convert, row, strict=True)])
            for row in self._rows(query)
        ]

    def between(self, table: Table, within: Range, limit: int) -> Iterator[list[Row]]:
        key = ",".join(name(table.columns[i].name) for i in table.key)
        after, upto = within
        while True:
            bounds = [
                f"({key}) {sign} {self._literals(table, bound)}"
                for sign, bound in ((">", after), ("<=", upto))
                if bound is not None
            ]
            where = f"WHERE {' AND '.join(bounds)}" if bounds else ""
            rows = self._read(table, self._select(table, f"{where} ORDER BY {key} LIMIT {limit}"))
            yield rows
            if len(rows) < limit:
                return
            after = tuple([rows[-1][i] for i in table.key])

    def rows_of(self, table: Table, keys: Sequence[Key], suffix: str = "") -> list[Row]:
        key = ",".join(name(table.columns[i].name) for i in table.key)
        found: list[Row] = []
        for at in range(0, len(keys), _KEYS):
            literals = ",".join(self._literals(table, one) for one in keys[at : at + _KEYS])
            found += self._read(table, self._select(table, f"WHERE ({key}) IN ({literals}) {suffix}"))
        return found

    def _literals(self, table: Table, key: Key) -> str:
        columns = [table.columns[i] for i in table.key]
        parts = [
            f"{literal(column, value)}::{self._tables.type_of(column)}"
            for column, value in zip(columns, key, strict=True)
        ]
        return f"({','.join(parts)})"

    def every(self, table: Table) -> Iterator[list[Row]]:
        if table.key:
            yield from self.between(table, Range(None, None), _PAGE_ROWS)
            return
        self._run(f"DECLARE every NO SCROLL CURSOR WITH HOLD FOR {self._select(table, '')}")
        try:
            while rows := self._read(table, f"FETCH {_PAGE_ROWS} FROM every"):
                yield rows
        finally:
            self._run("CLOSE every")

    # --- repair

    def begin_script(self) -> list[str]:
        return ["SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET standard_conforming_strings = on"]

    def repair(self, table: Table, found: Settled) -> list[str]:
        into = self._qualified(table)
        if not table.key:
            more = found.source - found.target
            if more > 0:
                return [self._insert(table, found.key)] * more
            same = self._same(table, found.key)
            return [f"DELETE FROM {into} WHERE ctid IN (SELECT ctid FROM {into} WHERE {same} LIMIT {-more})"]
        if found.target is None:
            return [self._insert(table, found.source)]
        key = ",".join(name(table.columns[i].name) for i in table.key)
        where = f"({key}) = {self._literals(table, found.key)}"
        if found.source is None:
            return [f"DELETE FROM {into} WHERE {where}"]
        changed = [
            f"{name(column.name)}={literal(column, ours)}"
            for column, ours, theirs in zip(table.columns, found.source, found.target, strict=True)
            if ours != theirs
        ]
        return [f"UPDATE {into} SET {', '.join(changed)} WHERE {where}"]

    def _insert(self, table: Table, row: Row) -> str:
        names = ", ".join(name(column.name) for column in table.columns)
        values = ", ".join(map(literal, table.columns, row))
        return f"INSERT INTO {self._qualified(table)} ({names}) VALUES ({values})"

    def _same(self, table: Table, row: Row) -> str:
        """Return the condition that a row is exactly this one, as it is printed."""
        return " AND ".join(
            f"{name(column.name)}::text IS NOT DISTINCT FROM "
            f"{literal(column, value)}::{self._tables.type_of(column)}::text"
            for column, value in zip(table.columns, row, strict=True)
        )

    def apply(self, table: Table, found: Settled) -> bool:
        self._run("BEGIN")
        try:
            if self._locked(table, found.key) != found.target:
                return False
            if not all(self._run(statement) for statement in self.repair(table, found)):
                return False
            self._run("COMMIT")
            return True
        finally:
            self._run("ROLLBACK")

    def _locked(self, table: Table, key: Key) -> Any:
        """Return the row with this key, or the number of such rows, locked."""
        if not table.key:
            same = self._same(table, key)
            return len(self._rows(f"SELECT 1 FROM {self._qualified(table)} WHERE {same} FOR UPDATE"))
        rows = self.rows_of(table, [key], "FOR UPDATE")
        return rows[0] if rows else None
