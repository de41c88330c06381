"""Definitions of all tables of a database, compared with those that are read one by one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from tidemill.actors import SystemClock
from tidemill.codec.mysql.column_defaults import default_for_existing_rows
from tidemill.codec.mysql.layout import Layouts
from tidemill.dialects.mysql.client import Session, connect, disconnect
from tidemill.errors import SourceError
from tidemill.events import Changes
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.pull import Pull
from tidemill.snapshot.mysql.definitions import FEW, read_table, read_tables
from tidemill.snapshot.mysql.tables import FoundTable, SourceTable, find_tables
from tidemill.testing.mariadb import PASSWORD
from tidemill.testing.mariadb_client import Client

BOTH = [
    "plain (id INT PRIMARY KEY, name VARCHAR(9) NOT NULL, UNIQUE (name))",
    "no_key (a INT, b INT NOT NULL, KEY (b))",
    "nullable_unique (a INT, b INT NOT NULL, UNIQUE (a))",
    "unique_as_key (a INT NOT NULL, b INT NOT NULL, UNIQUE one (a))",
    "longest_unique (a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE a_one (a), UNIQUE b_two (c, b))",
    "first_by_name (a INT NOT NULL, b INT NOT NULL, UNIQUE zz (b), UNIQUE Aa (a))",
    "key_of_two (a INT, b VARCHAR(9), c INT AUTO_INCREMENT, KEY (c), PRIMARY KEY (b, a))",
    "`Größe ``x`` %s` (`%d` INT PRIMARY KEY, `ü` TEXT CHARACTER SET latin1) COLLATE latin1_bin",
    "documents (id INT PRIMARY KEY, body JSON, other LONGTEXT CHECK (JSON_VALID(other)))",
    "defaults (id INT PRIMARY KEY, a INT DEFAULT 3, b BINARY(4) DEFAULT 'a', c DATETIME(3) DEFAULT "
    "CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3))",
    "part_of_key (a INT NOT NULL, b INT NOT NULL, UNIQUE z (a, b), UNIQUE c (a))",
    "prefix (a TEXT NOT NULL, UNIQUE (a(5)))",
    "computed (id INT PRIMARY KEY, twice INT AS (id * 2) STORED)",
]
MARIADB = [*BOTH, "addresses (id INET6 PRIMARY KEY, name UUID)", "long_unique (a TEXT, UNIQUE (a))"]
MYSQL = [
    *BOTH,
    "by_expression (a INT NOT NULL, UNIQUE ((a + 1)))",
    "numbers (id INT PRIMARY KEY, v VECTOR(3))",
]


def check(client: Client, tables: Sequence[str]) -> None:
    assert len(tables) > FEW
    for table in tables:
        client(f"CREATE TABLE {table}")
    session = connect(MysqlOptions(port=client.server.port, password=PASSWORD))
    try:
        found = [one for one in find_tables(session) if one.schema == client.database]
        gone = FoundTable(client.database, "gone")
        at_once = {one.name: _comparable(table) for one, table in read_tables(session, [*found, gone])}
        singly = {one.name: _comparable(_read(session, one)) for one in found}
    finally:
        disconnect(session)
    assert at_once == singly
    assert len(at_once) == len(tables)


def _read(session: Session, one: FoundTable) -> SourceTable | SourceError | None:
    try:
        return read_table(session, one)
    except SourceError as error:
        return error


def _comparable(table: SourceTable | SourceError | None) -> object:
    return str(table) if isinstance(table, SourceError) else table


def test_definitions_read_at_once_are_those_read_one_by_one(sql: Client) -> None:
    check(sql, MARIADB)


def test_mysql_s_definitions_read_at_once_are_those_read_one_by_one(mysql_sql: Client) -> None:
    check(mysql_sql, MYSQL)


BYTES = bytes(range(256))
DEFAULTS = {"a": b"\x80", "b": b"\x00?'\\\xff", "c": BYTES, "d": b"why?", "e": b"?\xfe"}


def check_defaults(client: Client) -> None:
    """All bytes are in the default of a binary column, whether it may be NULL or not; the table is empty."""
    columns = [
        f"{name} VARBINARY(300) {'NOT NULL' if name in 'abc' else ''} DEFAULT 0x{value.hex()}"
        for name, value in DEFAULTS.items()
    ]
    client(f"CREATE TABLE t (id INT PRIMARY KEY DEFAULT 7, {', '.join(columns)}, n INT DEFAULT 5, KEY (n))")
    session = connect(MysqlOptions(port=client.server.port, password=PASSWORD))
    try:
        found = _read(session, FoundTable(client.database, "t"))
    finally:
        disconnect(session)
    assert isinstance(found, SourceTable)
    defaults = {column.name: default_for_existing_rows(column, 0.0) for column in found.table.columns}
    assert defaults == {"id": 7, **DEFAULTS, "n": 5}


def test_binary_defaults_are_read_exactly(sql: Client) -> None:
    check_defaults(sql)


def test_mysql_s_binary_defaults_are_read_exactly(mysql_sql: Client) -> None:
    check_defaults(mysql_sql)


def test_without_a_catalog_no_definition_is_held(own: Client) -> None:
    own("CREATE TABLE kept (id INT PRIMARY KEY)")
    options = MysqlOptions(port=own.server.port, password=PASSWORD, snapshot=False)
    now = SystemClock().now
    held = {}
    for name, knows in (("without", None), ("with", lambda _schema, _table: True)):
        pull = Pull(options, lambda _schema, _table: True, Layouts(), None, [], now, knows=knows)
        before = _savepoints(own)
        with closing(pull.steps()) as steps:
            assert any(isinstance(step, Changes) for step in steps)
        held[name] = _savepoints(own) - before
    assert held == {"without": 0, "with": 1}


def _savepoints(client: Client) -> int:
    return int(client("SHOW GLOBAL STATUS LIKE 'Com_savepoint'")[0][1])
