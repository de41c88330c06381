"""The tables of a feed in DuckDB, read to compare and repair them, while no process has the file open.

DuckDB itself converts both sides to their stored form: it is given a source's rows as the sink writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from ...errors import Retryable, SinkError
from ...events import WITH_DATE, Checkpoint, Column, Row, Table, TableName
from ...events.per_table import PerTable
from ..checkpoint import FeedCheckpoint
from ..database import CHECKPOINT_TABLE, difference
from ..options import DuckDbOptions
from ..read import Key, Range, Settled, Summing
from .session import STAGED
from .tables import quoted
from .types import Encoder, declared_type, is_text

_SORTED: Final = frozenset({
    "tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year", "binary", "varbinary", "decimal",
    "date", "datetime", "timestamp", "time",
})  # fmt: skip
"""Kinds whose stored values sort as in the source."""
_PAGE_ROWS: Final = 5_000
_KEYS: Final = 200
_HERE: Final = "database_name=current_catalog()"
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 # wall-clock time, as DATETIME is


class DuckDbReader:
    """Opens the file for reading only, until a repair is applied."""

    summing: Summing | None = None

    def __init__(self, file: Path, options: DuckDbOptions, feed: str) -> None:
        self._file = file
        self._schema = options.schema
        self._texts = options.dates == "text"
        self._feed = feed
        self.identity = f"duckdb:{file}"
        self._checkpoint = FeedCheckpoint(self.identity, feed, self._load_checkpoint, self._rows)
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

    def meet(self, source: Summing | None) -> None:
        """Do nothing: rows are stored in one way."""

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except duckdb.Error as error:
            raise SinkError(f"{self.identity}: {error}") from error

    # --- the checkpoint

    def _load_checkpoint(self) -> str | None:
        if not self._rows(f"SELECT 1 FROM duckdb_tables() WHERE {_HERE} AND table_name=?", CHECKPOINT_TABLE):
            return None
        rows = self._rows(f"SELECT checkpoint FROM {CHECKPOINT_TABLE} WHERE feed=?", self._feed)
        return rows[0][0] if rows else None

    def checkpoint(self) -> Checkpoint | None:
        return self._checkpoint.load()

    def reading(self) -> AbstractContextManager[Checkpoint]:
        return self._checkpoint.reading("BEGIN")

    # --- tables

    def _qualified(self, table: Table) -> str:
        return ".".join(map(quoted, (self._catalog, self._schema or table.schema, table.name)))

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

    def differs(self, table: Table) -> str | None:
        have = self._columns(table)
        if not have:
            return None
        return difference(have, {one.name: have.get(one.name, self._type(one)) for one in table.columns})

    def common(self, table: Table) -> list[str]:
        have = {name.lower() for name in self._columns(table)}
        return [column.name for column in table.columns if column.name.lower() in have]

    def sorts_as(self, table: Table, source: Summing | None) -> bool:  # noqa: ARG002
        columns = [table.columns[i] for i in table.key]
        return all(one.kind in _SORTED and not is_text(one, dates_as_text=self._texts) for one in columns)

    # --- rows

    def _values(self, table: Table) -> str:
        return ",".join(self._value(column) for column in table.columns)

    def _value(self, column: Column) -> str:
        """Return an expression of a column from which each value can be told."""
        name = quoted(column.name)
        match self._type(column):
            case "FLOAT" | "DOUBLE":  # Python finds -0.0 equal to 0.0
                return f"CAST({name} AS VARCHAR)"
            case "DATE" | "TIMESTAMP" | "TIMESTAMP WITH TIME ZONE" | "INTERVAL":
                return f"epoch_us({name})"
            case _:
                return name

    def _mark(self, column: Column) -> str:
        """Return the expression of a stored value's parameter."""
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
            return self._rows(f"SELECT {self._values(table)} FROM (SELECT {casts} FROM {STAGED})")
        finally:
            self._connection.unregister(STAGED)

    def source_keys(self, table: Table, keys: Sequence[Key]) -> list[Key]:
        convert = [self._source_form(table.columns[i]) for i in table.key]
        found = []
        for key in keys:
            with suppress(ValueError, OverflowError):  # not a value of this kind
                found.append(tuple([to(value) for to, value in zip(convert, key, strict=True)]))
        return found

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

    def between(self, table: Table, within: Range, limit: int) -> Iterator[list[Row]]:
        key = ",".join(quoted(table.columns[i].name) for i in table.key)
        marks = f"({','.join(self._mark(table.columns[i]) for i in table.key)})"
        after, upto = within
        while True:
            conditions, values = ["TRUE"], list[Any]()
            for sign, bound in (">", after), ("<=", upto):
                if bound is not None:
                    conditions.append(f"({key}) {sign} {marks}")
                    values += bound
            rows = self._rows(
                f"SELECT {self._values(table)} FROM {self._qualified(table)} "
                f"WHERE {' AND '.join(conditions)} ORDER BY {key} LIMIT {limit}",
                *values,
            )
            yield rows
            if len(rows) < limit:
                return
            after = tuple([rows[-1][i] for i in table.key])

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        key = ",".join(quoted(table.columns[i].name) for i in table.key)
        marks = f"({','.join(self._mark(table.columns[i]) for i in table.key)})"
        found: list[Row] = []
        for at in range(0, len(keys), _KEYS):
            some = keys[at : at + _KEYS]
            found += self._rows(
                f"SELECT {self._values(table)} FROM {self._qualified(table)} "
                f"WHERE ({key}) IN (VALUES {','.join([marks] * len(some))})",
                *(value for one in some for value in one),
            )
        return found

    def every(self, table: Table) -> Iterator[list[Row]]:
        rows = self._connection.execute(f"SELECT {self._values(table)} FROM {self._qualified(table)}")
        while page := rows.fetchmany(_PAGE_ROWS):
            yield page

    # --- repair

    def begin_script(self) -> list[str]:
        return []

    def repair(self, table: Table, found: Settled) -> list[str]:
        name = self._qualified(table)
        if not table.key:
            more = found.source - found.target
            if more > 0:
                return [self._insert(table, found.key)] * more
            same = self._same(table, range(len(table.columns)), found.key)
            return [
                f"DELETE FROM {name} WHERE rowid IN (SELECT rowid FROM {name} WHERE {same} LIMIT {-more})"
            ]
        if found.target is None:
            return [self._insert(table, found.source)]
        where = self._same(table, table.key, found.key)
        if found.source is None:
            return [f"DELETE FROM {name} WHERE {where}"]
        changed = ", ".join(
            f"{quoted(column.name)}={self._literal(column, ours)}"
            for column, ours, theirs in zip(table.columns, found.source, found.target, strict=True)
            if ours != theirs
        )
        return [f"UPDATE {name} SET {changed} WHERE {where}"]

    def apply(self, table: Table, found: Settled) -> bool:
        if not self._writes:
            self._connection.close()
            self._connection, self._writes = self._open(read_only=False), True
        self._rows("BEGIN")
        done = False
        try:
            if self._present(table, found.key) != found.target:
                return False
            for statement in self.repair(table, found):
                self._rows(statement)
            self._rows("COMMIT")
            done = True
            return True
        finally:
            if not done:
                self._rows("ROLLBACK")

    def _present(self, table: Table, key: Key) -> Any:
        """Return the row with this key, or the number of such rows."""
        if not table.key:
            same = self._same(table, range(len(table.columns)), key)
            return self._rows(f"SELECT COUNT(*) FROM {self._qualified(table)} WHERE {same}")[0][0]
        rows = self.rows_of(table, [key])
        return rows[0] if rows else None

    def _same(self, table: Table, index: Sequence[int], values: Sequence[Any]) -> str:
        columns = [table.columns[i] for i in index]
        return " AND ".join(
            f"{self._value(column)} IS NOT DISTINCT FROM {_literal(value)}"
            for column, value in zip(columns, values, strict=True)
        )

    def _insert(self, table: Table, row: Row) -> str:
        names = ", ".join(quoted(column.name) for column in table.columns)
        values = ", ".join(map(self._literal, table.columns, row))
        return f"INSERT INTO {self._qualified(table)} ({names}) VALUES ({values})"

    def _literal(self, column: Column, value: Any) -> str:
        """Return a stored value as SQL text of its column's type."""
        return self._mark(column).replace("?", _literal(value))


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"from_hex('{value.hex()}')"
    if isinstance(value, str):
        if value.isprintable():
            return "'" + value.replace("'", "''") + "'"
        return f"decode(from_hex('{value.encode().hex()}'))"
    return str(value)


def _from_text(column: Column) -> Callable[[str], Any]:
    """Return the function from the text of a date to the source's value; a text that is no date stays."""
    if column.kind not in WITH_DATE:
        return lambda text: text

    def convert(text: str) -> Any:
        try:
            return date.fromisoformat(text) if column.kind == "date" else datetime.fromisoformat(text)
        except ValueError:
            return text

    return convert
