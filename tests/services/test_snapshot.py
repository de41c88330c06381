"""Snapshots of a live MariaDB, interrupted, resumed and followed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from random import Random
from threading import Thread

import pymysql
import pytest

from tidemill.events import REST, Transaction
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.snapshot import Snapshot
from tidemill.testing.mariadb import PASSWORD, MariaDb

from .pulling import Copy, Pulling, binlog_end, rows_of, source_rows

TABLES = {
    "numbered": "id INT PRIMARY KEY, a INT",
    "pairs": "a SMALLINT, b BIGINT UNSIGNED, n INT, PRIMARY KEY (b, a)",
    "named": "name VARCHAR(20) PRIMARY KEY, a INT",
    "loose": "n INT, a INT",
    "empty": "id INT PRIMARY KEY",
}


class Shop:
    """Tables with and without keys, and changes of them at random."""

    def __init__(self, server: MariaDb, database: str, seed: int = 0) -> None:
        self.server = server
        self.database = database
        self.random = Random(seed)
        self.connection = server.connect(database=database, autocommit=False)
        self.cursor = self.connection.cursor()

    def create(self, rows: int) -> None:
        for name, columns in TABLES.items():
            self.cursor.execute(f"CREATE TABLE `{name}` ({columns})")
        for number in range(rows):
            self._insert(2 * number)
        self.connection.commit()

    def change(self, transactions: int, *, keys: int) -> None:
        for _ in range(transactions):
            try:
                for _ in range(self.random.randint(1, 4)):
                    self._change(self.random.randrange(keys))
            except pymysql.err.OperationalError:  # a deadlock with another writer
                self.connection.rollback()
            if self.random.random() < 0.1:
                self.connection.rollback()
            else:
                self.connection.commit()

    def _insert(self, key: int) -> None:
        execute = self.cursor.execute
        execute("INSERT IGNORE INTO numbered VALUES (%s, 0)", (key,))
        execute("INSERT IGNORE INTO pairs VALUES (%s, %s, 0)", (key % 7 - 3, 2**63 + key // 7))
        execute("INSERT IGNORE INTO named VALUES (%s, 0)", (f"name {key}",))
        execute("INSERT INTO loose VALUES (%s, 0)", (key % 50,))

    def _change(self, key: int) -> None:
        execute = self.cursor.execute
        match self.random.randrange(6):
            case 0:
                self._insert(key)
            case 1:
                execute("DELETE FROM numbered WHERE id = %s", (key,))
                execute("DELETE FROM loose WHERE n = %s LIMIT 1", (key % 50,))
            case 2:
                execute("UPDATE numbered SET a = a + 1 WHERE id BETWEEN %s AND %s + 5", (key, key))
            case 3:  # a row moves to another key, and across what is loaded
                execute("UPDATE IGNORE numbered SET id = %s WHERE id = %s", (self.random.randrange(400), key))
                execute("UPDATE IGNORE pairs SET a = a + 1, b = b + 9 WHERE b = %s", (2**63 + key // 7,))
            case 4:
                execute("UPDATE named SET a = a + 1 WHERE name = %s", (f"name {key}",))
                execute("UPDATE pairs SET n = n + 1 WHERE a = %s", (key % 7 - 3,))
            case 5:
                execute("UPDATE loose SET a = a + 1 WHERE n = %s LIMIT 2", (key % 50,))
                execute("DELETE FROM named WHERE name = %s", (f"name {key}",))

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def shop(mariadb: MariaDb, database: str) -> Iterator[Shop]:
    made = Shop(mariadb, database)
    yield made
    made.close()


def assert_equal(copy: Copy, shop: Shop) -> None:
    assert rows_of(copy) == source_rows(shop.server, shop.database)


def test_a_snapshot_and_what_follows_it_give_the_source_s_rows(shop: Shop) -> None:
    shop.create(rows=150)
    copy = Copy()
    writers = [Shop(shop.server, shop.database, seed) for seed in (1, 2)]
    threads = [Thread(target=writer.change, args=(200,), kwargs={"keys": 300}) for writer in writers]
    with Pulling(shop.server, f"{shop.database}.*", copies=[copy], chunk_rows=20) as pulling:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pulling.catch_up(binlog_end(shop.server))
    for writer in writers:
        writer.close()
    assert_equal(copy, shop)
    tables = {item.chunk.table for item in pulling.items if isinstance(item, Transaction) and item.chunk}
    assert tables == {*(f"{shop.database}.{name}" for name in TABLES), REST, ""}


@pytest.mark.parametrize("seed", range(6))
def test_an_interrupted_snapshot_goes_on_where_each_target_was(shop: Shop, seed: int) -> None:
    random = shop.random = Random(seed)
    shop.create(rows=80)
    copies = [Copy(), Copy()]

    def ends_after(items: int):
        seen = count(1)
        return lambda item: next(seen) >= items

    for _ in range(random.randint(2, 4)):
        for copy in copies:
            copy.restart(ends_after(random.randint(1, 12)))
        with Pulling(
            shop.server, f"{shop.database}.*", copies=copies, chunk_rows=random.randint(7, 40)
        ) as pulling:
            shop.change(random.randint(0, 10), keys=200)
            pulling.catch_up(binlog_end(shop.server))
        shop.change(random.randint(0, 25), keys=200)
    for copy in copies:
        copy.restart()
    with Pulling(shop.server, f"{shop.database}.*", copies=copies, chunk_rows=30) as pulling:
        shop.change(10, keys=200)
        pulling.catch_up(binlog_end(shop.server))
    for copy in copies:
        assert_equal(copy, shop)


def test_a_table_created_while_definitions_are_read_is_in_the_snapshot(
    mariadb: MariaDb, database: str
) -> None:
    with mariadb.connect(database=database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE early (id INT PRIMARY KEY)")
        creates = iter(["late", "later"])

        def follows(schema: str, table: str) -> bool:
            if schema == database and (name := next(creates, "")):
                cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY)")
            return schema == database

        options = MysqlOptions(port=mariadb.port, password=PASSWORD)
        with closing(Snapshot(options, follows)) as snapshot:
            names = [source.table.name for source in snapshot.tables]
            assert names == ["early", "late", "later"]
            for source in snapshot.tables:
                snapshot.hold(source)
                snapshot.let_go()
