"""An empty database for the suites of tidemill's tests."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidemill.dialects.sqlite.types import from_sqlite
from tidemill.events import Row, Table
from tidemill.testing.database_place import DatabasePlace


class TypelessPlace(DatabasePlace):
    def __init__(self, path: Path) -> None:
        super().__init__(f"typeless:///{path}")
        self._path = path

    def query(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self._path)) as connection, connection:
            return connection.execute(sql).fetchall()

    def rows(self, table: Table) -> list[Row]:
        names = ", ".join(f"`{column.name}`" for column in table.columns)
        rows = self.query(f"SELECT {names} FROM {self.named(table.schema, table.name)}")
        return [tuple(map(from_sqlite, table.columns, row)) for row in rows]

    def named(self, schema: str, table: str) -> str:
        return f"`{schema}${table}`"

    def tells_apart(self, one: object, other: object) -> bool:
        return one != other


def of(request: pytest.FixtureRequest) -> DatabasePlace:
    return TypelessPlace(request.getfixturevalue("tmp_path") / "copy.db")
