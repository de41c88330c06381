"""Readers of a copy, each look a transaction of its own, while the source's transactions arrive."""

from __future__ import annotations

from contextlib import ExitStack
from random import Random
from threading import Event, Thread

import psycopg
import pytest

from tidemill.testing.following import following
from tidemill.testing.isolation import Read, anomalies
from tidemill.testing.shop_copies import until_caught_up

FEED = """\
name = "lists"
data_dir = "{directory}/state"

[source]
url = "{source}"
tables = ["{database}.lists"]

[[sink]]
url = "{target}"
order = "{order}"
{options}
"""
COPY = "copy_of_lists"
READERS = 2
KEYS_OF_A_READ = 5


def append(server, database: str, keys: int, transactions: int) -> dict[int, list[int]]:
    """Commit transactions that append their numbers to lists; return the keys of each."""
    random = Random(transactions)
    appends = {
        number: random.sample(range(keys), random.randint(1, 4)) for number in range(1, transactions + 1)
    }
    update = f"UPDATE {database}.lists SET numbers = CONCAT(numbers, %s) WHERE id = %s"
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for number, own in appends.items():
            for key in own:
                cursor.execute(update, (f"{number},", key))
            connection.commit()
    return appends


class Reader(Thread):
    """Reads lists of random keys until it is ended."""

    def __init__(self, connection, table: str, keys: int, number: int, reads: list[Read]) -> None:
        super().__init__()
        self.ended = Event()
        self._connection = connection
        self._select = f"SELECT numbers FROM {table} WHERE id = %s"
        self._keys = keys
        self._number = number
        self._reads = reads

    def run(self) -> None:
        random = Random(self._number)
        with self._connection as connection, connection.cursor() as cursor:
            while not self.ended.is_set():
                lists = {}
                for key in random.sample(range(self._keys), KEYS_OF_A_READ):
                    cursor.execute(self._select, (key,))
                    lists[key] = [int(number) for number in cursor.fetchone()[0].split(",")[:-1]]
                connection.commit()
                self._reads.append(Read(self._number, lists))


class MariaDbTarget:
    def __init__(self, server, database: str) -> None:
        self._server = server
        self.url = server.url()
        self.options = f'schema = "{COPY}"'
        self.table = f"{COPY}.lists"

    def connect(self):
        return self._server.connect(autocommit=False)  # REPEATABLE READ is the server's own


class PostgresTarget:
    def __init__(self, server, database: str) -> None:
        self._server = server
        self.url = server.start().url()
        self.options = ""
        self.table = f"{database}.lists"

    def connect(self):
        connection = self._server.connect(autocommit=False)
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        return connection


@pytest.fixture(params=["mariadb", "postgresql"])
def target(request, own):
    if request.param == "mariadb":
        return MariaDbTarget(request.getfixturevalue("private_mariadb"), "shop")
    return PostgresTarget(request.getfixturevalue("private_postgresql"), "shop")


def read_beside(directory, server, target, order: str, *, keys: int, transactions: int):
    """Copy transactions while others read the copy; return the appends, and what was read."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE shop.lists (id INT PRIMARY KEY, numbers MEDIUMTEXT NOT NULL)")
        cursor.executemany("INSERT INTO shop.lists VALUES (%s, '')", [(key,) for key in range(keys)])
    config = directory / "feed.toml"
    config.write_text(
        FEED.format(
            directory=directory,
            source=server.url(),
            database="shop",
            target=target.url,
            order=order,
            options=target.options,
        )
    )
    reads: list[Read] = []
    with following(config) as feed, ExitStack() as ending:
        until_caught_up(directory / "state", server, feed)
        readers = [Reader(target.connect(), target.table, keys, number, reads) for number in range(READERS)]
        for reader in readers:
            reader.start()
            ending.callback(reader.join)
            ending.callback(reader.ended.set)
        appends = append(server, "shop", keys, transactions)
        until_caught_up(directory / "state", server, feed)
    return appends, reads


@pytest.mark.parametrize("order", ["strict", "by key"])
def test_an_order_of_transactions_explains_every_read(tmp_path, own, private_mariadb, target, order):
    appends, reads = read_beside(tmp_path, private_mariadb, target, order, keys=200, transactions=1_500)
    assert anomalies(appends, reads, strict=order == "strict") == []
    assert len({sum(map(len, read.lists.values())) for read in reads}) > 10  # they did see lists grow


@pytest.mark.soak
@pytest.mark.parametrize("order", ["strict", "by key"])
def test_an_order_explains_the_reads_of_a_hundred_thousand_transactions(
    tmp_path, own, private_mariadb, target, order
):
    appends, reads = read_beside(tmp_path, private_mariadb, target, order, keys=2_000, transactions=100_000)
    assert anomalies(appends, reads, strict=order == "strict") == []
