"""The source's tables in a MySQL target: their names, columns and comments."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...events import Column, TableName
from ..statement import quoted
from . import text as text
from .fit import Fit
from .session import MySqlSession


class Tables:
    """Looks tables up. `schema` is the target schema of all tables; None: each has its own."""

    def __init__(self, session: MySqlSession, schema: str | None, fit: Fit) -> None:
        self._session = session
        self._fit = fit
        self._schema = schema

    def schema_of(self, name: TableName) -> str:
        return self._schema or name[0]

    def qualified(self, name: TableName) -> str:
        return f"{text.name(self.schema_of(name))}.{text.name(name[1])}"

    def columns(self, name: TableName) -> dict[str, str] | None:
        """Return the types of the columns by name, in order, with " key" after that of a key's column; None
        if there is no such table."""
        rows = self._session.rows(
            "SELECT column_name, column_type, column_key FROM information_schema.columns "
            f"WHERE {self._where(name)} ORDER BY ordinal_position"
        )
        return {
            column: _plain_type(type_) + (" key" if key == "PRI" else "") for column, type_, key in rows
        } or None

    def types(self, columns: Iterable[Column]) -> list[str]:
        """Return the types that `columns` shows for columns of the source."""
        types = [_plain_type(text.type_text(self._fit.typed(column))) for column in columns]
        if not self._session.is_mariadb:
            return types
        return ["longtext" if type_ == "json" else type_ for type_ in types]

    def comment(self, name: TableName) -> str:
        rows = self._session.rows(
            f"SELECT table_comment FROM information_schema.tables WHERE {self._where(name)}"
        )
        return rows[0][0] if rows else ""

    def is_transactional(self, name: TableName) -> bool:
        """Return True if the table's engine can roll back, also to a savepoint; True if there is no table."""
        engines = self._session.rows(
            "SELECT transactions, savepoints FROM information_schema.engines WHERE engine = "
            f"(SELECT engine FROM information_schema.tables WHERE {self._where(name)})"
        )
        return all(answers == ("YES", "YES") for answers in engines)

    def has_row(self, name: TableName, where: str = "TRUE") -> bool:
        """Return True if the table has a row that fulfils the condition."""
        return bool(self._session.rows(f"SELECT 1 FROM {self.qualified(name)} WHERE {where} LIMIT 1"))

    def _where(self, name: TableName) -> str:
        return f"table_schema={quoted(self.schema_of(name))} AND table_name={quoted(name[1])}"


def _plain_type(column_type: str) -> str:
    """Return a type without the display of numbers, in which servers and their versions differ."""
    shown = re.sub(r"^((?:tiny|small|medium|big)?int|year)\(\d+\)", r"\1", column_type)
    return shown.removesuffix(" zerofill").replace("geomcollection", "geometrycollection")
