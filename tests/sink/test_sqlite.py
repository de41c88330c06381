from __future__ import annotations

import signal
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from tidemill.dialects.sqlite.session import SqliteSession
from tidemill.errors import CheckpointError, Retryable, SinkError
from tidemill.events import AddColumn, ChangeColumn, ChangeKey, Column, DropColumn, Table, Transaction
from tidemill.sink import Delivery, open_sink
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import (
    LOOSE,
    ORDERS,
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
from tidemill.testing.child import Child
from tidemill.testing.sink_conformance import HISTORY, STATES, expected, feed

from ..dialects.places import SqlitePlace
from .sql_conformance import assert_refused, loaded


@pytest.fixture
def place(tmp_path):
    return SqlitePlace(tmp_path / "copy.db")


def query(place, sql):
    connection = sqlite3.connect(place.path)
    rows = connection.execute(sql).fetchall()
    connection.commit()
    connection.close()
    return rows


# --- values and tables ------------------------------------------------------------------------------


def test_every_value_is_stored_and_found_again(place):
    rows = [*kinds.ROWS, kinds.NULLS]
    loaded(place, kinds.KEYED, kinds.KEYLESS, rows=rows)
    new = [(row[0], *other[1:]) for row, other in zip(rows, [*rows[1:], rows[0]], strict=True)]
    for ts, table in [(30, kinds.KEYED), (60, kinds.KEYLESS)]:
        assert place.rows(table) == rows
        updates = [update(table, before, after) for before, after in zip(rows, new, strict=True)]
        feed(place.sink(), [transaction(ts, *updates)], max_rows=1000)
        assert place.rows(table) == new
        feed(place.sink(), [transaction(ts + 10, *[delete(table, *row) for row in new[1:]])], max_rows=1000)
        assert place.rows(table) == new[:1]
        feed(place.sink(), [transaction(ts + 20, delete(table, *new[0]))])
        assert place.rows(table) == []


def test_a_table_looks_like_its_source(place):
    feed(place.sink(), [create(1, ORDERS), create(2, kinds.KEYED)])
    ((sql,),) = query(place, "SELECT sql FROM sqlite_master WHERE name = 'shop.orders'")
    assert (
        sql
        == 'CREATE TABLE "shop.orders" (\n  "id" INTEGER NOT NULL,\n  "note" TEXT,\n  PRIMARY KEY ("id")\n)'
    )
    found = dict(query(place, "SELECT name, type FROM pragma_table_info('shop.everything')"))
    assert found["bigint_signed"] == "INTEGER"
    assert found["bigint_unsigned"] == ""
    assert found["wide"] == "TEXT"


def test_a_table_can_be_called_otherwise(tmp_path):
    options = {"table_name": "{schema}_{table}"}
    sink = open_sink("copy", f"sqlite:///{tmp_path}/copy.db", feed="f", store=MemoryStore(), options=options)
    feed(sink, [create(1, ORDERS), chunk(2, ORDERS, None, insert(ORDERS, 1, "x"))])
    assert query(SqlitePlace(tmp_path / "copy.db"), "SELECT * FROM shop_orders") == [(1, "x")]


def test_two_tables_of_one_name_do_not_mix(tmp_path):
    options = {"table_name": "{table}"}
    sink = open_sink("copy", f"sqlite:///{tmp_path}/copy.db", feed="f", store=MemoryStore(), options=options)
    with pytest.raises(SinkError, match=r"shop\.orders and mall\.Orders would both be called Orders"):
        feed(sink, [create(1, ORDERS), create(2, replace(ORDERS, schema="mall", name="Orders"))])


def test_a_table_that_is_there_is_used_if_it_is_empty_and_the_same(place):
    query(place, 'CREATE TABLE "shop.orders" (id INTEGER PRIMARY KEY, note TEXT CHECK (note > 1))')
    feed(place.sink(), [create(1, ORDERS)])


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ('INSERT INTO "shop.orders" VALUES (1, 1)', "has rows already"),
        (
            'ALTER TABLE "shop.orders" ADD mine',
            "differs from shop.orders: it has column mine, which the source lacks: remove",
        ),
    ],
)
def test_a_table_with_rows_or_of_another_shape_is_never_written_to(place, sql, message):
    query(place, 'CREATE TABLE "shop.orders" (id INTEGER PRIMARY KEY, note TEXT)')
    query(place, sql)
    with pytest.raises(SinkError, match=message):
        feed(place.sink(), [create(1, ORDERS)])


