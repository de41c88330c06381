"""Columns of one vendor as the other one can define them, with the same values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from ...codec.mysql.tokens import Tokens
from ...errors import SinkError
from ...events import (
    MOMENTS,
    Column,
    Details,
    Table,
)
from ..statement import quoted
from .session import MySqlSession

_CONSTANT: Final = re.compile(
    r"'(?:[^'\\]++|''|\\.)*+'|[bx]'[0-9a-f]*'|0x[0-9a-f]+|0b[01]+|[-+]?[\d.]+(?:e[-+]?\d+)?|true|false",
    re.I | re.S,
)
_NOW: Final = re.compile(r"(?:current_timestamp|now|localtimestamp|localtime)(?:\(\d*\))?", re.I)
_LITERAL: Final = re.compile(r"(?:\b_(\w+)\s*)?(\bx)?'((?:[^'\\]++|''|\\.)*+)(?:'|\Z)", re.I | re.S)
_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_EXPRESSIONS_ONLY: Final = frozenset({"text", "blob", "json", "geometry", "vector"})
"""Kinds whose default must be an expression."""
_COLLATIONS: Final = "SELECT COLLATION_NAME FROM information_schema.COLLATIONS"
_APPLICABILITY: Final = "information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
"""Where MariaDB since 10.10 has the full names of collations that several charsets share."""
_LONG: Final = 4
"""Length of LONGTEXT and LONGBLOB."""
_LACKED_BY_TIDB: Final = frozenset({"geometry", "vector"})
"""Kinds whose bytes TiDB has no type for."""
_TEXT_LENGTHS: Final = {"uuid": 36, "inet4": 15, "inet6": 45}
"""Characters of MariaDB's types that MySQL lacks and that are stored as text there."""


class Fit:
    """Adapts definitions to a target server. `substitutes` has the collations to use for those it
    lacks."""

    def __init__(self, session: MySqlSession, substitutes: Mapping[str, str]) -> None:
        self._session = session
        self._substitutes = {name.lower(): other for name, other in substitutes.items()}
        self._known: frozenset[str] | None = None

    @property
    def has_substitutes(self) -> bool:
        """True if columns may have another collation than in the source."""
        return bool(self._substitutes)

    def table(self, table: Table) -> Table:
        """Raises SinkError for a collation that the server lacks and that has no substitute."""
        collation = self._collation(table.collation, f"table {table.full_name}")
        columns = tuple(self.column(column, table.full_name) for column in table.columns)
        if self._session.is_tidb:  # which takes few expressions; rows come with a value of every column
            columns = tuple(
                replace(column, default=None) if (column.default or "").startswith("(") else column
                for column in columns
            )
        return replace(
            table, columns=columns, collation=collation, charset=_charset(table.charset, collation)
        )

    def column(self, column: Column, table: str) -> Column:
        """Raises SinkError as table()."""
        column = self.typed(column)
        if column.collation is not None and column.kind != "json":
            collation = self._collation(column.collation, f"column {column.name} of table {table}")
            column = replace(column, collation=collation, charset=_charset(column.charset, collation))
        return replace(column, default=self._default(column))

    def typed(self, column: Column) -> Column:
        """Return the column with a type of the server that holds the same values."""
        if self._session.is_mariadb:
            return column
        if self._session.is_tidb and column.kind in _LACKED_BY_TIDB:
            return replace(column, kind="blob", length=_LONG)
        if length := _TEXT_LENGTHS.get(column.kind):
            return replace(column, kind="char", length=length, charset="ascii", collation="ascii_bin")
        if column.kind == "json" and column.charset is not None:
            # MariaDB's JSON is the text as it was written; MySQL's type writes it in its own way.
            return replace(column, kind="text", length=_LONG)
        return column

    def details(self, details: Details) -> Details:
        """Return the details with expressions that this server reads alike in every session."""
        if self._session.is_mariadb:
            return details
        checks = tuple(replace(one, condition=_portable(one.condition)) for one in details.checks)
        indexes = tuple(
            replace(
                one,
                parts=tuple(replace(part, expression=_portable(part.expression)) for part in one.parts),
            )
            for one in details.indexes
            if one.kind != "SPATIAL" or not self._session.is_tidb
        )
        return replace(details, checks=checks, indexes=indexes)

    def _collation(self, name: str | None, where: str) -> str | None:
        if name is None:
            return None
        name = self._substitutes.get(name.lower(), name)
        for spelling in name, *_other_spellings(name):
            if spelling.lower() in self._collations():
                return spelling
        advised = next(one for one in _binary_collations(name) if one in self._collations())
        raise SinkError(
            f"{where} has the collation {name}, which the target lacks: name one that it has in the sink's "
            f"option collations, for instance {name} = {advised}; it must tell apart all values of unique "
            "keys"
        )

    def _collations(self) -> frozenset[str]:
        if self._known is None:
            rows = self._session.rows(_COLLATIONS)
            if self._has_full_names():
                rows += self._session.rows(f"SELECT FULL_COLLATION_NAME FROM {_APPLICABILITY}")
            self._known = frozenset(str(name).lower() for (name,) in rows)
        return self._known

    def _has_full_names(self) -> bool:
        return bool(
            self._session.rows(
                "SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'information_schema' "
                f"AND CONCAT('information_schema.', TABLE_NAME) = {quoted(_APPLICABILITY)} "
                "AND COLUMN_NAME = 'FULL_COLLATION_NAME'"
            )
        )

    def _default(self, column: Column) -> str | None:
        """Return the default as the server takes it: for MySQL, expressions and all of TEXT, BLOB, JSON are
        in parentheses. One from a sequence, which isn't copied, is left out: rows have all their values."""
        text = column.default
        if text is not None and _asks_sequence(text):
            return None
        if text is None or self._session.is_mariadb or text.lower() == "null":
            return text
        if column.kind in MOMENTS and _NOW.fullmatch(text):
            return text
        if column.kind not in _EXPRESSIONS_ONLY and _CONSTANT.fullmatch(text):
            return text
        text = _portable(text)
        return text if text.startswith("(") else f"({text})"


