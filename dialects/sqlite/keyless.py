"""Rows of an SQLite table without a key, found for many changes by reading the table once."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from ...events import Row, RowChange, Table
from ..database import MISSING, StatementRejected
from .types import compile_encode, declared_type

FEWEST: Final = 4
"""Least number of changes for which this is faster than one search each."""
_ROWS: Final = "temp.tidemill_rows"


class RowFinder:
    """Finds row ids in one table, at one version of its schema."""

    def __init__(self, table: Table, quoted_name: str, quoted_columns: Sequence[str], row_id: str) -> None:
        every = range(len(table.columns))
        self._encode = compile_encode(table.columns, every)
        columns = ",".join(f"c{i} {declared_type(table.columns[i])}" for i in every)
        self._create = f"CREATE TABLE {_ROWS} (number INTEGER PRIMARY KEY,{columns})"
        self._index = f"CREATE INDEX {_ROWS}_by_value ON tidemill_rows ({','.join(f'c{i}' for i in every)})"
        self._fill = f"INSERT INTO {_ROWS} VALUES (?{',?' * len(every)})"
        same = " AND ".join(f"r.c{i} IS t.{name}" for i, name in enumerate(quoted_columns))
        # CROSS JOIN: the table is read from its start, and each of its rows is looked up among those to find.
        self._find = f"SELECT r.number,t.{row_id} FROM {quoted_name} AS t CROSS JOIN {_ROWS} AS r ON {same}"

    def find(self, connection: sqlite3.Connection, changes: Iterable[RowChange]) -> list[int]:
        """Return the id of each changed row, in order: of equal rows, any one that no earlier change has.

        Raises StatementRejected if a row is missing.
        """
        places: list[Row | int] = []
        made: defaultdict[Row, list[int]] = defaultdict(list)
        wanted: Counter[Row] = Counter()
        for number, change in enumerate(changes):
            assert change.before is not None
            if earlier := made[change.before]:
                places.append(earlier.pop())  # this row is as an earlier change left it
            else:
                places.append(change.before)
                wanted[change.before] += 1
            if change.after is not None:
                made[change.after].append(number)
        by_row = self._search(connection, wanted)
        ids: list[int] = []
        for place in places:
            ids.append(ids[place] if isinstance(place, int) else by_row[place].pop())
        return ids

    def _search(self, connection: sqlite3.Connection, wanted: Counter[Row]) -> dict[Row, list[int]]:
        rows = list(wanted)
        connection.execute(f"DROP TABLE IF EXISTS {_ROWS}")
        connection.execute(self._create)
        encoded = enumerate(self._encode(rows))
        connection.executemany(self._fill, [(number, *values) for number, values in encoded])
        connection.execute(self._index)
        ids: dict[Row, list[int]] = {row: [] for row in rows}
        left = wanted.total()
        for number, row_id in connection.execute(self._find):
            row = rows[number]
            if len(ids[row]) < wanted[row]:
                ids[row].append(row_id)
                left -= 1
        if left:
            raise StatementRejected(MISSING)
        return ids
