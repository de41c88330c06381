"""The SQL sink into a real MariaDB."""

from __future__ import annotations

import pytest

from tidemill.events import Table
from tidemill.sink import open_sink

from ..sink.conformance import Conformance
from ..sink.world import MemoryStore


class MariaDbPlace:
    at_least_once = False

    def __init__(self, server, database, feed="test"):
        self.server = server
        self.database = database
        self.feed = feed

    def sink(self, **options):
        url = self.server.url(self.database)
        return open_sink("copy", url, feed=self.feed, store=MemoryStore(), options=options)

    def query(self, sql):
        with self.server.connect(database=self.database) as connection, connection.cursor() as cursor:
            cursor.execute("SET time_zone='+00:00'")
            cursor.execute(sql)
            return list(cursor.fetchall())

    def rows(self, table: Table):
        names = ", ".join(f"`{column.name}`" for column in table.columns)
        return self.query(f"SELECT {names} FROM `{table.name}`")


@pytest.fixture
def place(mariadb, database):
    return MariaDbPlace(mariadb, database)


class TestMariaDb(Conformance):
    @pytest.fixture
    def place(self, mariadb, database):
        return MariaDbPlace(mariadb, database)