def _asks_sequence(expression: str) -> bool:
    tokens = Tokens(expression)
    while tokens.next.kind != "end":
        if tokens.accept("NEXT", "VALUE", "FOR") or tokens.accept("PREVIOUS", "VALUE", "FOR"):
            return True
        if tokens.take().value in ("NEXTVAL", "LASTVAL", "SETVAL") and tokens.accept("("):
            return True
    return False


def _portable(expression: str) -> str:
    """Return an expression without escapes in its strings.

    MySQL keeps an expression as text with backslash escapes, and reads it by the mode of any session.
    """
    return _LITERAL.sub(_without_escapes, expression)


def _without_escapes(match: re.Match[str]) -> str:
    charset, is_hex, inside = match.groups()
    if is_hex or ("\\" not in inside and "''" not in inside) or charset not in (None, "utf8mb4", "utf8mb3"):
        return match[0]
    plain = re.sub(
        r"''|\\(.)", lambda match: _ESCAPES.get(match[1], match[1] or "'"), inside, flags=re.DOTALL
    )
    return f"convert(unhex('{plain.encode().hex()}') using utf8mb4)"


def _other_spellings(collation: str) -> list[str]:
    """Return other names of the very same collation."""
    if collation.startswith("utf8_"):
        return [f"utf8mb3_{collation.removeprefix('utf8_')}"]
    if collation.startswith("utf8mb3_"):
        return [f"utf8_{collation.removeprefix('utf8mb3_')}"]
    return []


def _binary_collations(collation: str) -> Iterator[str]:
    """Yield collations that compare bytes, the best substitute first; every server has the last one."""
    for charset in collation.partition("_")[0].lower(), "utf8mb4":
        for ending in "nopad_bin", "0900_bin", "bin":
            yield f"{charset}_{ending}"


def _charset(charset: str | None, collation: str | None) -> str | None:
    """Return the charset of a collation, which may have another spelling than the column's charset, or be
    another one that has all its characters."""
    if charset is None or collation is None:
        return charset
    prefix = collation.partition("_")[0]
    return charset if prefix in ("uca1400", "binary") else prefix
