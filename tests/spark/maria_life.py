"""Seeded events in a MariaDB or MySQL: rows of every type, a bank, statements of the server's own kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from random import Random
from typing import Any, Final, Self

from pymysql.err import IntegrityError

from tidemill.events import RowChange
from tidemill.spark.offsets.mysql import MysqlOffsets
from tidemill.spark.offsets.offset import Limit, Offset
from tidemill.spark.read.options import read_options
from tidemill.testing import shop
from tidemill.testing.private_server import PrivateServer
from tidemill.testing.shop_rows import every_type

TRANSACTIONS: Final = 60
ACCOUNTS: Final = 200

OF_BOTH: Final = (
    "ALTER TABLE customers ADD c{n} INT DEFAULT {n}",
    "ALTER TABLE every_type ADD c{n} VARCHAR(9) FIRST",
    "ALTER TABLE customers ADD c{n} INT, ADD d{n} DATE AFTER c{n}",
    "UPDATE accounts SET balance = balance + 1 WHERE id % 3 = {n} % 3",
    "UPDATE accounts SET id = id + 100000 WHERE id % 50 = {n} % 50",
    "REPLACE INTO accounts VALUES (1, {n}), (2, {n})",
    "FLUSH BINARY LOGS",
)
"""Statements of MariaDB and MySQL. `{n}` is a unique number. All of these can be followed."""
STATEMENTS: Final = (
    *OF_BOTH,
    "ALTER TABLE stock ADD `c\r\n{n}` INT DEFAULT {n}",
    "ALTER TABLE customers DROP COLUMN IF EXISTS nosuch, ADD COLUMN IF NOT EXISTS NAME INT, ADD c{n} INT",
    "SET STATEMENT lock_wait_timeout=60, time_zone='+05:30', timestamp=1700000000 FOR "
    "ALTER TABLE orders ADD c{n} DATETIME DEFAULT NOW()",
    "SET STATEMENT lock_wait_timeout=60 FOR INSERT INTO stock (sku, amount) VALUES ('new {n}', 1)",
    "SET STATEMENT max_statement_time=5 FOR UPDATE stock SET amount = {n} WHERE amount > 5000",
    "ALTER TABLE customers ADD COLUMN IF NOT EXISTS gone INT",
    "ALTER TABLE customers DROP COLUMN IF EXISTS gone",
    "CREATE TABLE IF NOT EXISTS stock (id INT)",
)
"""Statements of MariaDB."""
MYSQL_STATEMENTS: Final = (
    *OF_BOTH,
    "INSERT INTO stock (sku, amount) VALUES ('new {n}', 1) AS n ON DUPLICATE KEY UPDATE amount = n.amount",
    "UPDATE every_type SET js = JSON_SET(js, '$.a', {n}) WHERE id % 3 = {n} % 3",
)


_ZERO_DATES: Final = (
    "UPDATE every_type SET da = '0000-00-00', d6 = '0000-00-00 00:00:00', ts = 0 WHERE id < 10"
)
ALWAYS: Final = {
    20: _ZERO_DATES,
    40: "INSERT INTO events_log (at, what) SELECT '2026-01-01', seq FROM seq_1_to_700",
}
"""In every history, before this transaction: dates that no calendar has, and a large transaction."""
MYSQL_ALWAYS: Final = {
    20: _ZERO_DATES,
    40: "INSERT INTO events_log (at, what) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n "
    "WHERE i < 700) SELECT '2026-01-01', i FROM n",
}
FOLLOWED: Final = (
    "DROP TABLE IF EXISTS nosuch",
    "RENAME TABLE IF EXISTS nosuch TO nosuch2",
    "CREATE TABLE made (id INT PRIMARY KEY, note TEXT)",
    "TRUNCATE TABLE order_lines",
    "SET STATEMENT lock_wait_timeout=60 FOR TRUNCATE TABLE order_lines",
    "ALTER TABLE orders MODIFY comment TEXT",
    "DROP TABLE customers",
)
"""Schema changes that a local feed applies, or loads the table again for."""


class MariaLife:
    """Made, it has rows; `live` makes the history."""

    typed_table = "every_type"
    statements = STATEMENTS
    always: Mapping[int, str] = ALWAYS
    place: Callable[[str], str] = str
    """Returns what a position has in a batch of a capture, too."""

    def __init__(self, seed: int, server: PrivateServer, schema: str) -> None:
        self.random = Random(seed)
        self.schema = schema
        self.url = server.url()
        self.tables = f"{schema}.*"
        self._connection = server.connect(database=schema, autocommit=False)
        shop.create(self._connection, schema)
        insert = shop.Inserter(self._connection, schema)
        insert("every_type", [every_type(self.random, number) for number in range(20)])
        insert("accounts", [(number, shop.OPENING_BALANCE) for number in range(ACCOUNTS)])
        insert("stock", [(f"sku-{number:05d}", 1, 0.5, None) for number in range(500)])
        self.start = self.end = self.now()

    @staticmethod
    def key_of(row: RowChange) -> None:
        """A partition has whole tables, some without a key: their order is that of all rows."""

    @property
    def bounds(self) -> dict[str, str]:
        return {"fromPosition": self.start.position, "toPosition": self.end.position}

    @property
    def beginning(self) -> dict[str, str]:
        return {"startingPosition": self.start.position}

    def now(self) -> Offset:
        with closing(self._offsets()) as offsets:
            return offsets.at_position(offsets.latest().position)

    def _offsets(self) -> MysqlOffsets:
        return MysqlOffsets(read_options({"source": self.url, "tables": self.tables}))

    def borders(self) -> list[Offset]:
        """From start to end, in steps of a bounded number of rows."""
        found = [self.start]
        with closing(self._offsets()) as offsets:
            while found[-1].position != self.end.position:
                limit = Limit(rows=self.random.choice((100, 300, 500)))
                found.append(offsets.following(found[-1], self.end, limit))
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._connection.close()

    def execute(self, statement: str) -> None:
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(statement)
        self._connection.commit()

    def until_now(self) -> None:
        """It ends here."""
        with closing(self._offsets()) as offsets:
            self.end = offsets.following(self.start, None, Limit())

    def live(self) -> None:
        for number in range(TRANSACTIONS):
            if number in self.always:
                self.execute(self.always[number])
            with closing(self._connection.cursor()) as cursor, suppress(IntegrityError):
                if self.random.random() < 0.3:
                    self._run(cursor, number)
                else:
                    for _ in range(self.random.choice((1, 1, 3))):
                        self._step(cursor, number)
                if self.random.random() < 0.9:
                    self._connection.commit()
            self._connection.rollback()
        self.until_now()

    def _run(self, cursor: Any, number: int) -> None:
        statement = self.random.choice(self.statements).format(n=10 * number + self.random.randrange(10))
        cursor.execute(statement)

    def _step(self, cursor: Any, number: int) -> None:
        self.random.choice(shop._STEPS)(cursor, self.random, 1000 * number + self.random.randrange(1000))


class MysqlLife(MariaLife):
    """The same of a MySQL."""

    statements = MYSQL_STATEMENTS
    always = MYSQL_ALWAYS

    @staticmethod
    def place(position: str) -> str:
        """The file and the offset: a MySQL doesn't tell the GTIDs of a position, which a capture counts."""
        return position.partition(" ")[0]

    def live(self) -> None:
        self.execute("SET sql_mode = 'STRICT_TRANS_TABLES'")  # which allows zero dates
        super().live()
