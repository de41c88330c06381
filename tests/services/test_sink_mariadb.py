"""The SQL sink into a real MariaDB and a real MySQL."""

from __future__ import annotations

import re
import tracemalloc
from collections import Counter
from contextlib import suppress
from decimal import Decimal

import pytest
from msgspec.structs import replace

from tidemill.codec.text import datetime_text, time_text
from tidemill.dialects.mysql.session import MySqlSession
from tidemill.errors import CheckpointError, Retryable, SinkError
from tidemill.events import AddColumn, Chunk, Column, DropColumn, RenameTables, Table, Transaction
from tidemill.sink import Delivery, DeliveryOptions, open_sink
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import (
    LOOSE,
    ORDERS,
    PAIRS,
    MemoryStore,
    alter,
    batch,
    chunk,
    create,
    delete,
    insert,
    transaction,
    update,
)
from tidemill.testing.progress import eventually
from tidemill.testing.sink_conformance import HISTORY, STATES, expected, feed

from ..dialects.places import MariaDbPlace
from ..sink.sql_conformance import assert_refused, loaded
from .server_conformance import ServerConformance


@pytest.fixture(params=["mariadb", "mysql"])
def place(request):
    return place_of(request)


def place_of(request):
    """A place on the server that the fixture's parameter names."""
    if request.param == "mariadb":
        return MariaDbPlace(request.getfixturevalue("mariadb"), request.getfixturevalue("database"))
    return MariaDbPlace(request.getfixturevalue("mysql97"), request.getfixturevalue("mysql_database"))


class TestMariaDb(ServerConformance):
    words = (*ServerConformance.words, "a\0")

    @pytest.fixture(params=["mariadb", "mysql"])
    def place(self, request):
        return place_of(request)


# --- values -----------------------------------------------------------------------------------------


def as_source_prints(column, value):
    """Return MariaDB's CAST(… AS CHAR) of the value, or the bytes themselves."""
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


def of_mariadb(table):
    """Return the table with MariaDB's JSON, which is text with a charset."""
    utf8 = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}
    columns = [replace(column, **utf8) if column.kind == "json" else column for column in table.columns]
    return replace(table, columns=tuple(columns))


def test_every_value_is_stored_unchanged(place):
    keyed, keyless = of_mariadb(kinds.KEYED), of_mariadb(kinds.KEYLESS)
    loaded(place, keyed, keyless, rows=[*kinds.ROWS, kinds.NULLS])
    assert printed(place, keyed) == as_printed([*kinds.ROWS, kinds.NULLS])
    assert printed(place, keyless) == as_printed([*kinds.ROWS, kinds.NULLS])


@pytest.mark.parametrize(
    "table", [of_mariadb(kinds.KEYED), of_mariadb(kinds.KEYLESS)], ids=["keyed", "keyless"]
)
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


# --- definitions ------------------------------------------------------------------------------------


def definition(place, table):
    """Return the table's definition, without charsets beside collations, which only MySQL may print."""
    text = place.query(f"SHOW CREATE TABLE `{table}`")[0][1]
    return re.sub(r" CHARACTER SET \w+(?= COLLATE)", "", text)


BY_HAND = r"""
CREATE TABLE goods (
  id bigint unsigned NOT NULL,
  kind enum('a','it''s','b\\c') CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT 'it''s',
  name varchar(30) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci NULL DEFAULT 'a\\b\'c',
  price decimal(10,2) unsigned NOT NULL DEFAULT 1.50,
  made timestamp(3) NOT NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3),
  seen datetime NULL,
  note tinytext NULL,
  body longblob NULL,
  flags bit(5) NULL DEFAULT b'101',
  born year NULL,
  extra json NULL,
  PRIMARY KEY (kind, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_bin
"""

