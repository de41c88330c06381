"""Storage of each kind of value in SQLite, and its conversion back (docs/reference/sqlite.md#types)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias, assert_never

from ...codec.row_code import compile_rows
from ...events import (
    AS_BYTES,
    AS_INT,
    FLOATS,
    Column,
    Row,
)

Encode: TypeAlias = Callable[[Iterable[Row]], list[Row]]

_BEYOND = 1 << 63
"""Smallest positive integer beyond SQLite's INTEGER."""


def declared_type(column: Column) -> str:
    """Return the type in CREATE TABLE; no type for unsigned 64-bit integers.

    With any type, SQLite would convert larger ones to a double.
    """
    if column.kind in AS_INT:
        return "" if _is_wide(column) else "INTEGER"
    if column.kind in FLOATS:
        return "REAL"
    return "BLOB" if column.kind in AS_BYTES else "TEXT"


def _is_wide(column: Column) -> bool:
    return (column.kind == "bigint" and column.unsigned) or (column.kind == "bit" and column.length == 64)


def compile_encode(columns: tuple[Column, ...], index: Iterable[int]) -> Encode:
    """Return a function that maps rows to the stored values of the columns in `index`."""
    values = "".join(f"{_encode(columns[i], f'c{i}')}," for i in index)
    return compile_rows(len(columns), f"({values})", {"BEYOND": _BEYOND})


def _encode(column: Column, var: str) -> str:
    """Return a Python expression for a value's stored form; `var` may be None."""
    match column.kind:
        case "bigint" | "bit" if _is_wide(column):
            return f"{var} if {var} is None or {var} < BEYOND else f'{{{var}:020}}'"
        case "decimal":
            return f"None if {var} is None else f'{{{var}:.{column.scale}f}}'"
        case "date":
            return f"None if {var} is None else str({var})"
        case "datetime" | "timestamp":
            return f"None if {var} is None else datetime_text({var}, {column.scale})"
        case "time":
            return f"None if {var} is None else time_text({var}, {column.scale})"
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "float" | "double" | "bit" | "char"
            | "varchar" | "text" | "binary" | "varbinary" | "blob" | "year" | "enum" | "set" | "json"
            | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            return var
        case _:
            assert_never(column.kind)


def from_sqlite(column: Column, value: Any) -> Any:
    """Return the Python value, as events.Column describes it, of a stored value."""
    if value is None:
        return None
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "bit" | "year":
            return int(value)
        case "decimal":
            return Decimal(value)
        case "date" if _is_real(value):
            return date.fromisoformat(value)
        case "datetime" if _is_real(value):
            return datetime.fromisoformat(value)
        case "timestamp" if _is_real(value):
            return datetime.fromisoformat(value).replace(tzinfo=UTC)
        case "time":
            return _time(value)
        case (
            "float" | "double" | "char" | "varchar" | "text" | "binary" | "varbinary" | "blob" | "date"
            | "datetime" | "timestamp" | "enum" | "set" | "json" | "uuid" | "inet4" | "inet6" | "geometry"
            | "vector"
        ):  # fmt: skip
            return value
        case _:
            assert_never(column.kind)


def _is_real(text: str) -> bool:
    """Return True if Python can represent this date: not "0000-00-00" or "2024-02-31"."""
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True


def _time(text: str) -> timedelta:
    sign, hours, minutes, seconds, fraction = re.fullmatch(  # type: ignore[union-attr]
        r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d+))?", text
    ).groups()
    micros = int((fraction or "").ljust(6, "0"))
    value = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds), microseconds=micros)
    return -value if sign else value
