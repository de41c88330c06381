"""Rows and checksums of tables on one MySQL or MariaDB server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any, Final

from ...codec.mysql.result_rows import ResultRowsDecoder, select_expression
from ...events import (
    AS_BYTES,
    AS_STR,
    WITH_MEMBERS,
    Column,
    Row,
    Table,
    key_table,
    not_a_member,
)
from ...events.per_table import PerTable
from ..read import Checksum, Key, Range
from .client import Session, is_mariadb, query, translated
from .key_range import beside, has_ranges, where_clause
from .result import Result
from .server import ServerOptions
from .text import compile_key, key_columns, name

SESSION: Final = (
    "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = 'NO_BACKSLASH_ESCAPES,ALLOW_INVALID_DATES'"
)
"""Sets up a session for reading; a sink's own sessions are fit for it, too."""
_PAGE_ROWS: Final = 5_000
_KEYS: Final = 200
"""Maximum number of keys in one statement."""
_DOCUMENTS: Final = frozenset({"json", "geometry", "vector"})
"""Kinds whose values may be larger than the server concatenates, as those of MEDIUMTEXT and MEDIUMBLOB may; a
hash takes their place."""
_SHORT: Final = 2
"""Length of TEXT and BLOB: values have up to 64 KiB."""
_SEPARATOR: Final = "CAST(x'FF' AS BINARY)"
"""Separates values: a byte that is in no text. The cast makes the whole text binary."""
_MASK_BITS: Final = 60
"""Number of columns in a number whose bits say which are NULL."""


class ServerRows:
    """Reads by short statements over one session."""

    def __init__(self, session: Session, options: ServerOptions, qualified: Callable[[Table], str]) -> None:
        """`qualified` returns a table's name here, quoted. `options` name the server in errors."""
        self._session = session
        self._options = options
        self._qualified = qualified
        self.is_mariadb = is_mariadb(session)
        self._decoders = PerTable(ResultRowsDecoder)
        self._keys = PerTable(key_table)
        with translated(options):  # MySQL needs a database for a query in a query
            query(session, "USE information_schema")

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Return the rows of a small result."""
        with translated(self._options):
            return query(self._session, sql, *values)

    # --- rows

    def select(self, table: Table, rest: str) -> Iterator[list[Row]]:
        """Yield the rows of a SELECT with `rest` after the table's name."""
        columns = ",".join(select_expression(column) for column in table.columns)
        decoder = self._decoders[table]
        sql = f"SELECT {columns} FROM {self._qualified(table)} {rest}"
        result = Result(self._session, self._options, table, sql)
        while not result.done:
            if packets := result.read():
                yield [change.after or () for change in decoder.decode(packets, 0, 0)]

    def page(self, table: Table, within: Range, limit: int) -> list[Row]:
        """Return the first rows of a range by key."""
        rest = f"{_where(table, within)} ORDER BY {_key(table)} LIMIT {limit}"
        return [row for rows in self.select(table, rest) for row in rows]

    def between(self, table: Table, within: Range, limit: int) -> Iterator[list[Row]]:
        while True:
            rows = self.page(table, within, limit)
            yield rows
            if len(rows) < limit:
                return
            within = Range(tuple([rows[-1][i] for i in table.key]), within.upto)

    def every(self, table: Table) -> Iterator[list[Row]]:
        """Yield all rows; those of a table without ranges of a key by one long statement."""
        by_key = table.key and has_ranges(table)
        return self.between(table, Range(None, None), _PAGE_ROWS) if by_key else self.select(table, "")

    def rows_of(self, table: Table, keys: Sequence[Key], suffix: str = "") -> list[Row]:
        render = compile_key(self._keys[table])
        stored: list[Row] = []
        for first in range(0, len(keys), _KEYS):
            literals = ",".join(render(keys[first : first + _KEYS]))
            rest = f"WHERE {key_columns(table)} IN ({literals}) {suffix}"
            stored += [row for rows in self.select(table, rest) for row in rows]
        return stored

    # --- ranges

    def bound(self, table: Table, within: Range, rows: int) -> Key | None:
        rest = f"{_where(table, within)} ORDER BY {_key(table)} LIMIT 1 OFFSET {rows - 1}"
        keys = [row for some in self.select(self._keys[table], rest) for row in some]
        return keys[0] if keys else None

    def checksum(self, table: Table, within: Range) -> Checksum:
        # CRC32 only makes numbers of the hash's quarters, twice as fast as CONV does.
        quarters = ",".join(f"BIT_XOR(CRC32(SUBSTR(hash,{first},8)))" for first in (1, 9, 17, 25))
        # LIMIT: else the server merges the two queries, and computes the hash once for each use.
        ((rows, hashed, *bits),) = self.rows(
            f"SELECT COUNT(*),COUNT(hash),{quarters} FROM (SELECT UNHEX(SHA2({_text(table)},256)) AS hash "
            f"FROM {self._qualified(table)}{_where(table, within)} "
            "LIMIT 18446744073709551615) AS hashes"
        )
        return Checksum(rows, tuple(map(int, bits)) if rows == hashed else None)