GOODS = Table(
    "shop",
    "goods",
    (
        Column("id", "bigint", unsigned=True, nullable=False),
        Column(
            "kind",
            "enum",
            members=("a", "it's", "b\\c"),
            charset="latin1",
            collation="latin1_bin",
            nullable=False,
            default="'it''s'",
        ),
        Column(
            "name",
            "varchar",
            length=30,
            charset="utf8mb3",
            collation="utf8mb3_general_ci",
            default=r"'a\\b\'c'",
        ),
        Column("price", "decimal", True, 10, 2, nullable=False, default="1.50"),
        Column(
            "made",
            "timestamp",
            scale=3,
            nullable=False,
            default="current_timestamp(3)",
            on_update="current_timestamp(3)",
        ),
        Column("seen", "datetime"),
        Column("note", "text", length=1, charset="utf8mb3", collation="utf8mb3_bin"),
        Column("body", "blob", length=4),
        Column("flags", "bit", length=5, default="b'101'"),
        Column("born", "year"),
        Column("extra", "json"),
    ),
    key=(1, 0),
    charset="utf8mb3",
    collation="utf8mb3_bin",
)


def test_a_table_is_created_as_it_is_in_the_source(place):
    place.query(BY_HAND)
    wanted = definition(place, "goods")
    place.query("DROP TABLE goods")
    feed(place.sink(), [create(1, GOODS)])
    assert definition(place, "goods") == wanted


def test_a_key_of_long_texts_has_prefixes(place):
    columns = (
        Column("a", "text", length=2, charset="utf8mb4", collation="utf8mb4_bin", nullable=False),
        Column("b", "blob", length=1, nullable=False),
    )
    table = Table("shop", "long_keys", columns, key=(0, 1))
    rows = [(str(n) + "x" * 500, b"y" * 200) for n in range(3)]
    loaded(place, table, rows=rows)
    feed(place.sink(), [transaction(30, delete(table, *rows[1]))])
    assert Counter(place.rows(table)) == Counter([rows[0], rows[2]])


def test_names_may_hold_any_character(place):
    columns = (Column('`a` {b} "c" \\ \r\n %s', "int", nullable=False), Column("select", "varchar", length=5))
    table = Table("shop", "odd `name` {0} %", columns, key=(0,))
    loaded(place, Table(table.schema, table.name, columns, (0,)), rows=[(1, "x"), (2, "y")])
    feed(place.sink(), [transaction(30, update(table, (1, "x"), (1, "z")), delete(table, 2, "y"))])
    assert place.query("SELECT * FROM `odd ``name`` {0} %`") == [(1, "z")]


def test_without_a_database_tables_go_to_their_own_schemas(mariadb, database):
    place = MariaDbPlace(mariadb, "")
    table = replace(ORDERS, schema=f"{database}_made")
    try:
        feed(place.sink(), [create(1, table), chunk(2, table, None, insert(table, 1, "x"))])
        assert place.query(f"SELECT * FROM {database}_made.orders") == [(1, "x")]
        assert place.query("SELECT feed, ts FROM tidemill.tidemill_checkpoint") == [("test", 2)]
    finally:
        place.query("DROP DATABASE tidemill")
        place.query(f"DROP DATABASE {database}_made")


def test_a_schema_can_be_chosen(mariadb, database):
    place = MariaDbPlace(mariadb, "")
    feed(place.sink(schema=database), [create(1, ORDERS), chunk(2, ORDERS, None, insert(ORDERS, 1, "x"))])
    assert place.query(f"SELECT * FROM {database}.orders") == [(1, "x")]
    assert place.query(f"SELECT ts FROM {database}.tidemill_checkpoint") == [(2,)]


def test_a_table_that_is_there_is_used_if_it_is_empty_and_the_same(place):
    place.query(BY_HAND.replace("NOT NULL", "not null"))
    feed(place.sink(), [create(1, GOODS)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("INSERT INTO orders VALUES (1, 'mine')", "shop.orders is about to be loaded"),
        (
            "ALTER TABLE orders ADD mine INT",
            "differs from shop.orders: it has column mine int, which the source lacks: remove",
        ),
        (
            "ALTER TABLE orders MODIFY note VARCHAR(39)",
            "it has column note as varchar.39. in place of varchar.40.:",
        ),
        ("ALTER TABLE orders DROP PRIMARY KEY", "it has column id as int in place of int key:"),
    ],
)
def test_a_table_with_rows_or_of_another_shape_is_never_written_to(place, change, message):
    place.query("CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(40))")
    place.query(change)
    with pytest.raises(SinkError, match=message):
        feed(place.sink(), [create(1, ORDERS)])


# --- one row change for each row event --------------------------------------------------------------


