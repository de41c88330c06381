"""The shop: a MariaDB workload of every column type, tables with and without keys, and a bank.

All randomness comes from seeds, so a run of one writer repeats itself; several writers interleave as
the server schedules them.
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from threading import Event, Thread
from typing import Any

import pymysql

ACCOUNTS = 10_000
OPENING_BALANCE = 1_000

SETS = tuple(f"s{i:02d}" for i in range(64))
ENUMS = ("small", "medium", "large", "it's", 'a "quoted" one', "größe")

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


def create(connection: pymysql.Connection[Any], schema: str = "shop") -> None:
    """Create the schema and its empty tables."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{schema}` CHARACTER SET utf8mb4")
        for name, columns in TABLES.items():
            cursor.execute(f"CREATE TABLE `{schema}`.`{name}` ({columns})")


def fill(connection: pymysql.Connection[Any], rows: int, schema: str = "shop", seed: int = 1) -> None:
    """Rows that are there before anyone follows: `rows` orders and what belongs to them."""
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

    def __init__(self, connection: pymysql.Connection[Any], schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def __call__(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self.within(table, rows)
        self._connection.commit()

    def within(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """The same inside the open transaction."""
        if rows:
            marks = ",".join(["%s"] * len(rows[0]))
            with self._connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO `{self._schema}`.`{table}` VALUES ({marks})", rows)


# --- values --------------------------------------------------------------------------------------


def _integers(bits: int, unsigned: bool) -> Callable[[random.Random], int]:
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return lambda rng: rng.choice([low, high, 0, 1, rng.randint(low, high)])


def _decimals(digits: int, scale: int, unsigned: bool = False) -> Callable[[random.Random], Decimal]:
    top = 10**digits - 1
    return lambda rng: Decimal(
        rng.choice([top, 0, 1, rng.randint(0, top)] + ([] if unsigned else [-top, -1, -rng.randint(0, top)]))
    ).scaleb(-scale, context=_WIDE)


def _texts(length: int, alphabet: str) -> Callable[[random.Random], str]:
    return lambda rng: "".join(
        rng.choices(alphabet, k=rng.choice([0, 1, rng.randint(0, min(length, 60)), min(length, 400)]))
    )


def _bytes(length: int) -> Callable[[random.Random], bytes]:
    return lambda rng: (
        rng.randbytes(rng.choice([0, 1, rng.randint(0, min(length, 80)), min(length, 600)]))
        + (b"\0\0" if length > 2 and rng.random() < 0.2 else b"")
    )


def _times(scale: int) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        seconds = rng.choice([0, 838 * 3600 + 3599, rng.randrange(838 * 3600)])
        fraction = 0 if seconds == 838 * 3600 + 3599 else rng.randrange(10**scale)
        sign = "-" if rng.random() < 0.4 else ""
        return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}" + _fraction(
            fraction, scale
        )

    return make


def _fraction(value: int, scale: int) -> str:
    return f".{value:0{scale}d}" if scale else ""


def _datetimes(scale: int, first: datetime, last: datetime) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        span = int((last - first).total_seconds())
        moment = first + timedelta(seconds=rng.choice([0, span, rng.randrange(span)]))
        return f"{moment:%Y-%m-%d %H:%M:%S}".rjust(19, "0") + _fraction(rng.randrange(10**scale), scale)

    return make


def _json(rng: random.Random) -> str:
    return json.dumps({"n": rng.randint(-(10**12), 10**12), "s": _WIDE_TEXT(rng), "l": [None, True, 1.5]})


_WIDE = Context(prec=80)
_ASCII = string.ascii_letters + string.digits + " '\"\\%_\t\n;`"
_WIDE_TEXT = _texts(80, _ASCII + "äöüß€日本語😀\0")

VALUES: dict[str, Callable[[random.Random], Any]] = {
    **{
        f"{c}{u}": _integers(bits, u == "u") for c, bits in zip("tsm", (8, 16, 24), strict=True) for u in "iu"
    },
    "ii": _integers(32, False),
    "iu": _integers(32, True),
    "bi": _integers(64, False),
    "bu": _integers(64, True),
    "de": _decimals(65, 30),
    "du": _decimals(12, 2, unsigned=True),
    "dn": _decimals(20, 0),
    "fl": lambda rng: rng.choice([0.0, -0.5, 0.1, 3.4028234e38, 1.17549435e-38, rng.uniform(-1e6, 1e6)]),
    "db": lambda rng: rng.choice(
        [0.0, 0.1, 1.7976931348623157e308, 2.2250738585072014e-308, rng.gauss(0, 1e9)]
    ),
    "bt": _integers(64, True),
    "b1": _integers(1, True),
    "b9": _integers(9, True),
    "ch": _texts(10, _ASCII.strip() + "é😀"),
    "vc": _texts(300, _ASCII + "äöüß€日本語😀"),
    "vl": _texts(200, _ASCII + "äöüß€\x81"),
    "tt": _texts(60, _ASCII),
    "tx": _WIDE_TEXT,
    "mt": _WIDE_TEXT,
    "lt": _texts(2000, _ASCII),
    "bn": _bytes(14),
    "vb": _bytes(290),
    "tb": _bytes(200),
    "bl": _bytes(2000),
    "mb": _bytes(2000),
    "lb": _bytes(2000),
    "da": lambda rng: str(rng.choice([date(1000, 1, 1), date(9999, 12, 31), date(2024, 2, 29)])),
    "tm": _times(0),
    "t3": _times(3),
    "t6": _times(6),
    "dt": _datetimes(0, datetime(1000, 1, 1), datetime(9999, 12, 31, 23, 59, 59)),  # noqa: DTZ001
    "d1": _datetimes(1, datetime(1000, 1, 1), datetime(9999, 12, 31, 23, 59, 58)),  # noqa: DTZ001
    "d6": _datetimes(6, datetime(1000, 1, 1), datetime(9999, 12, 31, 23, 59, 58)),  # noqa: DTZ001
    "ts": _datetimes(
        0, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(2038, 1, 19, 3, 14, 6, tzinfo=UTC)
    ),
    "ts4": _datetimes(
        4, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(2038, 1, 19, 3, 14, 6, tzinfo=UTC)
    ),
    "ts6": _datetimes(
        6, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(2038, 1, 19, 3, 14, 6, tzinfo=UTC)
    ),
    "yr": lambda rng: rng.choice([1901, 2155, 2000, 0]),
    "en": lambda rng: rng.choice(ENUMS),
    "st": lambda rng: ",".join(s for s in SETS if rng.random() < rng.choice([0, 0.1, 1])),
    "js": _json,
}
"""What goes into each column of every_type: its extremes, and ordinary values between."""


def every_type(rng: random.Random, key: int) -> tuple[Any, ...]:
    return (key, *(None if rng.random() < 0.1 else make(rng) for make in VALUES.values()))


def customer(rng: random.Random, key: int) -> tuple[Any, ...]:
    name = "".join(rng.choices(string.ascii_letters + "äé ", k=12))
    return (key, name, f"{key}@example.org", Decimal(rng.randrange(10**6)) / 100, "2024-05-06 07:08:09", None)


def order(rng: random.Random, key: int, customers: int) -> tuple[Any, ...]:
    return (
        key,
        rng.randint(1, customers),
        Decimal(rng.randrange(10**7)) / 100,
        rng.choice(["open", "paid", "sent", "closed"]),
        "2026-01-02 03:04:05.678",
        None,
    )


def line(rng: random.Random, order_id: int, number: int) -> tuple[Any, ...]:
    return (order_id, number, f"sku-{rng.randrange(500):05d}", rng.randint(1, 9), Decimal("9.99"))


def log_entry(rng: random.Random) -> tuple[Any, ...]:
    # Few distinct rows on purpose: without a key, equal rows must not be mistaken for one another.
    who = rng.choice(["ann", "Ann", "ann ", "bob", None])
    return (
        f"2026-01-01 00:00:0{rng.randrange(3)}.5",
        who,
        rng.choice(["in", "out"]),
        0.1,
        rng.choice([b"\0", b""]),
    )


# --- writers -------------------------------------------------------------------------------------


class Writers:
    """Concurrent clients changing the shop until stopped; each is a thread with its own connection.

    A lost connection is opened again, so the server may be killed underneath; what a client was
    doing then is simply not committed.
    """

    def __init__(
        self,
        connect: Callable[[], pymysql.Connection[Any]],
        *,
        clients: int = 3,
        schema: str = "shop",
        seed: int = 7,
        pause_seconds: float = 0.0,
        transfers_only: bool = False,
    ) -> None:
        """`pause_seconds` is how long each client rests after a transaction."""
        self._steps = (_transfer,) if transfers_only else _STEPS
        self._connect = connect
        self._pause_seconds = pause_seconds
        self._schema = schema
        self._stop = Event()
        self.transactions = [0] * clients
        self._threads = [
            Thread(target=self._run, args=(i, random.Random(seed * 1000 + i)), name=f"shop-writer-{i}")
            for i in range(clients)
        ]

    def start(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> int:
        """Stop and join the clients; the number of transactions they committed."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        return sum(self.transactions)

    def _run(self, client: int, rng: random.Random) -> None:
        step = 0
        while not self._stop.is_set():
            with suppress(pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError):
                connection = self._connect()
                with connection, suppress(_Stopped):
                    while True:
                        step += 1
                        self._transaction(connection, client, step, rng)
                        self._stop.wait(self._pause_seconds)
            self._stop.wait(0.05)

    def _transaction(
        self, connection: pymysql.Connection[Any], client: int, step: int, rng: random.Random
    ) -> None:
        if self._stop.is_set():
            raise _Stopped
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"USE `{self._schema}`")
                self._steps[rng.randrange(len(self._steps))](cursor, rng, 1_000_000_000 * (client + 1) + step)
            connection.commit()
            self.transactions[client] += 1
        except pymysql.err.OperationalError as error:
            if error.args[0] not in (1205, 1213, 1412):  # lock wait, deadlock, altered meanwhile
                raise
            connection.rollback()
        except pymysql.err.IntegrityError:
            connection.rollback()


class _Stopped(Exception):
    pass


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
    # An update that changes nothing isn't logged, yet triggers count it: so one column always changes.
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
    connection: pymysql.Connection[Any], rows: int, schema: str = "shop", first: int = 10**15
) -> None:
    """One transaction of `rows` rows, in multi-row statements."""
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