@pytest.mark.parametrize("names", [("rowid",), ("rowid", "_ROWID_")])
def test_columns_may_be_called_like_the_row_id(place, names):
    table = Table("shop", "odd", tuple(Column(name, "int") for name in names))
    row = tuple(range(len(names)))
    loaded(place, table, rows=[row, row])
    feed(place.sink(), [transaction(30, delete(table, *row))])
    assert place.rows(table) == [row]


def test_a_table_whose_columns_hide_every_row_id_is_refused(place):
    table = Table("shop", "odd", tuple(Column(name, "int") for name in ("rowid", "oid", "_rowid_")))
    loaded(place, table, rows=[(1, 2, 3)])
    with pytest.raises(SinkError, match=r"shop\.odd has no key, and its columns hide SQLite's row id"):
        feed(place.sink(), [transaction(30, delete(table, 1, 2, 3))])


def test_names_may_hold_any_character(place):
    columns = (Column('`a` {b} "c" \\ %s ?', "int", nullable=False), Column("select", "varchar", length=5))
    table = Table("shop", 'odd "name" {0} ?', columns, key=(0,))
    loaded(place, table, rows=[(1, "x"), (2, "y")])
    feed(place.sink(), [transaction(30, update(table, (1, "x"), (1, "z")), delete(table, 2, "y"))])
    assert query(place, 'SELECT * FROM "shop.odd ""name"" {0} ?"') == [(1, "z")]


# --- one row change for each row event --------------------------------------------------------------


def test_triggers_on_the_target_count_each_event_once(place):
    feed(place.sink(), HISTORY[:9])
    query(place, "CREATE TABLE counted (what TEXT)")
    for table in ("orders", "pairs", "loose"):
        for what in ("INSERT", "UPDATE", "DELETE"):
            query(
                place,
                f"CREATE TRIGGER {table}_{what} AFTER {what} ON 'shop.{table}' "
                f"BEGIN INSERT INTO counted VALUES ('{table} {what}'); END",
            )
    feed(place.sink(), [item for item in HISTORY if item.commit_ts < 17], max_rows=1000)
    events = Counter(
        f"{change.table.name} {change.op.upper()}"
        for item in HISTORY[9:]
        if isinstance(item, Transaction) and item.commit_ts < 17
        for change in item.rows
    )
    assert Counter(dict(query(place, "SELECT what, COUNT(*) FROM counted GROUP BY what"))) == events


def test_a_unique_index_that_wanders_within_a_batch_is_followed(place):
    loaded(place, ORDERS, rows=[(1, "a"), (2, "b")])
    query(place, 'CREATE UNIQUE INDEX one ON "shop.orders" (note)')
    feed(
        place.sink(),
        [transaction(30, update(ORDERS, (2, "b"), (2, "c")), update(ORDERS, (1, "a"), (1, "b")))],
    )
    assert place.rows(ORDERS) == [(1, "b"), (2, "c")]


# --- divergence -------------------------------------------------------------------------------------


def test_a_key_that_is_there_is_named_and_nothing_is_written(place):
    named = "insert of shop.orders .id=1.: UNIQUE constraint failed"
    assert_refused(place, ORDERS, insert(ORDERS, 1, "x"), named)


def test_a_column_that_is_not_there_is_named(place):
    loaded(place, ORDERS)
    query(place, 'ALTER TABLE "shop.orders" DROP COLUMN note')
    with pytest.raises(
        SinkError, match=r"shop\.orders differs from shop\.orders: it lacks column note TEXT: "
    ):
        feed(place.sink(), [transaction(30, insert(ORDERS, 1, "x"))])


def test_a_damaged_checkpoint_is_named(place):
    loaded(place, ORDERS)
    query(place, "UPDATE tidemill_checkpoint SET checkpoint = substr(checkpoint, 1, 50)")
    with pytest.raises(CheckpointError, match=r"copy\.db, table tidemill_checkpoint, feed 'test' is damaged"):
        place.sink().open()


# --- schema changes ---------------------------------------------------------------------------------


def test_added_columns_hold_the_default_of_the_source(place):
    loaded(place, ORDERS, rows=[(1, "a")])
    columns = [
        Column("plain", "int"),
        Column("needed", "varchar", length=5, nullable=False),
        Column("price", "decimal", length=8, scale=2, nullable=False, default="1.5"),
        Column("made", "timestamp", scale=3, default="current_timestamp(3)"),
        Column("word", "varchar", length=9, default="'it''s'"),
        Column("bytes", "varbinary", length=9, default="x'00ff'"),
    ]
    ddl = alter(30, ORDERS, "ALTER", *map(AddColumn, columns), epoch_seconds=1_700_000_000.25)
    feed(place.sink(), [ddl])
    assert query(place, 'SELECT * FROM "shop.orders"') == [
        (1, "a", None, "", "1.50", "2023-11-14 22:13:20.250", "it's", b"\0\xff")
    ]


