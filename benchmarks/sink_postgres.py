"""Yardsticks of the SQL sink into PostgreSQL: the same rows by plain psycopg, 10,000 in a transaction."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import chain

import psycopg

from ..events import Row, Table

BATCH = 10_000
_ROWS = 1000
"""Rows of an INSERT."""


class Psycopg:
    """Writes to an empty copy of a table of the database at `url`."""

    def __init__(self, url: str, table: Table) -> None:
        self._url = url
        self._like = f"{table.schema}.{table.name}"
        self._names = [column.name for column in table.columns]

    def copy(self, rows: Sequence[Row]) -> float:
        """Return the seconds of COPY, row by row."""
        with self._connected() as connection, connection.cursor() as cursor:
            begun = time.perf_counter()
            for some in _batches(rows, BATCH):
                with connection.transaction(), cursor.copy(f"COPY {self._name} FROM STDIN") as copy:
                    for row in some:
                        copy.write_row(row)
            return time.perf_counter() - begun

    def insert(self, rows: Sequence[Row]) -> float:
        """Return the seconds of multi-row INSERTs."""
        marks = f"({','.join('%s' for _ in self._names)})"
        with self._connected() as connection, connection.cursor() as cursor:
            begun = time.perf_counter()
            for some in _batches(rows, BATCH):
                with connection.transaction():
                    for part in _batches(some, _ROWS):
                        values = ",".join([marks] * len(part))
                        cursor.execute(f"INSERT INTO {self._name} VALUES {values}", [*chain(*part)])
            return time.perf_counter() - begun

    def update(self, rows: Sequence[Row]) -> float:
        """Return the seconds of executemany with an UPDATE of each row by its key, the first column."""
        key, *others = self._names
        statement = f"UPDATE {self._name} SET {','.join(f'{one}=%s' for one in others)} WHERE {key}=%s"
        with self._connected(fill=True) as connection, connection.cursor() as cursor:
            begun = time.perf_counter()
            for some in _batches(rows, BATCH):
                with connection.transaction():
                    cursor.executemany(statement, [(*row[1:], row[0]) for row in some])
            return time.perf_counter() - begun

    @property
    def _name(self) -> str:
        return f"{self._like}_plain"

    def _connected(self, *, fill: bool = False) -> psycopg.Connection[tuple[object, ...]]:
        connection = psycopg.connect(self._url, autocommit=True)
        connection.execute(f"DROP TABLE IF EXISTS {self._name}")
        connection.execute(f"CREATE TABLE {self._name} (LIKE {self._like} INCLUDING ALL)")
        if fill:
            connection.execute(f"INSERT INTO {self._name} SELECT * FROM {self._like}")
        return connection


def _batches(rows: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    for first in range(0, len(rows), size):
        yield rows[first : first + size]
