"""A shop whose orders are in twelve shards on two servers, with a writer on each shard."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import chain
from threading import Lock
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from ..events import Row
from .compare import Printed, Rows, mariadb_rows, source_columns
from .mariadb import MariaDb
from .repeated import RepeatedInSession

SCHEMAS: Final = ("shop_1", "shop_2")
TABLES: Final = ("orders_1", "orders_2", "orders_3")
CHANGES: Final = (
    "ADD COLUMN note VARCHAR(40) NOT NULL DEFAULT 'none' AFTER amount",
    "ADD COLUMN discount INT NOT NULL DEFAULT 7",
    "MODIFY amount BIGINT NOT NULL",
    "CHANGE discount rebate INT NOT NULL DEFAULT 7",
    "DROP COLUMN note",
    "ADD COLUMN state ENUM('open', 'paid') NOT NULL DEFAULT 'open'",
)
"""The schema changes that each shard makes, in this order."""
_ADDED: Final[tuple[tuple[str, ...], ...]] = (
    (),
    ("note",),
    ("note", "discount"),
    ("note", "discount"),
    ("note", "rebate"),
    ("rebate",),
    ("rebate", "state"),
)
"""Columns that a shard has got by its first changes, by the number of these."""


class ShopShard(RepeatedInSession):
    """A table of orders, and the thread that writes to it."""

    def __init__(
        self, server: MariaDb, source: str, schema: str, table: str, seed: int, pause_seconds: float
    ) -> None:
        """`pause_seconds` is the pause of its writer after a transaction."""
        super().__init__(
            lambda: server.connect(database=schema, autocommit=False),
            self._transaction,
            name=f"{source}-{schema}-{table}",
            pause_seconds=pause_seconds,
        )
        self.server = server
        self.source = source
        self.schema = schema
        self.table = table
        self.transactions = 0
        self._made = 0
        self._ids = 0
        self._rng = random.Random(seed)
        self._lock = Lock()
        """Held while a transaction runs, or a schema change."""

    @property
    def extracted(self) -> tuple[str, str, str]:
        """The values of the merged table's columns that say where a row comes from."""
        return self.source, self.schema.removeprefix("shop_"), self.table

    def create(self, rows: int) -> None:
        self.server.execute(
            f"CREATE DATABASE IF NOT EXISTS {self.schema}",
            f"CREATE TABLE {self.schema}.{self.table} (id INT PRIMARY KEY, amount INT NOT NULL, "
            "label VARCHAR(60))",
        )
        self.insert_many(rows)

    def insert_many(self, rows: int) -> None:
        """Insert rows in one transaction."""
        with self._lock, self.server.connect(database=self.schema) as connection:
            first = self._ids + 1
            self._ids += rows
            with connection.cursor() as cursor:
                cursor.execute(
                    f"INSERT INTO {self.table} (id, amount, label) SELECT seq, seq % 1000, "
                    f"CONCAT('row ', seq) FROM seq_{first}_to_{self._ids}"
                )

    def change_schema(self) -> None:
        """Make the next schema change."""
        with self._lock, self.server.connect(database=self.schema) as connection:
            with connection.cursor() as cursor:
                cursor.execute(f"ALTER TABLE {self.table} {CHANGES[self._made]}")
            self._made += 1

    def _transaction(self, connection: pymysql.Connection[Cursor]) -> None:
        with self._lock:
            self._change_rows(connection)

    def _change_rows(self, connection: pymysql.Connection[Cursor]) -> None:
        rng, table, added = self._rng, self.table, _ADDED[self._made]
        greatest = 1 << (40 if self._made >= 3 else 30)
        with connection.cursor() as cursor:
            for _ in range(rng.randint(1, 4)):
                key, amount = rng.randint(1, self._ids), rng.randrange(greatest)
                match rng.randrange(4):
                    case 0:
                        cursor.execute(f"DELETE FROM {table} WHERE id = %s", (key,))
                    case 1 if added:
                        column = rng.choice(added)
                        value = rng.choice(["open", "paid"]) if column == "state" else rng.randrange(100)
                        cursor.execute(f"UPDATE {table} SET {column} = %s WHERE id = %s", (value, key))
                    case 2:
                        cursor.execute(f"UPDATE {table} SET amount = %s WHERE id = %s", (amount, key))
                    case _:
                        self._ids += 1
                        cursor.execute(
                            f"INSERT INTO {table} (id, amount, label) VALUES (%s, %s, %s)",
                            (self._ids, amount, f"order {self._ids}"),
                        )
        connection.commit()
        self.transactions += 1


def shards_of(servers: dict[str, MariaDb], seed: int, pause_seconds: float) -> list[ShopShard]:
    """Return the shards of all servers; the last one of a server comes after those of the others."""
    places = [(schema, table) for schema in SCHEMAS for table in TABLES]
    return [
        ShopShard(server, source, schema, table, seed * 100 + 10 * number + index, pause_seconds)
        for number, (schema, table) in enumerate(places)
        for index, (source, server) in enumerate(servers.items())
    ]


def union(shards: Sequence[ShopShard], names: Sequence[str]) -> Rows:
    """Yield the rows of all shards with the extracted values at their ends; `names` are the columns."""

    def of(shard: ShopShard) -> Iterator[Printed]:
        with shard.server.connect() as connection:
            listed = source_columns(connection, shard.schema, shard.table)
        columns = [next(one for one in listed if one.name == name) for name in names]
        rows = mariadb_rows(shard.server.connect, shard.schema, shard.table, columns)
        return ((*row, *shard.extracted) for row in rows())

    return lambda: chain.from_iterable(map(of, shards))


def described(server: MariaDb, schema: str, table: str) -> dict[str, Row]:
    """Return the type, nullability, default and collation of each column."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, column_type, is_nullable, column_default, collation_name "
            "FROM information_schema.columns WHERE table_schema = %s AND table_name = %s",
            (schema, table),
        )
        return {name: tuple(rest) for name, *rest in cursor.fetchall()}
