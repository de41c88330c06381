"""Both decoders against a live MariaDB: of a row they make the same values, and those it prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pymysql.constants.COMMAND import COM_QUERY

from tidemill.benchmarks.mariadb import MariaDb
from tidemill.codec.mysql.charset import max_bytes, text_decoder
from tidemill.codec.mysql.collation import collation
from tidemill.codec.mysql.schema import CHECKS_QUERY, COLUMNS_QUERY, KEY_QUERY, table_from_information_schema
from tidemill.codec.mysql.table_map import parse_table_map
from tidemill.codec.mysql.text_rows import SESSION, select_expression
from tidemill.events import Table

from ..codec.vectors import Vector, load, outcome, save

TABLE_MAP = 19
ROWS = (23, 24, 25)


class Source:
    """A database of a MariaDB, and its binlog as it is in the server's files."""

    def __init__(self, server: MariaDb, database: str) -> None:
        self._directory = server.data_directory
        self._database = database
        self._connection = server.connect(database=database)
        self._cursor = self._connection.cursor()
        self.query(f"{SESSION}, sql_mode = 'ALLOW_INVALID_DATES'")

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        self._cursor.execute(statement, values or None)
        return list(self._cursor.fetchall())

    def events(self, *statements: str) -> list[bytes]:
        """The binlog events that the statements leave, without checksums."""
        self.query("FLUSH BINARY LOGS")
        file = self.query("SHOW MASTER STATUS")[0][0]
        for statement in statements:
            self.query(statement)
        self.query("FLUSH BINARY LOGS")
        log = (self._directory / file).read_bytes()
        events = []
        at = 4
        while at < len(log):
            size = int.from_bytes(log[at + 9 : at + 13], "little")
            events.append(log[at : at + size - 4])
            at += size
        return events

    def packets(self, statement: str) -> bytes:
        """The row packets of a result, with their headers."""
        connection: Any = self._connection
        connection._execute_command(COM_QUERY, statement)

        def packet() -> bytes:
            header = connection._read_bytes(4)
            return bytes(header + connection._read_bytes(int.from_bytes(header[:3], "little")))

        columns = packet()[4]
        for _ in range(columns + 1):  # and the packet that ends their list
            packet()
        rows = []
        while (row := packet())[4] != 0xFE or len(row) > 12:
            rows.append(row)
        return b"".join(rows)

    def table(self, name: str) -> Table:
        where = (self._database, name)
        return table_from_information_schema(
            *where,
            self.query(COLUMNS_QUERY, *where),
            [column for (column,) in self.query(KEY_QUERY, *where)],
            {check for (check,) in self.query(CHECKS_QUERY, *where)},
        )


@pytest.fixture
def source(mariadb: MariaDb, database: str) -> Iterator[Source]:
    source = Source(mariadb, database)
    yield source
    source._connection.close()


def capture(source: Source, vector: Vector) -> Vector:
    """The vector's rows as this server writes and prints them."""
    rows = ", ".join(f"({i}, {literal}, {-i})" for i, literal in enumerate(vector.literals))
    events = source.events(
        "CREATE OR REPLACE TABLE v "
        f"(id INT NOT NULL PRIMARY KEY, c {vector.definition}, z TINYINT NOT NULL) CHARSET utf8mb4",
        f"INSERT IGNORE INTO v VALUES {rows}",
    )
    table = source.table("v")
    expressions = ", ".join(map(select_expression, table.columns))
    text = table.columns[1].kind not in ("binary", "varbinary", "blob", "bit")
    printed = source.query(f"SELECT {'CONCAT(c)' if text else 'c'} FROM v ORDER BY id")
    return Vector(
        vector.definition,
        vector.literals,
        next(event[27:] for event in events if event[4] == TABLE_MAP),
        tuple(event for event in events if event[4] in ROWS),
        source.packets(f"SELECT {expressions} FROM v ORDER BY id"),
        tuple(value for (value,) in printed),
    )


@pytest.fixture
def captured(source: Source, rewrite: bool) -> list[Vector]:
    vectors = [capture(source, vector) for vector in load()]
    if rewrite:
        save(vectors)
    return vectors


def test_the_recorded_rows_are_what_this_server_writes(captured: list[Vector]) -> None:
    for recorded, vector in zip(load(), captured, strict=True):
        assert outcome(vector) == recorded.outcome, vector.definition
        assert vector.packets == recorded.packets, vector.definition
        assert [event[27:] for event in vector.events] == [event[27:] for event in recorded.events]
