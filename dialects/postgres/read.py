"""The tables of a feed in PostgreSQL, read to compare and repair them.

Rows are compared as they are stored (docs/reference/postgres.md#types)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...events import WITH_DATE, Column, Kind, Row, Table, TableName
from ...events.per_table import PerTable
from ..address import Address
from ..applied import APPLIED_TABLE, Applied
from ..database import OWN_SCHEMA
from ..options import PostgresOptions
from ..read import Key, Range
from ..sql_reader import PAGE_ROWS, SqlReader, explained
from ..syncpoints import Syncpoint, Syncpoints
from .define import PostgresOwnTables
from .home import Home
from .session import PostgresSession
from .tables import Tables
from .text import name
from .types import INTEGERS
from .values import Form, form_of, literal


class PostgresReader(SqlReader):
    """Reads by short statements over one session, except for a table without a key."""

    sorted_kinds = INTEGERS | frozenset[Kind]({
        "decimal", "float", "double", "bit", "date", "datetime", "timestamp", "time", "binary", "varbinary",
    })  # fmt: skip
    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    folds_names = False
    row_id = "ctid"
    lock = "FOR UPDATE"
    values_word = ""

    def __init__(self, address: Address, options: PostgresOptions, feed: str) -> None:
        server = f"{address.query.get('host') or address.host or 'localhost'}:{address.port or 5432}"
        identity = "/".join(filter(None, [f"postgresql://{server}", address.database, options.schema]))
        super().__init__(identity, feed)
        self._schema = options.schema
        self._session = PostgresSession(address, self.identity)
        with explained(self._session):
            self._session.connect()
        self._tables = Tables(self._session, options.schema, dates_as_text=options.dates == "text")
        own = options.schema or OWN_SCHEMA
        self._home = Home(self._session, self._tables, own, feed)
        self._own_tables = PostgresOwnTables(self._session, own)
        self._forms = PerTable(self._forms_of)

    def close(self) -> None:
        self._session.close()

    def begin_script(self) -> list[str]:
        return ["SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET standard_conforming_strings = on"]

    def _rows(self, sql: str, *values: Any) -> list[Row]:
        with explained(self._session):
            return self._session.rows(sql, *values)

    def _run(self, statement: str) -> int:
        with explained(self._session):
            return self._session.execute(statement)

    def _pages(self, query: str) -> Iterator[list[Row]]:
        self._run(f"DECLARE every NO SCROLL CURSOR WITH HOLD FOR {query}")
        try:
            while rows := self._rows(f"FETCH {PAGE_ROWS} FROM every"):
                yield rows
        finally:
            self._run("CLOSE every")

    def _load_checkpoint(self) -> str | None:
        with explained(self._session):
            return self._home.load_checkpoint() if self._home.is_there() else None

    def _applied(self) -> Sequence[Applied]:
        with explained(self._session):
            return self._home.applied.read() if self._home.is_there(APPLIED_TABLE) else ()

    def last_syncpoint(self) -> Syncpoint | None:
        points = Syncpoints(self._own_tables, self._feed)
        with explained(self._session):
            return points.last() if points.exist() else None

    # --- tables

    def _qualified(self, table: Table) -> str:
        return self._tables.qualified((table.schema, table.name))

    def _name(self, identifier: str) -> str:
        return name(identifier)

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

    def _types(self, table: Table) -> list[str]:
        return list(map(self._tables.type_of, table.columns))

    def _is_sorted(self, column: Column) -> bool:
        is_text = column.kind in WITH_DATE and self._tables.dates_as_text
        return super()._is_sorted(column) and not is_text

    # --- values

    def _forms_of(self, table: Table) -> list[Form]:
        return [form_of(column, self._tables.type_of(column)) for column in table.columns]

    def stored(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        return _mapped([form.stored for form in self._forms[table]], rows)

    def _converted(self, table: Table, rows: list[Any]) -> list[Row]:
        return _mapped([form.read for form in self._forms[table]], rows)

    def _value(self, column: Column) -> str:
        return form_of(column, self._tables.type_of(column)).expression

    def _source_form(self, column: Column) -> Callable[[object], object]:
        return form_of(column, self._tables.type_of(column)).source

    def _literal(self, column: Column, value: object) -> str:
        return literal(column, value)

    def _typed(self, column: Column, value: object) -> str:
        return f"{literal(column, value)}::{self._tables.type_of(column)}"

    def _equals(self, column: Column, value: object) -> str:
        """Return the condition that a column is printed as this value is."""
        return f"{name(column.name)}::text IS NOT DISTINCT FROM {self._typed(column, value)}::text"

    def _bound(self, table: Table, key: Key) -> tuple[str, Sequence[object]]:
        return f"({','.join(map(self._typed, [table.columns[i] for i in table.key], key))})", ()

    def _of_key(self, table: Table, key: Key) -> str:
        return f"({self._key(table)}) = {self._bound(table, key)[0]}"

    def every(self, table: Table) -> Iterator[list[Row]]:
        """Yield a table with a key by short statements: a cursor would first copy all of it."""
        return self.between(table, Range(None, None), PAGE_ROWS) if table.key else super().every(table)


def _mapped(convert: Sequence[Callable[[object], object]], rows: Sequence[Sequence[object]]) -> list[Row]:
    """Return rows with each value that isn't NULL converted."""
    return [tuple([None if v is None else to(v) for to, v in zip(convert, row, strict=True)]) for row in rows]
