"""Two tables, each in a part of its own, their copies, and triggers that count what is done to either."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tidemill.spark.read.parts import WHOLE
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import eventually

from .standalone import PATIENCE_SECONDS

TRANSACTIONS: Final = 40
_NAMES: Final = [f"item{number}" for number in range(20)]
_FIRST, _MIDDLE = -2, -1
"""Rows that are there from the beginning: the work begins with the one, and comes to the other half way."""


class Copied:
    def __init__(self, sql: Client) -> None:
        self.sql = sql
        self.copy = f"{sql.database}_copy"
        sql(f"CREATE DATABASE {self.copy}")
        parts = WHOLE.divided(2)
        self.tables = [next(name for name in _NAMES if part.has(sql.database, name)) for part in parts]
        for schema in (sql.database, self.copy):
            sql(f"CREATE TABLE {schema}.counts (place VARCHAR(10), op VARCHAR(6), id INT)")
            for table in self.tables:
                sql(f"CREATE TABLE {schema}.{table} (id INT PRIMARY KEY, name TEXT)")
                for op, row in (("insert", "NEW"), ("update", "NEW"), ("delete", "OLD")):
                    sql(
                        f"CREATE TRIGGER {schema}.{op}_{table} AFTER {op} ON {schema}.{table} FOR EACH ROW "
                        f"INSERT INTO {schema}.counts VALUES ('{table}', '{op}', {row}.id)"
                    )
        self.transaction(f"INSERT INTO {{}} VALUES ({_FIRST}, 'first'), ({_MIDDLE}, 'middle')")

    @property
    def patterns(self) -> str:
        return ",".join(f"{self.sql.database}.{table}" for table in self.tables)

    def transaction(self, *statements: str) -> None:
        """Each on both tables."""
        done = [statement.format(table) for statement in statements for table in self.tables]
        self.sql("BEGIN", *done, "COMMIT")

    @contextmanager
    def half_done(self, number: int) -> Iterator[None]:
        """The work, in one batch of a stream that follows the tables; both its tasks are in the middle of it,
        have committed a part, and go on at the end of this. `number` is another one each time."""
        before = self.counted(self.copy)
        with self._locked(_MIDDLE):
            with self._locked(_FIRST):
                self.transaction(f"UPDATE {{}} SET name = 'f{number}' WHERE id = {_FIRST}")
                eventually(lambda: self._both_wait(_FIRST), PATIENCE_SECONDS)  # in a batch of its own
                self._work(number)
            eventually(lambda: self._both_wait(_MIDDLE), PATIENCE_SECONDS)
            now, all_ = self.counted(self.copy), self.counted(self.sql.database)
            assert all(before[table] + TRANSACTIONS < now[table] < all_[table] for table in self.tables)
            yield

    def _work(self, number: int) -> None:
        for place in range(1000 * number, 1000 * number + TRANSACTIONS):
            self.transaction(
                f"INSERT INTO {{}} VALUES ({place}, 'first'), ({place + 500}, 'second')",
                f"UPDATE {{}} SET name = 'third' WHERE id = {place}",
                f"DELETE FROM {{}} WHERE id = {place + 500}",
            )
            if place % 1000 == TRANSACTIONS // 2:
                self.transaction(f"UPDATE {{}} SET name = 'm{number}' WHERE id = {_MIDDLE}")

    @contextmanager
    def _locked(self, row: int) -> Iterator[None]:
        with self.sql.server.connect(autocommit=False) as connection:
            with connection.cursor() as cursor:
                for table in self.tables:
                    cursor.execute(f"SELECT * FROM {self.copy}.{table} WHERE id = {row} FOR UPDATE")
            yield

    def waits_for_its_turn(self) -> bool:
        """Another attempt at a task, for one that is in the middle of a transaction: it is about to begin."""
        waiting = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
        return self.sql(f"{waiting} AND trx_query LIKE '%`{self.copy}`.tidemill_checkpoint%'") == [(1,)]

    def _both_wait(self, row: int) -> bool:
        """With its update in both tables, while that is locked."""
        waiting = "SELECT COUNT(DISTINCT info) FROM information_schema.processlist WHERE info LIKE"
        return self.sql(f"{waiting} 'UPDATE `{self.copy}`%=%WHERE `id`={row}'") == [(2,)]

    def counted(self, schema: str) -> dict[str, int]:
        """How many rows of each table were changed."""
        found = dict(self.sql(f"SELECT place, COUNT(*) FROM {schema}.counts GROUP BY place"))
        return {table: found.get(table, 0) for table in self.tables}

    def is_done(self) -> bool:
        return self.counted(self.copy) == self.counted(self.sql.database)

    def check(self) -> None:
        """Nothing lost, nothing twice."""
        for table in self.tables:
            assert self._rows(self.copy, table) == self._rows(self.sql.database, table)
        assert self._changes(self.copy) == self._changes(self.sql.database)

    def _rows(self, schema: str, table: str) -> list[tuple[Any, ...]]:
        return self.sql(f"SELECT * FROM {schema}.{table} ORDER BY id")

    def _changes(self, schema: str) -> list[tuple[Any, ...]]:
        grouped = "GROUP BY place, op, id ORDER BY place, op, id"
        return self.sql(f"SELECT place, op, id, COUNT(*) FROM {schema}.counts {grouped}")

    def drop(self) -> None:
        self.sql(f"DROP DATABASE {self.copy}")
