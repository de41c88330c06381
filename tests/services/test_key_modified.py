"""Tables whose key becomes another one between two parts of their load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tidemill.dialects.mysql.client import connect, disconnect
from tidemill.dialects.mysql.key_range import chunk_query, is_key_of
from tidemill.dialects.mysql.result import Result
from tidemill.events import KeyRange, OrderedKey, Table
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.snapshot.mysql.definitions import read_table
from tidemill.snapshot.mysql.estimate import rows_up_to
from tidemill.snapshot.mysql.packet_keys import PacketKeys
from tidemill.snapshot.mysql.tables import FoundTable
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.private_server import PASSWORD
from tidemill.testing.schema_copies import SchemaCopies

from ..key_types import ORDINARY, TYPES
from .test_table_loads import KEYS, Source, source

__all__ = ["source"]

OTHERS = (
    "ADD n INT NOT NULL AUTO_INCREMENT UNIQUE",
    "ADD n INT NOT NULL DEFAULT 7, DROP PRIMARY KEY, ADD PRIMARY KEY (n, id)",
    "DROP PRIMARY KEY",
    "ADD n INT NOT NULL AUTO_INCREMENT, DROP PRIMARY KEY, ADD PRIMARY KEY (n), DROP id",
)
ROWS = 9


@pytest.fixture
def copies(mariadb: MariaDb, database: str, tmp_path: Path) -> Iterator[SchemaCopies]:
    copies = SchemaCopies(
        mariadb, database, tmp_path, chunk_rows=3, snapshot_workers=len(TYPES) + len(OTHERS)
    )
    yield copies
    copies.drop()


@pytest.mark.parametrize(
    "old", [name if name in ORDINARY else pytest.param(name, marks=pytest.mark.soak) for name in TYPES]
)
def test_a_key_is_another_one_after_a_kill(copies: SchemaCopies, old: str) -> None:
    random = Random(old)
    changes = [f"MODIFY id {new}" for new in TYPES] + list(OTHERS)
    for number in range(len(changes)):
        first = random.randint(1, 4)
        values = ", ".join(f"({TYPES[old].format(first + n)})" for n in range(ROWS))
        copies.execute(
            "SET sql_mode = ''",
            f"CREATE TABLE t{number} (id {old} PRIMARY KEY)",
            f"INSERT IGNORE t{number} VALUES {values}",
        )
    copies.follow_in_process("sink.before_commit:20")
    for number, change in enumerate(changes):
        copies.execute("SET sql_mode = ''", f"ALTER IGNORE TABLE t{number} {change}")
    copies.follow()
    assert copies.differences() == []


ADDRESSES = {"INET4": ["'10.0.0.1'"], "INET6": ["'::1'", "'fe80::1'"]}


def test_a_key_is_used_only_with_columns_that_can_have_it(source: Source) -> None:
    keys = KEYS if source.is_mysql else KEYS | ADDRESSES
    with source.server.connect(database=source.database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES'")
        for number, (column, values) in enumerate(keys.items()):
            cursor.execute(f"CREATE TABLE t{number} (k {column} PRIMARY KEY)")
            cursor.execute(f"INSERT INTO t{number} VALUES {', '.join(f'({value})' for value in values)}")
    options = MysqlOptions(port=source.server.port, password=PASSWORD)
    session = connect(options)

    def select(table: Table, after: OrderedKey | None = None) -> Result:
        result = Result(session, options, table, chunk_query(table, KeyRange(after), 10))
        while not result.done:
            result.read()
        return result

    try:
        tables = []
        for number in range(len(keys)):
            found = read_table(session, FoundTable(source.database, f"t{number}"), copies_generated=True)
            assert found is not None
            tables.append(found)
        last = [PacketKeys(found.table).last(select(found.table).last_row)[0] for found in tables]
        for found, own in zip(tables, last, strict=True):
            assert is_key_of(found.table, own)
            for key in last:
                count = rows_up_to(session, found, key)
                if is_key_of(found.table, key):
                    select(found.table, key)
                else:
                    assert count == 0
    finally:
        disconnect(session)
