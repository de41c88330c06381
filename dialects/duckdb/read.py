"""The tables of a feed in DuckDB, read to compare and repair them, while no process has the file open.

DuckDB itself converts both sides to their stored form: it is given a source's rows as the sink writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from ...errors import Retryable, SinkError
from ...events import WITH_DATE, Column, Kind, Row, Table, TableName
from ...events.per_table import PerTable
from ..address import Address
from ..database import CHECKPOINT_TABLE
from ..options import DuckDbOptions
from ..sql_reader import SqlReader, fetched
from .duckdb import file_of
from .session import STAGED
from .tables import quoted
from .types import Encoder, declared_type, is_text

_HERE: Final = "database_name=current_catalog()"
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 # wall-clock time, as DATETIME is


class DuckDbReader(SqlReader):
    """Opens the file for reading only, until a repair is applied."""

    sorted_kinds = frozenset[Kind]({
        "tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year", "binary", "varbinary", "decimal",
        "date", "datetime", "timestamp", "time",
    })  # fmt: skip

    def __init__(self, file: Path, options: DuckDbOptions, feed: str) -> None:
        super().__init__(f"duckdb:{file}", feed)
        self._file = file
        self._schema = options.schema
        self._texts = options.dates == "text"
        self._encoders = PerTable(lambda table: Encoder(table.columns, dates_as_text=self._texts))
        self._connection = self._open(read_only=True)
        self._writes = False
        self._catalog = self._rows("SELECT current_catalog()")[0][0]

    def _open(self, *, read_only: bool) -> duckdb.DuckDBPyConnection:
        try:
            return duckdb.connect(str(self._file), read_only=read_only)
        except (duckdb.IOException, duckdb.ConnectionException) as error:
            raise Retryable(
                f"{self.identity}: {error}: stop the feed and whatever else has the file open"
            ) from error

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise SinkError(f"{self.identity}: {error}") from error

    def _rows(self, sql: str, *values: Any) -> list[Row]:
        with self._explained():
            return self._connection.execute(sql, values).fetchall()

    def _run(self, statement: str) -> int:
        counts = self._rows(statement)
        return counts[0][0] if counts else 0

    def _pages(self, query: str) -> Iterator[list[Row]]:
        with self._explained():
            yield from fetched(self._connection.execute(query))

    def _begin_writing(self) -> None:
        if not self._writes:
            self._connection.close()
            self._connection, self._writes = self._open(read_only=False), True
        super()._begin_writing()

    def _load_checkpoint(self) -> str | None:
        if not self._rows(f"SELECT 1 FROM duckdb_tables() WHERE {_HERE} AND table_name=?", CHECKPOINT_TABLE):
            return None
        rows = self._rows(f"SELECT checkpoint FROM {CHECKPOINT_TABLE} WHERE feed=?", self._feed)
        return rows[0][0] if rows else None

    # --- tables

    def _qualified(self, table: Table) -> str:
        return ".".join(map(quoted, (self._catalog, self._schema or table.schema, table.name)))

    def _name(self, identifier: str) -> str:
        return quoted(identifier)

    def names(self) -> list[TableName]:
        """Return the tables if each is in its own schema; else the source's schema isn't known."""
        if self._schema:
            return []
        return self._rows(
            f"SELECT schema_name, table_name FROM duckdb_tables() WHERE {_HERE} AND schema_name <> 'main'"
        )

    def _columns(self, table: Table) -> dict[str, str]:
        return dict(
            self._rows(
                "SELECT column_name, data_type FROM duckdb_columns() "
                f"WHERE {_HERE} AND lower(schema_name)=lower(?) AND lower(table_name)=lower(?) "
                "ORDER BY column_index",
                self._schema or table.schema,
                table.name,
            )
        )

    def _type(self, column: Column) -> str:
        return declared_type(column, dates_as_text=self._texts)

    def _types(self, table: Table) -> list[str]:
        return list(map(self._type, table.columns))

    def _is_sorted(self, column: Column) -> bool:
        return super()._is_sorted(column) and not is_text(column, dates_as_text=self._texts)

    # --- values

    def _value(self, column: Column) -> str:
        name = quoted(column.name)
        match self._type(column):
            case "FLOAT" | "DOUBLE":  # Python finds -0.0 equal to 0.0
                return f"CAST({name} AS VARCHAR)"
            case "DATE" | "TIMESTAMP" | "TIMESTAMP WITH TIME ZONE" | "INTERVAL":
                return f"epoch_us({name})"
            case _:
                return name

    def _mark(self, column: Column) -> str:
        match kind := self._type(column):
            case "DATE":
                return "CAST(make_timestamp(CAST(? AS BIGINT)) AS DATE)"
            case "TIMESTAMP":
                return "make_timestamp(CAST(? AS BIGINT))"
            case "TIMESTAMP WITH TIME ZONE":
                return "make_timestamptz(CAST(? AS BIGINT))"
            case "INTERVAL":
                return "to_microseconds(CAST(? AS BIGINT))"
            case _:
                return f"CAST(? AS {kind})"

    def stored(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        if not rows:
            return []
        width = range(len(table.columns))
        arrays = self._encoders[table].arrays(rows, width)
        data = pa.Table.from_arrays(arrays, [f"c{i}" for i in width])
        casts = ",".join(
            f"CAST(c{i} AS {self._type(column)}) AS {quoted(column.name)}"
            for i, column in enumerate(table.columns)
        )
        self._connection.register(STAGED, data)
        try:
            return self._rows(
                f"SELECT {','.join(map(self._value, table.columns))} FROM (SELECT {casts} FROM {STAGED})"
            )
        finally:
            self._connection.unregister(STAGED)

    def _source_form(self, column: Column) -> Callable[[Any], Any]:
        if is_text(column, dates_as_text=self._texts):
            return _from_text(column)
        match self._type(column):
            case "FLOAT" | "DOUBLE":
                return float
            case "DATE":
                return lambda us: (_EPOCH + timedelta(microseconds=us)).date()
            case "TIMESTAMP" | "TIMESTAMP WITH TIME ZONE":
                return lambda us: _EPOCH + timedelta(microseconds=us)
            case "INTERVAL":
                return lambda us: timedelta(microseconds=us)
            case _:
                return lambda value: value

    def _equals(self, column: Column, value: object) -> str:
        return f"{self._value(column)} IS NOT DISTINCT FROM {_literal(value)}"

    def _literal(self, column: Column, value: object) -> str:
        return self._mark(column).replace("?", _literal(value))


def opened(address: Address, options: DuckDbOptions, feed: str) -> DuckDbReader | None:
    """Return a reader of the URL's file; None if there is no file."""
    file = file_of(address)
    return DuckDbReader(file, options, feed) if file.exists() else None


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"from_hex('{value.hex()}')"
    if isinstance(value, str):
        if value.isprintable():
            return "'" + value.replace("'", "''") + "'"
        return f"decode(from_hex('{value.encode().hex()}'))"
    return str(value)


def _from_text(column: Column) -> Callable[[str], object]:
    """Return the function from the text of a date to the source's value; a text that is no date stays."""
    if column.kind not in WITH_DATE:
        return lambda text: text

    def convert(text: str) -> object:
        try:
            return date.fromisoformat(text) if column.kind == "date" else datetime.fromisoformat(text)
        except ValueError:
            return text

    return convert
