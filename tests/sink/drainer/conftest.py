from __future__ import annotations

import pytest


@pytest.fixture
def checkpoints(mariadb):
    """The server; nobody else uses the schema of drainers' checkpoints in it."""
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS tidb_binlog")
        yield mariadb
        cursor.execute("DROP DATABASE IF EXISTS tidb_binlog")


@pytest.fixture
def rows(checkpoints):
    """Runs a statement on the server; returns the rows."""

    def run(statement):
        return checkpoints.execute(statement)

    return run
