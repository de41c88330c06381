"""The SQL sink into a real MariaDB."""

from __future__ import annotations

from collections import Counter

import pytest

from tidemill.events import Chunk, Table
from tidemill.sink import open_sink
from tidemill.sink.text import datetime_text, time_text

from ..sink import kinds
from ..sink.conformance import Conformance, feed
from ..sink.world import LOOSE, MemoryStore, chunk, create, delete, insert, transaction, update


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


# --- values -----------------------------------------------------------------------------------------


def loaded(place, *tables, rows=()):
    """Create tables in the target, with the same rows in each."""
    items = [create(number, table) for number, table in enumerate(tables, 1)]
    items += [
        chunk(10 + number, table, None, *[insert(table, *row) for row in rows])
        for number, table in enumerate(tables)
    ]
    feed(place.sink(), [*items, transaction(20, chunk=Chunk(""))])


def as_source_prints(column, value):
    """What MariaDB gives for CAST(… AS CHAR) of it, or the bytes themselves."""
    match column.kind:
        case "time":
            return None if value is None else time_text(value, column.scale)
        case "datetime" | "timestamp":
            return None if value is None else datetime_text(value, column.scale)
        case "date" | "year":
            return None if value is None else f"{value:04}" if column.kind == "year" else str(value)
        case "decimal":
            return None if value is None else f"{value:.{column.scale}f}"
    return value


def printed(place, table):
    """All rows with values as the server prints them; those that Python reads exactly as such."""
    parts = [
        f"CAST(`{c.name}` AS CHAR)"
        if c.kind in ("time", "datetime", "timestamp", "date", "year", "decimal")
        else f"CAST(`{c.name}` AS UNSIGNED)"
        if c.kind == "bit"
        else f"CAST(`{c.name}` AS DOUBLE)"
        if c.kind == "float"
        else f"`{c.name}`"
        for c in table.columns
    ]
    return place.query(f"SELECT {', '.join(parts)} FROM `{table.name}` ORDER BY id")


def as_printed(rows):
    return [tuple(map(as_source_prints, kinds.KEYED.columns, row)) for row in rows]


def test_every_value_is_stored_unchanged(place):
    loaded(place, kinds.KEYED, kinds.KEYLESS, rows=[*kinds.ROWS, kinds.NULLS])
    assert printed(place, kinds.KEYED) == as_printed([*kinds.ROWS, kinds.NULLS])
    assert printed(place, kinds.KEYLESS) == as_printed([*kinds.ROWS, kinds.NULLS])


@pytest.mark.parametrize("table", [kinds.KEYED, kinds.KEYLESS], ids=["keyed", "keyless"])
def test_a_row_of_every_value_is_found_again(place, table):
    loaded(place, table, rows=[*kinds.ROWS, kinds.NULLS])
    shifted = [*kinds.ROWS[1:], kinds.NULLS, kinds.ROWS[0]]
    rows = [*kinds.ROWS, kinds.NULLS]
    new = [(row[0], *other[1:]) for row, other in zip(rows, shifted, strict=True)]
    updates = [update(table, before, after) for before, after in zip(rows, new, strict=True)]
    feed(place.sink(), [transaction(30, *updates)], max_rows=1000)
    assert printed(place, table) == as_printed(new)
    feed(place.sink(), [transaction(31, *[delete(table, *row) for row in new[1:]])], max_rows=1000)
    assert printed(place, table) == as_printed(new[:1])


def test_a_row_without_key_is_told_from_those_that_only_look_alike(place):
    words = ["a", "A", "á", "a ", "a\0", "", None, "\uff41"]
    loaded(place, LOOSE, rows=[(1, word) for word in words])
    for ts, word in enumerate(words, 30):
        feed(place.sink(), [transaction(ts, delete(LOOSE, 1, word))])
        left = words[ts - 29 :]
        assert Counter(place.rows(LOOSE)) == Counter((1, word) for word in left)
