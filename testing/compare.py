"""Comparison of two copies of the same tables, row by row, with values as the source prints them.

It shares no code with the decoders and writers that it tests, except `from_sqlite`, the documented way to
read a SQLite target.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..dialects.sqlite.types import from_sqlite
from ..events import Column, Row
from .postgres_values import from_postgres

if TYPE_CHECKING:  # a copy in SQLite is compared without these drivers
    import psycopg
    import pymysql
    from pymysql.cursors import Cursor

Printed: TypeAlias = tuple[str | None, ...]
Rows: TypeAlias = Callable[[], Iterator[Printed]]

_GEOMETRIES = {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
_BINARY = {
    "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector", *_GEOMETRIES,
    "geometrycollection", "geomcollection",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PrintedColumn:
    name: str
    data_type: str
    """Data type as in information_schema."""
    scale: int
    """Number of fractional digits of seconds."""


def source_columns(
    connection: pymysql.Connection[Cursor], schema: str, table: str, *, generated: bool = True
) -> list[PrintedColumn]:
    """Return a table's columns, with or without those that are computed from others."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, data_type, COALESCE(datetime_precision, 0) FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name = %s"
            " AND (%s OR COALESCE(generation_expression, '') IN ('', 'ROW START', 'ROW END'))"
            " ORDER BY ordinal_position",
            (schema, table, generated),
        )
        return [PrintedColumn(name, kind, int(scale)) for name, kind, scale in cursor.fetchall()]


def mariadb_rows(
    connect: Callable[..., AbstractContextManager[pymysql.Connection[Cursor]]],
    schema: str,
    table: str,
    columns: Sequence[PrintedColumn],
) -> Rows:
    """Yield the rows of a table of a MariaDB as its server prints them (a float as its exact double).

    `connect` takes pymysql's options, and returns a connection for the length of a `with`.
    """
    from pymysql.cursors import SSCursor

    def expression(column: PrintedColumn) -> str:
        name = f"`{column.name}`"
        if column.data_type in _BINARY:
            return f"HEX({name})"
        return {"float": f"CAST({name} AS DOUBLE)", "bit": f"{name}+0"}.get(column.data_type, name)

    floats = [column.data_type in ("float", "double") for column in columns]
    query = f"SELECT {', '.join(map(expression, columns))} FROM `{schema}`.`{table}`"

    def rows() -> Iterator[Printed]:
        with connect(conv={}, cursorclass=SSCursor) as connection, connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(query)
            for row in cursor:
                yield tuple(
                    repr(float(value)) if is_float and value is not None else value
                    for value, is_float in zip(row, floats, strict=True)
                )

    return rows


def sqlite_rows(path: Path, table: str, columns: Sequence[PrintedColumn]) -> Rows:
    """Yield the rows of a table of a SQLite database, as the source prints them."""
    kinds = [_kind(column) for column in columns]
    query = f"SELECT {', '.join(quoted(c.name) for c in columns)} FROM {quoted(table)}"

    def rows() -> Iterator[Printed]:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)) as connection:
            for row in connection.execute(query):
                yield tuple(
                    printed(column, from_sqlite(kind, value))
                    for column, kind, value in zip(columns, kinds, row, strict=True)
                )

    return rows


def postgres_rows(
    connect: Callable[..., psycopg.Connection[Row]], schema: str, table: str, columns: Sequence[PrintedColumn]
) -> Rows:
    """Yield the rows of a table of a PostgreSQL database, as the source prints them."""
    kinds = [_kind(column) for column in columns]
    names = ", ".join(f"{quoted(c.name)}::text" for c in columns)
    query = f"SELECT {names} FROM {quoted(schema)}.{quoted(table)}"

    def rows() -> Iterator[Printed]:
        with connect(options="-c TimeZone=UTC") as connection:
            for row in connection.execute(query):
                yield tuple(
                    printed(column, from_postgres(kind, value))
                    for column, kind, value in zip(columns, kinds, row, strict=True)
                )

    return rows


def _kind(column: PrintedColumn) -> Column:
    kind: Any = column.data_type
    for short in ("text", "blob"):
        kind = short if kind.endswith(short) else kind
    return Column(column.name, kind, scale=column.scale)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def printed(column: PrintedColumn, value: object) -> str | None:
    """Return a Python value as MariaDB prints it."""
    match value:
        case None:
            return None
        case bytes():
            return value.hex().upper()
        case float():
            return repr(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            text = f"{value:%m-%d %H:%M:%S}"
            return f"{value.year:04d}-{text}" + _fraction(value.microsecond, column.scale)
        case date():
            return value.isoformat()
        case timedelta():
            micros = value // timedelta(microseconds=1)
            seconds, micros_left = divmod(abs(micros), 1_000_000)
            text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
            return "-" * (micros < 0) + text + _fraction(micros_left, column.scale)
        case int() if column.data_type == "year":
            return f"{value:04d}"
    return str(value)


def _fraction(micros: int, scale: int) -> str:
    return f".{micros:06d}"[: scale + 1] if scale else ""


# --- the comparison ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CopyComparison:
    """The result of a comparison of two copies of some tables."""

    rows: int
    tables: int
    differences: list[str]

    @property
    def identical(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        if self.identical:
            return f"identical: {self.rows:,} rows in {self.tables} tables"
        return "\n".join(["DIFFERENT:", *self.differences])


def compare(pairs: dict[str, tuple[Rows, Rows]], examples: int = 3) -> CopyComparison:
    """Compare (source, target) rows of each table as multisets: the order is ignored, repetitions count."""
    total = 0
    differences: list[str] = []
    for table, (source, target) in pairs.items():
        left = Counter(map(_digest, source()))
        right = Counter(map(_digest, target()))
        total += left.total()
        if left != right:
            differences.append(
                f"{table}: {left.total():,} rows in the source, {right.total():,} in the target"
            )
            differences += _examples("only in the source", source, left - right, examples)
            differences += _examples("only in the target", target, right - left, examples)
    return CopyComparison(total, len(pairs), differences)


def _digest(row: Printed) -> bytes:
    # A hash of 16 bytes instead of the row: two copies of millions of rows fit in memory.
    return blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _examples(label: str, rows: Rows, wanted: Counter[bytes], most: int) -> list[str]:
    if not wanted:
        return []
    rows_found = [row for row in rows() if _digest(row) in wanted]
    return [f"  {label}: {wanted.total():,} rows"] + [f"    {str(row)[:300]}" for row in rows_found[:most]]