def test_triggers_on_the_target_count_each_event_once(place):
    place.query("CREATE TABLE counted (what VARCHAR(20), n INT)")
    feed(place.sink(), HISTORY[:9])
    for table in ("orders", "pairs", "loose"):
        for what in ("INSERT", "UPDATE", "DELETE"):
            place.query(
                f"CREATE TRIGGER {table}_{what} AFTER {what} ON {table} FOR EACH ROW "
                f"INSERT INTO counted VALUES ('{table} {what}', 1)"
            )
    feed(place.sink(), HISTORY, max_rows=1000)
    events = Counter(
        f"{change.table.name} {change.op.upper()}"
        for item in HISTORY[9:]
        if isinstance(item, Transaction)
        for change in item.rows
    )
    assert Counter(dict(place.query("SELECT what, COUNT(*) FROM counted GROUP BY what"))) == events


def test_updates_that_change_nothing_are_found_all_the_same(place):
    loaded(place, ORDERS, rows=[(1, "a"), (2, "b")])
    feed(place.sink(), [transaction(30, update(ORDERS, (1, "a"), (1, "a")))])
    assert place.rows(ORDERS) == [(1, "a"), (2, "b")]


def test_a_key_of_zero_is_stored_as_zero(place):
    place.query("CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(40))")
    loaded(place, ORDERS, rows=[(0, "a"), (7, "b")])
    assert place.rows(ORDERS) == [(0, "a"), (7, "b")]


def test_a_unique_key_that_wanders_within_a_batch_is_followed(place):
    """One after the other these updates never collide."""
    loaded(place, ORDERS, rows=[(1, "a"), (2, "b"), (3, "c")])
    place.query("ALTER TABLE orders ADD UNIQUE (note)")
    moves = [
        update(ORDERS, (3, "c"), (3, "d")),
        update(ORDERS, (2, "b"), (2, "c")),
        update(ORDERS, (1, "a"), (1, "b")),
    ]
    feed(place.sink(), [transaction(30, *moves)], max_rows=1000)
    assert place.rows(ORDERS) == [(1, "b"), (2, "c"), (3, "d")]


# --- divergence -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (insert(ORDERS, 1, "x"), "insert of shop.orders .id=1.: Duplicate entry '1'"),
        (insert(ORDERS, 9, "x" * 41), "insert of shop.orders .id=9.: Data too long"),
    ],
)
def test_a_row_that_does_not_fit_is_named_and_nothing_is_written(place, change, named):
    assert_refused(place, ORDERS, change, named)


def test_a_missing_column_or_table_is_named(place):
    loaded(place, ORDERS, LOOSE)
    place.query("ALTER TABLE orders DROP note")
    with pytest.raises(
        SinkError, match=r"orders differs from shop\.orders: it lacks column note varchar\(40\): "
    ):
        feed(place.sink(), [transaction(30, insert(ORDERS, 1, "x"))])
    place.query("DROP TABLE loose")
    with pytest.raises(SinkError, match=r"the copy of shop\.loose, isn't there"):
        feed(place.sink(), [transaction(30, insert(LOOSE, 1, "x"))])


def test_several_feeds_share_a_database(place):
    loaded(place, ORDERS)
    other = MariaDbPlace(place.server, place.database, feed="other")
    loaded(other, PAIRS)
    feed(place.sink(), [transaction(30, insert(ORDERS, 1, "x"))])
    assert place.query("SELECT feed, ts FROM tidemill_checkpoint") == [("other", 20), ("test", 30)]


def test_a_damaged_checkpoint_is_named(place):
    loaded(place, ORDERS)
    place.query("UPDATE tidemill_checkpoint SET checkpoint = REPLACE(checkpoint, 'log:20', 'log:21')")
    with pytest.raises(CheckpointError, match="table tidemill_checkpoint, feed 'test' is damaged"):
        place.sink().open()


# --- schema changes ---------------------------------------------------------------------------------

WIDER = replace(
    ORDERS, columns=(ORDERS.columns[0], Column("n", "int", nullable=False, default="5"), ORDERS.columns[1])
)
ADD = alter(
    30, ORDERS, "ALTER TABLE orders ADD n INT NOT NULL DEFAULT 5 AFTER id", AddColumn(WIDER.columns[1], "id")
)