def test_a_schema_change_is_undone_with_its_transaction(place):
    loaded(place, ORDERS, rows=[(1, "a")])
    sink = place.sink()
    sink.open()
    sink.write(batch(alter(30, ORDERS, "ALTER", DropColumn("note"))))
    sink.close()
    assert place.rows(ORDERS) == [(1, "a")]


def test_a_schema_change_that_sqlite_cannot_do_is_quoted(place):
    loaded(place, ORDERS)
    with pytest.raises(SinkError, match=r"shop\.orders .* SQLite can drop no column of a primary key"):
        feed(place.sink(), [alter(30, ORDERS, "ALTER TABLE orders DROP id", DropColumn("id"))])


def test_a_table_that_is_created_again_keeps_its_indexes_and_triggers(place):
    loaded(place, ORDERS, rows=[(1, "a")])
    query(place, 'CREATE INDEX by_note ON "shop.orders" (note)')
    query(place, "CREATE TABLE counted (what TEXT)")
    query(
        place,
        'CREATE TRIGGER counts AFTER INSERT ON "shop.orders" '
        "BEGIN INSERT INTO counted VALUES (new.note); END",
    )
    query(place, 'CREATE VIEW seen AS SELECT * FROM "shop.orders"')
    word = replace(ORDERS.columns[1], name="word", nullable=False)
    change = alter(30, ORDERS, "ALTER", ChangeColumn("note", word, ORDERS.columns[1]), ChangeKey(()))
    wider = replace(ORDERS, columns=(ORDERS.columns[0], word), key=())
    feed(place.sink(), [change, transaction(31, insert(wider, 1, "b"))])
    assert place.rows(wider) == [(1, "a"), (1, "b")]
    assert query(place, "SELECT * FROM counted") == [("b",)]
    assert query(place, "SELECT * FROM seen") == [(1, "a"), (1, "b")]
    assert query(place, "SELECT name FROM pragma_index_info('by_note')") == [("word",)]


# --- a target that can't ----------------------------------------------------------------------------


def test_a_database_that_another_writes_to_is_waited_for(place, monkeypatch):
    monkeypatch.setattr("tidemill.dialects.sqlite.session._BUSY_SECONDS", 0.0)
    loaded(place, ORDERS)
    sink = place.sink()
    work = Delivery(sink, sink.open(), "src")
    other = sqlite3.connect(place.path)
    other.execute("BEGIN IMMEDIATE")
    work.accept([transaction(30, insert(ORDERS, 1, "x"))])
    for _ in range(2):
        with pytest.raises(Retryable, match="database is locked"):
            work.run(0)
    other.close()
    work.run(0)
    sink.close()
    assert place.rows(ORDERS) == [(1, "x")]


