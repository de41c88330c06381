"""The shop: a MariaDB workload of every column type, tables with and without keys, and a bank.

All randomness comes from seeds, so a run of one writer repeats itself; several writers interleave as
the server schedules them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import count

import pymysql

from ..events import Row
from .repeated import RepeatedInSession
from .shop_rows import ENUMS, SETS, VALUES, customer, every_type, line, log_entry, order

ACCOUNTS = 10_000
OPENING_BALANCE = 1_000


TABLES = {
    "every_type": f"""
        id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
        ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT, su SMALLINT UNSIGNED,
        mi MEDIUMINT, mu MEDIUMINT UNSIGNED, ii INT, iu INT UNSIGNED, bi BIGINT, bu BIGINT UNSIGNED,
        de DECIMAL(65,30), du DECIMAL(12,2) UNSIGNED, dn DECIMAL(20,0), fl FLOAT, db DOUBLE,
        bt BIT(64), b1 BIT(1), b9 BIT(9),
        ch CHAR(10), vc VARCHAR(300), vl VARCHAR(200) CHARACTER SET latin1,
        tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT,
        bn BINARY(16), vb VARBINARY(300), tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB,
        da DATE, tm TIME, t3 TIME(3), t6 TIME(6), dt DATETIME, d1 DATETIME(1), d6 DATETIME(6),
        ts TIMESTAMP NULL DEFAULT NULL, ts4 TIMESTAMP(4) NULL DEFAULT NULL,
        ts6 TIMESTAMP(6) NULL DEFAULT NULL, yr YEAR,
        en ENUM({", ".join("'" + e.replace("'", "''") + "'" for e in ENUMS)}) CHARACTER SET utf8mb4,
        st SET({", ".join(f"'{s}'" for s in SETS)}), js JSON""",
    "customers": """
        id INT UNSIGNED NOT NULL PRIMARY KEY, name VARCHAR(80) NOT NULL, email VARCHAR(120),
        credit DECIMAL(12,2) NOT NULL DEFAULT 0, since DATETIME NOT NULL, note TEXT""",
    "orders": """
        id BIGINT NOT NULL PRIMARY KEY, customer INT UNSIGNED NOT NULL, total DECIMAL(12,2) NOT NULL,
        state ENUM('open','paid','sent','closed') NOT NULL DEFAULT 'open',
        placed TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), comment VARCHAR(200)""",
    "order_lines": """
        order_id BIGINT NOT NULL, line SMALLINT NOT NULL, sku VARCHAR(20) NOT NULL, quantity INT NOT NULL,
        price DECIMAL(10,2) NOT NULL, PRIMARY KEY (order_id, line)""",
    "stock": "sku VARCHAR(20) NOT NULL PRIMARY KEY, amount INT NOT NULL, weight DOUBLE, ratio FLOAT",
    "events_log": """
        at DATETIME(6) NOT NULL, who VARCHAR(40), what VARCHAR(200), amount FLOAT, data VARBINARY(64)""",
    "accounts": "id INT NOT NULL PRIMARY KEY, balance BIGINT NOT NULL",
}
"""Each table's columns. `events_log` has no key: its rows may repeat."""


