"""Statements that change no followed table, live: a feed goes on after whatever of them a server logs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pymysql
import pytest

from tidemill.testing.private_server import PrivateServer
from tidemill.testing.schemas_at_once import SchemasAtOnce

STATEMENTS = Path(__file__).with_name("harmless_statements.txt").read_text()


@pytest.mark.parametrize("kind", ["mariadb", "mysql97"])
def test_a_feed_goes_on_after_them(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: PrivateServer = request.getfixturevalue(kind)
    copies = SchemasAtOnce(server, "harmless", tmp_path, {})
    try:
        copies.create(1, ["CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 1)"])
        schema = copies.schema(0)
        with server.connect(database=schema) as connection, connection.cursor() as cursor:
            for statement in STATEMENTS.replace("{schema}", schema).splitlines():
                with suppress(pymysql.MySQLError):  # each vendor has statements that the other lacks
                    cursor.execute(statement)
                    cursor.fetchall()
            cursor.execute("UPDATE t SET a = 100")
            connection.commit()
        copies.follow()
        assert copies.differences(0) == []
        assert not copies.loads
    finally:
        copies.drop(1)