def test_a_first_start_waits_for_another_one_of_the_same_file(place, monkeypatch):
    with closing(sqlite3.connect(place.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        execute = SqliteSession.execute

        def executed(target, statement, *values):
            if statement == "BEGIN EXCLUSIVE":
                other.execute("COMMIT")
            return execute(target, statement, *values)

        monkeypatch.setattr(SqliteSession, "execute", executed)
        sink = place.sink()
        sink.open()
        sink.close()
    assert query(place, "PRAGMA journal_mode") == [("wal",)]


def test_nobody_is_locked_out_while_nothing_is_written(place):
    loaded(place, ORDERS)
    sink = place.sink()
    sink.open()
    sink.write(batch(transaction(30)))
    query(place, "CREATE TABLE others (n)")
    sink.close()


def test_readers_see_whole_transactions_while_rows_are_written(place):
    loaded(place, ORDERS)
    sink = place.sink()
    sink.open()
    for first in range(0, 3000, 1000):
        rows = [insert(ORDERS, n, "x") for n in range(first, first + 1000)]
        sink.write(batch(transaction(30, *rows, last=False)))
        assert place.rows(ORDERS) == []
    sink.write(batch(transaction(30)))
    sink.flush()
    assert len(place.rows(ORDERS)) == 3000
    sink.close()


def test_a_full_disk_is_an_error_that_says_so(place):
    loaded(place, ORDERS)
    sink = place.sink()
    sink.open()
    (pages,) = sink._database._session.execute("PRAGMA page_count").fetchone()
    sink._database._session.execute(f"PRAGMA max_page_count={pages + 2}")
    with pytest.raises(SinkError, match="database or disk is full: make room, then start again"):
        sink.write(batch(transaction(30, *[insert(ORDERS, n, "x" * 40) for n in range(1000)])))
    assert place.rows(ORDERS) == []
    feed(place.sink(), [transaction(30, insert(ORDERS, 1, "x"))])
    assert place.rows(ORDERS) == [(1, "x")]


def test_a_directory_that_is_not_there_is_named(tmp_path):
    sink = open_sink("copy", f"sqlite:///{tmp_path}/no/copy.db", feed="f", store=MemoryStore())
    with pytest.raises(
        SinkError, match=r"no/copy\.db: connecting: unable to open .* does the directory exist"
    ):
        sink.open()


def test_a_file_that_is_no_database_is_named(place):
    place.path.write_bytes(b"something else" * 1000)
    with pytest.raises(SinkError, match="file is not a database"):
        place.sink().open()


def test_a_read_only_database_is_an_error_that_says_so(place):
    loaded(place, ORDERS)
    sink = place.sink()
    sink.open()
    sink._database._session.execute("PRAGMA query_only=1")
    with pytest.raises(SinkError, match="readonly database"):
        sink.write(batch(transaction(30, insert(ORDERS, 1, "x"))))
    sink.close()


# --- kill -9 ----------------------------------------------------------------------------------------

RUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tidemill.testing.sink_conformance import HISTORY, feed
from tests.dialects.places import SqlitePlace
feed(SqlitePlace(Path(sys.argv[2])).sink(), HISTORY)
"""


@pytest.mark.parametrize("point", ["sink.mid_batch", "sink.before_commit", "sink.committed"])
def test_killed_at_any_point_it_goes_on_where_it_was(place, point):
    root = Path(__file__).parents[2]
    kills = 0
    for nth in (1, 2, 3, 5, 7, 50):
        with Child([sys.executable, "-c", RUN, root, place.path], failpoint=f"{point}:{nth}") as child:
            status = child.exit_status()
        assert status in (0, -signal.SIGKILL)
        kills += status == -signal.SIGKILL
    assert kills >= 3
    assert {table.full_name: Counter(place.rows(table)) for table in STATES} == expected(HISTORY)


# --- tables without a key ---------------------------------------------------------------------------


def steps(place, *changes):
    """Apply the changes in one batch; return the number of steps of SQLite's machine."""
    sink = place.sink()
    sink.open()
    count = 0

    def counted():
        nonlocal count
        count += 1_000

    sink._database._session.connection.set_progress_handler(counted, 1_000)
    sink.write(batch(transaction(30, *changes)))
    sink.flush()
    sink.close()
    return count


@pytest.mark.parametrize("copies", [1, 2, 40])
def test_many_changes_of_a_table_without_a_key_read_it_once_for_each_operation(place, copies):
    rows = [(number // copies, f"row {number // copies}") for number in range(20_000)]
    loaded(place, LOOSE, rows=rows)
    gone, changed, left = rows[:5_000], rows[5_000:9_000], rows[9_000:]
    changes = [
        *[delete(LOOSE, *row) for row in gone],
        *[update(LOOSE, row, (row[0], "new")) for row in changed],
    ]
    assert steps(place, *changes) < 100 * len(rows)
    assert Counter(place.rows(LOOSE)) == Counter([*left, *[(number, "new") for number, _ in changed]])


def test_triggers_fire_once_for_each_change_of_a_table_without_a_key(place):
    loaded(place, LOOSE, rows=[(1, "a")] * 9)
    query(place, "CREATE TABLE counted (what TEXT)")
    for what in ("INSERT", "UPDATE", "DELETE"):
        query(
            place,
            f'CREATE TRIGGER loose_{what} AFTER {what} ON "shop.loose" '
            f"BEGIN INSERT INTO counted VALUES ('{what}'); END",
        )
    changes = [update(LOOSE, (1, "a"), (1, "b"))] * 5 + [delete(LOOSE, 1, "a")] * 4
    feed(place.sink(), [transaction(30, *changes)], max_rows=1000)
    assert Counter(query(place, "SELECT * FROM counted")) == {("UPDATE",): 5, ("DELETE",): 4}
    assert Counter(place.rows(LOOSE)) == {(1, "b"): 5}
