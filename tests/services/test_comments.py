"""Comments before the first word of a statement, live: a server skips them, and so does the feed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.puller.puller import Connected
from tidemill.testing.mariadb_client import Client
from tidemill.testing.private_server import PrivateServer
from tidemill.testing.schemas_at_once import SchemasAtOnce

from .pulling import Pulling

COMMENTS = (
    "--\n", "--\r\n", "--\t\n", "--\x01\n", "--\x7f x\n", "-- x\n", "--\n-- Table structure\n--\n", "#\n",
    "#x\n",
    "/**/", "/***/", "/* a /* b */", "/* a\0 */", "/*+ x */", "/*!*/", "/*! /* x */ */", "/*! -- x */\n */",
    "/*!50003 */", "/*!050003 */", "/*!999999 x */", "/*!99999 a /* b */ c */", "/*M!999999 x */", "/*M! */",
    " \t\v\f\r\n", "/**/" * 40,
)  # fmt: skip
TABLES = tuple(
    statement
    for name in ("emptied", "altered", "dropped", "renamed", "indexed")
    for statement in (f"CREATE TABLE {name} (id INT PRIMARY KEY, a INT)", f"INSERT INTO {name} VALUES (1, 2)")
)
STATEMENTS = (
    "TRUNCATE TABLE {schema}.emptied",
    "ALTER TABLE altered ADD b INT DEFAULT 5",
    "DROP TABLE dropped",
    "RENAME TABLE renamed TO other",
    "CREATE INDEX x ON indexed (a)",
    "DROP INDEX x ON indexed",
    "CREATE TABLE made (id INT PRIMARY KEY)",
    "INSERT INTO made VALUES (1)",
    "CREATE PROCEDURE p() DELETE FROM altered",
    "GRANT SELECT ON *.* TO root@localhost",
    "ANALYZE TABLE altered",
)


@pytest.mark.parametrize("kind", ["mariadb", "mysql97"])
def test_a_comment_does_not_hide_a_statement(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: PrivateServer = request.getfixturevalue(kind)
    copies = SchemasAtOnce(server, "comment", tmp_path, {})
    try:
        copies.create(len(COMMENTS), TABLES)
        for number, comment in enumerate(COMMENTS):
            copies.execute(number, ";\n".join(f"{comment}{one}" for one in STATEMENTS))
        copies.follow()
        found = {comment: copies.differences(number) for number, comment in enumerate(COMMENTS)}
        assert found == {comment: [] for comment in COMMENTS}
        assert not copies.loads
    finally:
        copies.drop(len(COMMENTS))


def failure(sql: Client, *statements: str) -> str:
    sql("CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1)")
    with Pulling(sql.server, f"{sql.database}.*", snapshot=False) as pulling:
        pulling.wait_until_told(Connected)
        sql(*statements)
        return str(pulling.wait_for_error())


@pytest.mark.parametrize(
    "statement",
    [
        "--\nUPDATE t SET id = 2",
        "ANALYZE UPDATE t SET id = 2",
        "ANALYZE FORMAT=JSON DELETE FROM t",
        "SET STATEMENT lock_wait_timeout = 5 FOR /*M!100100 DELETE */ FROM t",
    ],
)
def test_a_statement_in_place_of_rows_of_mariadb(sql: Client, statement: str) -> None:
    message = failure(sql, "SET binlog_format = STATEMENT", statement)
    assert f"instead of the rows of {sql.database}.t, {statement!r}: set binlog_format" in message


@pytest.mark.parametrize(
    "statement",
    [
        "--\nUPDATE t SET id = 2",
        "/*! WITH */ c AS (SELECT 1 AS a) UPDATE t SET id = 2",
        "WITH c AS (SELECT 1 AS a) DELETE FROM t WHERE id IN (SELECT a FROM c)",
    ],
)
def test_a_statement_in_place_of_rows_of_mysql(mysql_sql: Client, statement: str) -> None:
    message = failure(mysql_sql, "SET binlog_format = STATEMENT", statement)
    assert f"instead of the rows of {mysql_sql.database}.t, {statement!r}: set binlog_format" in message
