"""Rows that reach a real MariaDB and a real MySQL by LOAD DATA LOCAL."""

from __future__ import annotations

from contextlib import closing

import pytest
from pymysql.constants import CLIENT

from tidemill.dialects.address import parsed
from tidemill.dialects.mysql import plan as mysql_plan
from tidemill.dialects.mysql.connection import Connection
from tidemill.dialects.mysql.session import MySqlSession
from tidemill.errors import SinkError
from tidemill.events import Column, Table
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import ORDERS, insert, transaction
from tidemill.testing.sink_conformance import feed

from ..sink.sql_conformance import assert_refused, loaded
from .test_sink_mariadb import as_printed, of_mariadb, place_of, printed

FEWEST = mysql_plan._FEWEST_TO_LOAD
MANY = [(n, f'it\'s "{n}", NULL\\\n') for n in range(3_000)]


@pytest.fixture(params=["mariadb", "mysql"])
def place(request):
    return place_of(request)


@pytest.fixture(autouse=True)
def loads(monkeypatch):
    """Have any number of rows loaded; the statement of each load."""
    monkeypatch.setattr(mysql_plan, "_FEWEST_TO_LOAD", 1)
    found = []
    load = Connection.load

    def counted(self, statement, lines):
        load(self, statement, lines)
        found.append(statement)

    monkeypatch.setattr(Connection, "load", counted)
    return found


def test_every_value_is_loaded_unchanged(place, loads):
    tables = [of_mariadb(kinds.KEYED), of_mariadb(kinds.KEYLESS)]
    rows = [*kinds.ROWS, kinds.NULLS]
    loaded(place, *tables, rows=rows)
    for table in tables:
        assert printed(place, table) == as_printed(rows)
    assert len(loads) >= 2


def test_text_that_looks_like_the_format_of_lines_is_text(place, loads):
    words = [
        "",
        "'",
        "''",
        "','",
        "'\n'",
        "NULL",
        "'NULL'",
        "\\N",
        "\\",
        "\\'",
        "a'",
        "\t",
        "x,'y",
        "\0",
        "é漢😀",
    ]
    columns = (Column("id", "int", nullable=False), *(Column(f"c{i}", "varchar", length=9) for i in range(3)))
    table = Table("shop", "words", columns, key=(0,), charset="utf8mb4", collation="utf8mb4_bin")
    triples = [(one, other, None) for one in words for other in words]
    rows = [(n, *triple) for n, triple in enumerate(triples)] + [(1_000, None, None, None)]
    loaded(place, table, rows=rows)
    assert sorted(place.rows(table)) == rows
    assert loads


def test_many_rows_are_loaded_by_default_and_few_are_not(place, loads, monkeypatch):
    monkeypatch.setattr(mysql_plan, "_FEWEST_TO_LOAD", FEWEST)
    loaded(place, ORDERS, rows=MANY[:20])
    assert not loads
    feed(place.sink(), [transaction(30, *[insert(ORDERS, *row) for row in MANY[20:]])], max_rows=10_000)
    assert loads
    assert sorted(place.rows(ORDERS)) == MANY


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (insert(ORDERS, 1, "x"), "insert of shop.orders .id=1.: Duplicate entry '1'"),
        (insert(ORDERS, 9, "x" * 41), "insert of shop.orders .id=9.: Data too long"),
    ],
)
def test_a_row_that_does_not_fit_is_named_and_nothing_is_loaded(place, loads, change, named):
    assert_refused(place, ORDERS, change, named)
    assert loads


def test_the_other_rows_are_there_if_rejected_ones_become_dead_letters(place, loads):
    loaded(place, ORDERS)
    rows = [*MANY[:150], (1_000, "x" * 41), *MANY[150:300]]
    changes = [insert(ORDERS, *row) for row in rows]
    feed(place.sink(on_error="dead letters", workers=1), [transaction(30, *changes)], max_rows=1_000)
    assert sorted(place.rows(ORDERS)) == MANY[:300]
    assert len(place.query("SELECT * FROM tidemill_dead_letters")) == 1
    assert len(loads) == 1  # the halves are inserted


def test_a_row_that_a_trigger_forbids_is_named(place, loads):
    loaded(place, ORDERS)
    place.query(
        "CREATE TRIGGER forbid BEFORE INSERT ON orders FOR EACH ROW "
        "IF NEW.id = 9 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no nine'; END IF"
    )
    rows = [insert(ORDERS, *row) for row in MANY[:20]]
    with pytest.raises(SinkError, match=r"insert of shop.orders .id=9.: no nine"):
        feed(place.sink(), [transaction(30, *rows)], max_rows=1_000)
    assert place.rows(ORDERS) == []
    assert loads


def test_a_table_that_is_not_rolled_back_is_not_loaded(place, loads):
    place.query("CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(40)) ENGINE=MyISAM")
    loaded(place, ORDERS, rows=MANY[:10])
    assert len(place.rows(ORDERS)) == 10
    assert not loads


def test_a_server_that_forbids_loads_gets_inserts(place, loads, monkeypatch):
    monkeypatch.setattr(CLIENT, "LOCAL_FILES", 0)
    loaded(place, ORDERS, rows=MANY[:200])
    assert sorted(place.rows(ORDERS)) == MANY[:200]
    assert not loads


def test_no_file_is_sent_to_a_server_that_asks_for_one(place, tmp_path):
    file = tmp_path / "private"
    file.write_text("1\tsecret\n")
    loaded(place, ORDERS)
    session = MySqlSession(parsed(place.server.url(place.database)), "here")
    with closing(session):
        session.connect()
        statement = f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE `{place.database}`.orders"
        with pytest.raises(RuntimeError, match="LOAD_LOCAL"):
            session.execute(statement)
    assert place.rows(ORDERS) == []