class Lost(Exception):
    pass


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("conditional", [False, True])
def test_a_crash_around_a_schema_change_does_it_once(place, when, conditional, monkeypatch):
    loaded(place, ORDERS, rows=[(1, "a")])
    actions = ADD.actions
    if conditional:
        note, column = AddColumn(ORDERS.columns[1], None, True), replace(actions[0], unless_exists=True)
        actions = (note, DropColumn("x", True), column)
    change = replace(ADD, actions=actions)
    define = MySqlSession.define

    def dies(self, *statement):
        if when == "after":
            define(self, *statement)
        raise Lost

    with monkeypatch.context() as patched:
        patched.setattr(MySqlSession, "define", dies)
        with pytest.raises(Lost):
            feed(place.sink(), [change])
    assert len(place.query("SELECT * FROM tidemill_ddl")) == 1
    feed(place.sink(), [change, transaction(31, insert(WIDER, 2, 6, "b"))])
    assert place.rows(WIDER) == [(1, 5, "a"), (2, 6, "b")]
    assert place.query("SELECT * FROM tidemill_ddl") == []


def test_a_table_whose_creation_was_cut_off_is_created_as_the_source_has_it_by_then(place, monkeypatch):
    define = MySqlSession.define

    def dies(self, *statement):
        define(self, *statement)
        raise Lost

    with monkeypatch.context() as patched:
        patched.setattr(MySqlSession, "define", dies)
        with pytest.raises(Lost):
            feed(place.sink(), [create(10, ORDERS)])
    assert place.query("SHOW TABLES LIKE 'orders'") == [("orders",)]
    gone = replace(ORDERS, name="other")
    feed(place.sink(), [create(10, gone)])
    assert place.query("SHOW TABLES LIKE 'orders'") == []
    feed(place.sink(), [create(20, WIDER), chunk(21, WIDER, None, insert(WIDER, 2, 6, "b"))])
    assert place.rows(WIDER) == [(2, 6, "b")]
    assert place.query("SELECT * FROM tidemill_ddl") == []


