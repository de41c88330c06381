"""A connection to a DuckDB file, with a savepoint.

DuckDB has no savepoints, and an error ends its transaction: the statements of a transaction are kept, and
those before the savepoint are run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa

from ...errors import Retryable, SinkError
from ...events import Row

STAGED: Final = "tidemill_rows"
"""Name by which a statement refers to its Arrow table."""
MAX_KEPT_BYTES: Final = 256 << 20
"""Maximum size of the rows of a transaction that are kept to be written again."""


class _Change(NamedTuple):
    statement: str
    values: Sequence[Any]
    data: pa.Table | None
    rows: int
    """Number of rows that it changed."""


class DuckDbSession:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.catalog = ""
        """Name of the database in statements, once connected."""
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._kept: list[_Change] = []
        self._kept_bytes = 0
        self._savepoint = 0
        self._is_inside = False

    def connect(self) -> None:
        self._connection = duckdb.connect(str(self.path))
        self.catalog = self.rows("SELECT current_catalog()")[0][0]

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._forget()
        if connection is not None:
            connection.close()

    def rows(self, statement: str, *values: Any, data: pa.Table | None = None) -> list[Row]:
        """Return the rows of a statement that changes nothing."""
        return self._run(statement, values, data)

    def change(self, statement: str, *values: object, data: pa.Table | None = None) -> int:
        """Run a statement; return the number of rows that it changed."""
        rows = self._run(statement, values, data)
        count = int(rows[0][0]) if rows else 0
        if self._is_inside:
            self._kept_bytes += 0 if data is None else data.nbytes
            if self._kept_bytes > MAX_KEPT_BYTES:
                self._kept.clear()
            else:
                self._kept.append(_Change(statement, values, data, count))
        return count

    def _run(self, statement: str, values: Sequence[Any], data: pa.Table | None) -> list[Row]:
        assert self._connection is not None
        if data is None:
            return self._connection.execute(statement, values).fetchall()
        self._connection.register(STAGED, data)
        rows = self._connection.execute(statement, values).fetchall()
        self._connection.unregister(STAGED)
        return rows

    # --- transactions

    def begin(self) -> None:
        self._run("BEGIN", (), None)
        self._forget()
        self._is_inside = True

    def commit(self) -> None:
        self._run("COMMIT", (), None)
        self._forget()

    def savepoint(self) -> None:
        self._savepoint = len(self._kept)

    def rollback_to_savepoint(self) -> None:
        """Undo the changes after the savepoint, also if an error has ended the transaction.

        Raises SinkError if the transaction is too large for it.
        """
        self._run("ROLLBACK", (), None)
        if self._kept_bytes > MAX_KEPT_BYTES:
            raise SinkError(
                f"{self.path}: DuckDB rejected a change in a transaction with more than "
                f"{MAX_KEPT_BYTES >> 20} MiB of rows, too many to look for it: nothing of it was "
                "written"
            )
        again = self._kept[: self._savepoint]
        self._run("BEGIN", (), None)
        for one in again:
            rows = self._run(one.statement, one.values, one.data)
            if (int(rows[0][0]) if rows else 0) != one.rows:
                raise Retryable(f"{self.path}: something else has changed the rows of this transaction")
        self._kept = again
        self._kept_bytes = sum(one.data.nbytes for one in again if one.data is not None)

    def _forget(self) -> None:
        self._kept = []
        self._kept_bytes = self._savepoint = 0
        self._is_inside = False
