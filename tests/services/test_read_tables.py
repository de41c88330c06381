"""Definitions of all tables of a database, compared with those that are read one by one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from tidemill.actors import SystemClock
from tidemill.codec.mysql.layout import Layouts
from tidemill.errors import SourceError
from tidemill.events import Changes
from tidemill.puller.mysql.connection import Session, connect, disconnect
from tidemill.puller.mysql.definitions import FEW, read_tables
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.pull import Pull
from tidemill.puller.mysql.tables import FoundTable, SourceTable, find_tables, read_table
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