def _text(table: Table) -> str:
    """Return an expression of a row's text, from which each value can be told; NULL if it is too long."""
    values = [part for column in table.columns for part in _parts(column)]
    nullable = [name(column.name) for column in table.columns if column.nullable]
    some = (nullable[first : first + _MASK_BITS] for first in range(0, len(nullable), _MASK_BITS))
    masks = ["|".join(f"ISNULL({one})<<{bit}" for bit, one in enumerate(names)) for names in some]
    return f"CONCAT_WS({_SEPARATOR},{','.join([*values, *masks])})"  # which leaves out NULLs


def _parts(column: Column) -> list[str]:
    """Return the expressions for a column. Bytes have their length first: they may contain the separator."""
    value = _exact(column)
    if column.kind in AS_STR:
        value = f"CONVERT({value} USING utf8mb4)"
    if column.kind in _DOCUMENTS or (column.kind in ("text", "blob") and column.length > _SHORT):
        return [f"SHA2({value},256)"]
    return [f"LENGTH({value})", value] if column.kind in AS_BYTES else [value]


def _exact(column: Column) -> str:
    """Return an expression of a column from whose text each value can be told."""
    match column.kind:
        case "float":  # otherwise printed with six digits
            return f"CAST({name(column.name)} AS DOUBLE)"
        case "bit":  # otherwise bytes
            return f"{name(column.name)} + 0"
        case _:
            return select_expression(column)


def _key(table: Table) -> str:
    return ",".join(name(table.columns[i].name) for i in table.key)


def _where(table: Table, within: Range) -> str:
    conditions = []
    if within.after is not None:
        conditions.append(_beyond(table, within.after, ">", ">"))
    if within.upto is not None:
        conditions.append(_beyond(table, within.upto, "<", "<="))
    return where_clause(conditions)


def _beyond(table: Table, key: Key, sign: str, last: str) -> str:
    """Return the condition that a key is above or below another one."""
    parts = [_ordered(table.columns[i], value) for i, value in zip(table.key, key, strict=True)]
    return beside([(partial(_compared, *part), _compared(*part, "=")) for part in parts], sign, last)


def _compared(part: str, literal: str, sign: str) -> str:
    return f"{part}{sign}{literal}"


def _ordered(column: Column, value: Any) -> tuple[str, str]:
    """Return an expression that sorts as the column does, and the value's literal."""
    if column.kind in WITH_MEMBERS:  # an index sorts them by number, but they are compared as text
        return f"{name(column.name)}+0", str(_number(column, value))
    (literal,) = compile_key(Table("", "", (column,), (0,)))([(value,)])
    return name(column.name), literal


def _number(column: Column, text: str) -> int:
    if column.kind == "set":
        places = dict(zip(column.members, count(), strict=False))
        return sum(1 << places[member] for member in text.split(",") if text)
    return 0 if text == not_a_member(column.members) else column.members.index(text) + 1