def test_a_table_that_somebody_else_created_is_not_dropped(place, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(MySqlSession, "define", lambda *_: (_ for _ in ()).throw(Lost()))
        with pytest.raises(Lost):
            feed(place.sink(), [create(10, ORDERS)])
    place.query("CREATE TABLE orders (id INT)")
    place.query("INSERT orders VALUES (1)")
    with pytest.raises(SinkError, match="has rows already"):
        feed(place.sink(), [create(10, ORDERS)])


def test_a_column_that_is_there_without_an_intent_is_an_error(place):
    loaded(place, ORDERS)
    place.query("ALTER TABLE orders ADD n INT")
    with pytest.raises(SinkError, match=r"following 'ALTER TABLE orders ADD n .*Duplicate column name 'n'"):
        feed(place.sink(), [ADD])


def test_a_column_that_is_dropped_and_added_in_one_statement_begins_anew(place, monkeypatch):
    loaded(place, ORDERS, rows=[(1, "a")])
    fresh = replace(ORDERS.columns[1], default="'new'")
    both = alter(30, ORDERS, "ALTER TABLE orders DROP note, ADD note", DropColumn("note"), AddColumn(fresh))
    with monkeypatch.context() as patched:
        patched.setattr(MySqlSession, "define", lambda *_: (_ for _ in ()).throw(Lost()))
        with pytest.raises(Lost):
            feed(place.sink(), [both])
    feed(place.sink(), [both])
    assert place.rows(ORDERS) == [(1, "new")]


def renamed(ts, *pairs):
    query = "RENAME TABLE …"
    return replace(alter(ts, ORDERS, query, RenameTables(pairs)), schema=pairs[0][0][0], table=pairs[0][0][1])


def test_a_table_is_renamed_into_another_schema(mariadb, database):
    place = MariaDbPlace(mariadb, "")
    one, two = f"{database}_one", f"{database}_two"
    tables = [replace(ORDERS, schema=one), replace(ORDERS, schema=one, name="pairs")]
    try:
        loaded(place, *tables, rows=[(1, "x")])
        swap = ((one, "orders"), (two, "pairs")), ((one, "pairs"), (one, "orders"))
        feed(place.sink(), [renamed(30, *swap)])
        names = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema LIKE "
        assert sorted(place.query(f"{names} '{database}\\_%'")) == [(one, "orders"), (two, "pairs")]
        left = place.query(f"{names} 'tidemill'")
        assert {name for _, name in left} == {"tidemill_applied", "tidemill_checkpoint", "tidemill_ddl"}
    finally:
        for name in ("tidemill", one, two):
            place.query(f"DROP DATABASE IF EXISTS {name}")


def test_in_a_chosen_schema_only_the_table_s_name_changes(place):
    loaded(place, ORDERS, PAIRS)
    feed(place.sink(), [transaction(30, insert(ORDERS, 1, "x"))])
    moves = [
        renamed(31, (("shop", "orders"), ("mall", "orders"))),
        renamed(32, (("mall", "orders"), ("a", "b"))),
    ]
    feed(place.sink(), moves)
    assert place.rows(replace(ORDERS, name="b")) == [(1, "x")]
    with pytest.raises(SinkError, match=r"RENAME TABLE .* already exists"):
        feed(place.sink(), [renamed(33, (("a", "b"), ("mall", "pairs")))])


def test_two_tables_that_would_get_one_name_are_named(place):
    items = [create(1, ORDERS), create(2, PAIRS), transaction(3, chunk=Chunk(""))]
    with pytest.raises(SinkError, match=r"shop\.pairs and mall\.pairs would both be called \w+\.pairs"):
        feed(place.sink(), [*items, renamed(4, (("shop", "orders"), ("mall", "pairs")))])
    feed(place.sink(), [*items, renamed(4, (("shop", "orders"), ("mall", "notes")))])


def test_a_table_keeps_its_comment(place):
    loaded(place, ORDERS, rows=[(1, "a")])
    place.query("ALTER TABLE orders COMMENT='it''s mine'")
    feed(place.sink(), [ADD])
    assert "COMMENT='it''s mine'" in definition(place, "orders")


def test_feeds_of_one_database_rename_tables_at_the_same_time(place, monkeypatch):
    """One crashes after its RENAME, the other renames meanwhile."""
    loaded(place, ORDERS, rows=[(1, "a")])
    other = MariaDbPlace(place.server, place.database, feed="other")
    loaded(other, PAIRS)
    change = renamed(30, (("shop", "orders"), ("shop", "old")))

    def dies(_point):
        if not place.query("SHOW TABLES LIKE 'orders'"):
            raise Lost

    with monkeypatch.context() as patched:
        patched.setattr("tidemill.dialects.mysql.changes.reach", dies)
        with pytest.raises(Lost):
            feed(place.sink(), [change])
    feed(other.sink(), [renamed(30, (("shop", "pairs"), ("shop", "orders")))])
    feed(place.sink(), [change])
    assert place.rows(replace(ORDERS, name="old")) == [(1, "a")]
    names = {name for (name,) in place.query("SHOW TABLES")}
    assert names == {"old", "orders", "tidemill_applied", "tidemill_checkpoint", "tidemill_ddl"}


def test_existing_rows_get_the_time_of_the_source(place):
    loaded(place, ORDERS, rows=[(1, "a")])
    column = Column("at", "timestamp", scale=3, nullable=False, default="current_timestamp(3)")
    feed(place.sink(), [alter(30, ORDERS, "ALTER", AddColumn(column, ""), epoch_seconds=1_700_000_000.25)])
    assert place.query("SELECT UNIX_TIMESTAMP(at) FROM orders") == [(Decimal("1700000000.250"),)]
    assert [name for name, *_ in place.query("SHOW COLUMNS FROM orders")] == ["at", "id", "note"]


def test_existing_rows_get_the_time_of_the_session_s_clock(place):
    loaded(place, ORDERS, rows=[(1, "a")])
    local = AddColumn(Column("local", "datetime", default="now()"))
    utc = AddColumn(Column("utc", "timestamp", default="'2020-01-01'"))
    change = alter(30, ORDERS, "ALTER", local, utc, epoch_seconds=1_700_000_000)
    feed(place.sink(), [replace(change, utc_offset_seconds=-5400)])
    found = place.query("SELECT CAST(local AS CHAR), CAST(utc AS CHAR) FROM orders")
    assert found == [("2023-11-14 20:43:20", "2020-01-01 01:30:00")]


@pytest.mark.parametrize("ahead", [14 * 3600, -13 * 3600, 1172])
def test_a_clock_that_no_server_can_have_is_refused(place, ahead):
    loaded(place, ORDERS, rows=[(1, "a")])
    plain, local = Column("n", "int", default="5"), Column("local", "datetime", default="now()")
    feed(place.sink(), [replace(alter(30, ORDERS, "ALTER", AddColumn(plain)), utc_offset_seconds=ahead)])
    with pytest.raises(SinkError, match=rf"shop\.orders .* column local .* {ahead} s ahead of UTC"):
        feed(place.sink(), [replace(alter(31, ORDERS, "ALTER", AddColumn(local)), utc_offset_seconds=ahead)])


def test_a_server_without_explicit_timestamps_puts_no_time_into_existing_rows(private_mariadb):
    private_mariadb.options = ("--explicit-defaults-for-timestamp=OFF",)
    place = MariaDbPlace(private_mariadb.start(), "shop")
    loaded(place, ORDERS, rows=[(1, "a")])
    added = [AddColumn(Column(name, "timestamp", nullable=name == "a")) for name in ("a", "b")]
    feed(place.sink(), [alter(30, ORDERS, "ALTER", *added)])
    assert place.query("SELECT a, CAST(b AS CHAR) FROM orders") == [(None, "0000-00-00 00:00:00")]


# --- a target that can't, for now -------------------------------------------------------------------


def test_a_row_that_others_have_locked_is_waited_for(place):
    loaded(place, ORDERS, rows=[(1, "a")])
    sink = place.sink(workers=1)
    work = Delivery(sink, sink.open(), "src")
    sink._database.session.execute("SET innodb_lock_wait_timeout=1")
    with place.server.connect(database=place.database) as other, other.cursor() as cursor:
        cursor.execute("START TRANSACTION")
        cursor.execute("SELECT * FROM orders WHERE id = 1 FOR UPDATE")
        work.accept([transaction(30, update(ORDERS, (1, "a"), (1, "b")))])
        with pytest.raises(Retryable, match="Lock wait timeout exceeded"):
            work.run(0)
    work.run(0)
    sink.close()
    assert place.rows(ORDERS) == [(1, "b")]


def test_a_server_that_comes_back_is_found_again(private_mariadb):
    private_mariadb.start()
    private_mariadb.execute("CREATE DATABASE shop")
    place = MariaDbPlace(private_mariadb, "shop")
    sink = place.sink(workers=1)
    work = Delivery(sink, sink.open(), "src", DeliveryOptions(rowless_seconds=0))
    work.accept(HISTORY[:12])
    work.run(0)
    private_mariadb.kill()
    work.accept(HISTORY[12:])
    for _ in range(2):
        with pytest.raises(Retryable, match=r"mysql://127\.0\.0\.1"):
            work.run(0)
    private_mariadb.start()
    work.run(0)
    sink.close()
    assert {table.full_name: Counter(place.rows(table)) for table in STATES} == expected(HISTORY)


def test_a_long_statement_or_transaction_is_not_ended_by_the_server(private_mariadb):
    limits = ("max_statement_time", "idle_transaction_timeout", "idle_write_transaction_timeout")
    private_mariadb.options = tuple(f"--{name.replace('_', '-')}=1" for name in limits)
    sink = MariaDbPlace(private_mariadb.start(), "shop").sink()
    sink.open()
    names = ", ".join(f"@@{name}" for name in (*limits, "wait_timeout"))
    assert sink._database.session.rows(f"SELECT {names}") == [(0, 0, 0, 86400)]
    sink.close()


def test_a_read_only_server_is_an_error_that_says_so(private_mariadb):
    private_mariadb.start()
    private_mariadb.execute(
        "CREATE DATABASE shop",
        "CREATE USER app@'%' IDENTIFIED BY 'secret'",
        "GRANT ALL ON shop.* TO app@'%'",
        "SET GLOBAL read_only = 1",
    )
    url = private_mariadb.url("shop", user="app", password="secret")
    sink = open_sink("copy", url, feed="test", store=MemoryStore())
    with pytest.raises(SinkError, match="--read-only option"):
        sink.open()


def test_a_database_that_is_missing_is_made(mariadb, database):
    place = MariaDbPlace(mariadb, f"{database}_new")
    loaded(place, ORDERS, rows=[(1, "x")])
    assert place.rows(ORDERS) == [(1, "x")]
    place.query(f"DROP DATABASE {place.database}")


def test_a_wrong_password_is_an_error_that_says_so(mariadb):
    sink = open_sink("copy", mariadb.url(password="wrong"), feed="test", store=MemoryStore())
    with pytest.raises(SinkError, match="connecting: Access denied for user 'root'"):
        sink.open()


def test_a_server_that_is_not_there_may_come(mariadb):
    sink = open_sink("copy", "mysql://root@127.0.0.1:1/shop", feed="test", store=MemoryStore())
    with pytest.raises(Retryable, match=r"mysql://127\.0\.0\.1:1/shop: connecting: Can't connect"):
        sink.open()


def test_a_user_with_as_many_connections_as_allowed_waits_for_one(place):
    user = f"few_{place.database}"
    place.query(f"CREATE USER {user} IDENTIFIED BY 'word' WITH MAX_USER_CONNECTIONS 1")
    place.query(f"GRANT ALL ON *.* TO {user}")
    url = place.server.url(place.database, user=user, password="word")
    one, two = (open_sink("copy", url, feed="test", store=MemoryStore()) for _ in range(2))
    one.open()
    with pytest.raises(Retryable, match="max_user_connections"):
        two.open()
    one.close()

    def is_let_in():
        with suppress(Retryable):
            two.open()
            return True

    eventually(is_let_in)
    two.close()
    place.query(f"DROP USER {user}")


def test_a_row_larger_than_the_server_takes_says_what_to_raise(place):
    table = Table(
        "shop", "lumps", (Column("id", "int", nullable=False), Column("b", "blob", length=4)), key=(0,)
    )
    loaded(place, table)
    sink = place.sink(workers=1)
    sink.open()
    sink._database.session.packet_bytes = 1_000_000
    fits = [insert(table, n, b"x" * 400_000) for n in range(4)]
    sink.write(batch(transaction(30, *fits, insert(table, 4, b""))))
    sink.flush()
    with pytest.raises(
        SinkError, match=r"raise its max_allowed_packet \(now 1000000\) to at least 1000\d\d\d"
    ):
        sink.write(batch(transaction(31, insert(table, 9, b"x" * 500_000))))
    assert place.query("SELECT COUNT(*) FROM lumps") == [(5,)]


def test_rows_that_the_server_takes_one_by_one_are_never_too_much_together(place):
    table = Table("shop", "notes", (Column("id", "int", nullable=False), Column("t", "text")), key=(0,))
    loaded(place, table)
    sink = place.sink()
    sink.open()
    sink._database.session.packet_bytes = 100_000
    sink.write(batch(transaction(30, *[insert(table, n, "\N{BUTTERFLY}" * 500) for n in range(100)])))
    sink.write(batch(transaction(31, *[delete(table, n, "") for n in range(100) if n % 10])))
    sink.flush()
    sink.close()
    assert place.query("SELECT COUNT(*), SUM(OCTET_LENGTH(t)) FROM notes") == [(10, 20_000)]


@pytest.mark.parametrize("safe", [False, True], ids=["plain", "safe mode"])
def test_a_large_value_costs_a_sink_no_copy_of_it(place, safe):
    size = 6 << 20
    table = Table(
        "shop", "files", (Column("id", "int", nullable=False), Column("b", "blob", length=4)), key=(0,)
    )
    first, second = b"\0\x01'\\" * (size // 4), b"\xff" * size
    sink = place.sink(safe_mode=True) if safe else place.sink()
    sink.open()
    sink.write(batch(create(1, table)))
    changes = [
        transaction(2, insert(table, 1, first), insert(table, 2, b"small")),
        transaction(3, update(table, (1, first), (1, second))),
    ]
    for number, change in enumerate(changes):
        tracemalloc.start()
        try:
            sink.write(batch(change))
            sink.flush()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < size // 3, number
        assert Counter(place.rows(table)) == Counter([(1, (first, second)[number]), (2, b"small")])
    sink.close()
