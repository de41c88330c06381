"""Invalid values of ENUM columns (index 0), copied from a server without strict mode into strict sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidemill.errors import SinkError
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mysql import MySql
from tidemill.testing.private_server import PrivateServer
from tidemill.testing.schemas_at_once import SchemasAtOnce

TABLES = (
    "SET sql_mode = ''",
    "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('a','b'), f ENUM('','0','?') NOT NULL, "
    "u ENUM('a') CHARACTER SET utf16, n INT)",
    "CREATE TABLE keyless (e ENUM('a','b') NOT NULL, f ENUM('','x'))",
    "CREATE TABLE keyed (e ENUM('a','b') PRIMARY KEY, n INT)",
    "INSERT INTO t VALUES (1, 'wrong', 'wrong', 'wrong', 1), (2, 'a', '', 'a', 2), (3, NULL, '0', NULL, 3)",
    "INSERT INTO keyless VALUES ('wrong', 'wrong'), ('wrong', ''), ('a', 'x')",
    "INSERT INTO keyed VALUES ('wrong', 1), ('a', 2)",
)
CHANGES = """\
SET sql_mode = '';
INSERT INTO t SELECT id + 10, e, f, u, n FROM t;
UPDATE t SET e = 'wrong', u = 'wrong' WHERE id = 2;
UPDATE t SET f = 'wrong', n = 9 WHERE id = 3;
UPDATE t SET e = 'b', f = '?' WHERE id = 1;
UPDATE t SET id = 20 WHERE id = 11;
UPDATE t SET u = 'wrong', n = n + 1 ORDER BY id;
UPDATE keyed SET n = 7;
INSERT INTO keyless SELECT e, f FROM t;
DELETE FROM keyless WHERE f = 0 LIMIT 1;
DELETE FROM keyless WHERE f = 1 LIMIT 1;
UPDATE keyless SET f = 'wrong' WHERE e = 'a' LIMIT 1"""
INDEXES = {
    "t": "id, e + 0, f + 0, u + 0, n",
    "keyless": "e + 0, f + 0",
    "keyed": "e + 0, n",
}


OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "workers": {"mysql": {"verify": "before"}},
    "one connection": {"mariadb": {"workers": 1}, "mysql": {"workers": 1}},
    "safe mode": {"mariadb": {"safe_mode": True}, "mysql": {"safe_mode": True}},
}


@pytest.fixture(params=OPTIONS.values(), ids=OPTIONS)
def copies(
    request: pytest.FixtureRequest,
    mariadb: MariaDb,
    private_mariadb: MariaDb,
    mysql97: MySql,
    tmp_path: Path,
) -> SchemasAtOnce:
    servers = {"mariadb": private_mariadb.start(), "mysql": mysql97}
    return SchemasAtOnce(mariadb, "members", tmp_path, servers, request.param)


def test_invalid_values_of_enums_are_copied_by_their_index(copies: SchemasAtOnce) -> None:
    try:
        copies.create(1, TABLES)
        check(copies)
        copies.execute(0, CHANGES)
        copies.follow()
        check(copies)
        copies.execute(0, "SET sql_mode = '';\nDELETE FROM keyed;\nDELETE FROM keyless;\nDELETE FROM t")
        copies.follow()
        check(copies)
    finally:
        copies.drop(1)


def test_beside_an_invalid_value_others_are_still_checked(copies: SchemasAtOnce) -> None:
    try:
        copies.create(1, TABLES)
        with copies.servers["mariadb"].connect(database=copies.schema(0)) as connection:
            connection.cursor().execute("ALTER TABLE t MODIFY n TINYINT")
        copies.execute(0, "SET sql_mode = '';\nINSERT INTO t VALUES (5, 'wrong', '', 'a', 1000)")
        with pytest.raises(SinkError, match=r"insert of .*Out of range value for column 'n'"):
            copies.follow()
    finally:
        copies.drop(1)


def check(copies: SchemasAtOnce) -> None:
    for table, columns in INDEXES.items():
        wanted, *found = (
            indexes(server, f"SELECT {columns} FROM {copies.schema(0)}.{table} ORDER BY 1, 2")
            for server in (copies.source, *copies.servers.values())
        )
        assert found == [wanted, wanted]


def indexes(server: PrivateServer, query: str) -> list[tuple[int | None, ...]]:
    return server.execute(query)