def create(connection: pymysql.Connection[Cursor], schema: str = "shop") -> None:
    """Create the schema and its empty tables."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{schema}` CHARACTER SET utf8mb4")
        for name, columns in TABLES.items():
            cursor.execute(f"CREATE TABLE `{schema}`.`{name}` ({columns})")


def fill(connection: pymysql.Connection[Cursor], rows: int, schema: str = "shop", seed: int = 1) -> None:
    """Insert the initial rows: `rows` orders and the rows that belong to them."""
    rng = random.Random(seed)
    insert = Inserter(connection, schema)
    insert("every_type", [every_type(rng, i) for i in range(max(60, rows // 100))])
    insert("customers", [customer(rng, i) for i in range(1, rows // 4 + 2)])
    insert("stock", [(f"sku-{i:05d}", rng.randrange(10_000), rng.random(), rng.random()) for i in range(500)])
    insert("orders", [order(rng, i, rows // 4 + 1) for i in range(1, rows + 1)])
    insert("order_lines", [line(rng, i, n) for i in range(1, rows + 1) for n in range(rng.randrange(1, 4))])
    insert("events_log", [log_entry(rng) for _ in range(rows // 5)])
    insert("accounts", [(i, OPENING_BALANCE) for i in range(ACCOUNTS)])


class Inserter:
    """Multi-row inserts of whole tuples; each call is one transaction."""

    def __init__(self, connection: pymysql.Connection[Cursor], schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def __call__(self, table: str, rows: Sequence[Row]) -> None:
        self.within(table, rows)
        self._connection.commit()

    def within(self, table: str, rows: Sequence[Row]) -> None:
        """Insert within the open transaction."""
        if rows:
            marks = ",".join(["%s"] * len(rows[0]))
            with self._connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO `{self._schema}`.`{table}` VALUES ({marks})", rows)


# --- writers -------------------------------------------------------------------------------------


class Writers:
    """Concurrent clients changing the shop until stopped; each is a thread with its own connection.

    A lost connection is opened again, so the server may be killed; the client's open transaction is then not
    committed.
    """

    def __init__(
        self,
        connect: Callable[[], pymysql.Connection[Cursor]],
        *,
        clients: int = 3,
        schema: str = "shop",
        seed: int = 7,
        pause_seconds: float = 0.0,
        transfers_only: bool = False,
    ) -> None:
        """`pause_seconds` is the pause of each client before a transaction."""
        self._steps = (_transfer,) if transfers_only else _STEPS
        self._schema = schema
        self.transactions = [0] * clients
        self._clients = [
            RepeatedInSession(
                connect,
                partial(self._transaction, client, count(1), random.Random(seed * 1000 + client)),
                name=f"shop-writer-{client}",
                pause_seconds=pause_seconds,
            )
            for client in range(clients)
        ]

    def start(self) -> Writers:
        for client in self._clients:
            client.start()
        return self

    def stop(self) -> int:
        """Stop and join the clients; return the number of transactions they committed."""
        for client in self._clients:
            client.stop()
        return sum(self.transactions)

    def _transaction(
        self, client: int, steps: Iterator[int], rng: random.Random, connection: pymysql.Connection[Cursor]
    ) -> None:
        key = 1_000_000_000 * (client + 1) + next(steps)
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"USE `{self._schema}`")
                self._steps[rng.randrange(len(self._steps))](cursor, rng, key)
            connection.commit()
            self.transactions[client] += 1
        except pymysql.err.OperationalError as error:
            if error.args[0] not in (1205, 1213, 1412):  # lock wait, deadlock, altered meanwhile
                raise
            connection.rollback()
        except pymysql.err.IntegrityError:
            connection.rollback()


Cursor = pymysql.cursors.Cursor


def _transfer(cursor: Cursor, rng: random.Random, _key: int) -> None:
    amount = rng.randrange(1, 50)
    for account, change in zip(sorted(rng.sample(range(ACCOUNTS), 2)), (amount, -amount), strict=True):
        cursor.execute("UPDATE accounts SET balance = balance + %s WHERE id = %s", (change, account))


def _purchase(cursor: Cursor, rng: random.Random, key: int) -> None:
    cursor.execute(
        "INSERT INTO orders (id, customer, total, comment) VALUES (%s, %s, %s, %s)",
        (
            key,
            rng.randint(1, 1000),
            Decimal(rng.randrange(10**6)) / 100,
            rng.choice([None, "", "bitte läuten"]),
        ),
    )
    for number in range(rng.randrange(1, 5)):
        cursor.execute(
            "INSERT INTO order_lines (order_id, line, sku, quantity, price) VALUES (%s,%s,%s,%s,%s)",
            line(rng, key, number),
        )
        cursor.execute(
            "UPDATE stock SET amount = amount - 1, ratio = ratio / 3 WHERE sku = %s",
            (f"sku-{rng.randrange(500):05d}",),
        )


def _change(cursor: Cursor, rng: random.Random, _key: int) -> None:
    cursor.execute(
        "UPDATE orders SET state = %s, total = total + 1 WHERE id BETWEEN %s AND %s",
        (rng.choice(["open", "paid", "sent", "closed"]), *_window(rng, 30)),
    )
    cursor.execute(
        "UPDATE customers SET credit = credit + 0.01, note = %s WHERE id = %s", ("x" * rng.randrange(300), 7)
    )


def _remove(cursor: Cursor, rng: random.Random, _key: int) -> None:
    window = _window(rng, 5)
    cursor.execute("DELETE FROM order_lines WHERE order_id BETWEEN %s AND %s", window)
    cursor.execute("DELETE FROM orders WHERE id BETWEEN %s AND %s", window)
    cursor.execute("DELETE FROM events_log WHERE who = %s LIMIT 3", (rng.choice(["ann", "bob"]),))


def _log(cursor: Cursor, rng: random.Random, _key: int) -> None:
    cursor.executemany("INSERT INTO events_log VALUES (%s,%s,%s,%s,%s)", [log_entry(rng) for _ in range(5)])
    cursor.execute("UPDATE events_log SET amount = amount + 0.1 WHERE what = 'out' LIMIT 4")


def _types(cursor: Cursor, rng: random.Random, key: int) -> None:
    marks = ",".join(["%s"] * (len(VALUES) + 1))
    columns = ",".join(["id", *VALUES])
    cursor.execute(f"INSERT INTO every_type ({columns}) VALUES ({marks})", every_type(rng, key))
    name = rng.choice([name for name in VALUES if name != "iu"])
    # An update that changes nothing isn't logged, but triggers count it: so one column always changes.
    cursor.execute(
        f"UPDATE every_type SET {name} = %s, iu = (COALESCE(iu, 0) + 1) %% 4294967296 WHERE id = %s",
        (VALUES[name](rng), rng.randrange(60)),
    )
    cursor.execute("DELETE FROM every_type WHERE id = %s", (key - rng.randrange(1, 40),))
    cursor.execute("UPDATE every_type SET id = id + 500000000 WHERE id = %s", (key - rng.randrange(1, 40),))


def _window(rng: random.Random, width: int) -> tuple[int, int]:
    first = rng.randrange(1, 20_000)
    return first, first + rng.randrange(width)


_STEPS = (_transfer, _transfer, _purchase, _change, _remove, _log, _types)


def insert_many(
    connection: pymysql.Connection[Cursor], rows: int, schema: str = "shop", first: int = 10**15
) -> None:
    """Run one transaction of `rows` rows, in multi-row statements."""
    rng = random.Random(rows)
    insert = Inserter(connection, schema)
    columns = "id, customer, total, state, placed, comment"
    with connection.cursor() as cursor:
        for start in range(0, rows, 5_000):
            values = [order(rng, first + i, 1000) for i in range(start, min(rows, start + 5_000))]
            cursor.executemany(
                f"INSERT INTO `{schema}`.`orders` ({columns}) VALUES (%s,%s,%s,%s,%s,%s)", values
            )
    insert.within("events_log", [log_entry(rng) for _ in range(10)])
    connection.commit()
