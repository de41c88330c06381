"""The SQL sink into a real PostgreSQL."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import datetime
from decimal import Decimal

import pytest
from msgspec.structs import replace

from tidemill.errors import CheckpointError, Retryable, SinkError
from tidemill.events import (
    AddColumn,
    ChangeColumn,
    ChangeKey,
    Chunk,
    Column,
    DropColumn,
    RenameTables,
    Table,
    Transaction,
)
from tidemill.sink import Delivery, DeliveryOptions, open_sink
from tidemill.sink.kind import SinkContext
from tidemill.sink.registry import given_sink, survey_sink
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

from ..dialects.places import PostgresPlace, storable
from ..sink.sql_conformance import assert_refused, loaded
from .server_conformance import ServerConformance

EVERY = tuple(storable(row) for row in (*kinds.ROWS, kinds.NULLS))
EVERY_DATE = tuple(storable(row, dates=True) for row in (*kinds.ROWS, kinds.NULLS))


@pytest.fixture
def place(postgresql, postgres_database):
    return PostgresPlace(postgresql, postgres_database)


class TestPostgres(ServerConformance):
    @pytest.fixture
    def place(self, postgresql, postgres_database):
        return PostgresPlace(postgresql, postgres_database)


# --- values -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "dates"), [(EVERY, "native"), (EVERY_DATE, "text")], ids=["native", "text"])
@pytest.mark.parametrize("copies", [1, 10], ids=["by INSERT", "by COPY"])
@pytest.mark.parametrize("table", [kinds.KEYED, kinds.KEYLESS], ids=["keyed", "keyless"])
def test_every_value_is_stored_and_found_again(place, rows, dates, copies, table):
    place.options = {"dates": dates}
    rows = [(n, *row[1:]) for n, row in enumerate(rows * copies)]
    loaded(place, table, rows=rows)
    assert sorted(place.rows(table)) == rows if table.key else Counter(place.rows(table)) == Counter(rows)
    new = [(row[0], *other[1:]) for row, other in zip(rows, [*rows[1:], rows[0]], strict=True)]
    updates = [update(table, before, after) for before, after in zip(rows, new, strict=True)]
    feed(place.sink(), [transaction(30, *updates)], max_rows=1000)
    assert Counter(place.rows(table)) == Counter(new)
    feed(place.sink(), [transaction(40, *[delete(table, *row) for row in new[1:]])], max_rows=1000)
    assert place.rows(table) == new[:1]
    feed(
        place.sink(),
        [transaction(50, update(table, new[0], rows[0])), transaction(60, delete(table, *rows[0]))],
    )
    assert place.rows(table) == []


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        (
            Column("day", "date"),
            "0000-00-00",
            "column day: PostgreSQL has no date '0000-00-00': name an empty",
        ),
        (Column("day", "date"), "2024-02-31", "column day: PostgreSQL has no date '2024-02-31'"),
        (
            Column("at", "datetime", scale=3),
            "2024-00-10 01:02:03.000",
            "PostgreSQL has no datetime '2024-00-10",
        ),
        (
            Column("at", "timestamp"),
            "0000-00-00 00:00:00",
            "PostgreSQL has no timestamp '0000-00-00 00:00:00'",
        ),
        (
            Column("t", "text", length=2),
            "a\0b",
            "column t: PostgreSQL can't store the character NUL in a text",
        ),
        (Column("t", "varchar", length=9), "\ud800", "PostgreSQL can't store the character '.ud800'"),
        (Column("t", "varchar", length=3), "abcd", "value too long for type character varying.3."),
        (Column("doc", "json"), "{", "invalid input syntax for type json"),
        (Column("n", "tinyint"), 1 << 15, "smallint out of range"),
    ],
)
@pytest.mark.parametrize("others", [0, 100])
def test_a_value_that_cannot_be_stored_is_named_with_its_row(place, column, value, reason, others):
    table = Table("shop", "one", (Column("id", "int", nullable=False), column), key=(0,))
    loaded(place, table)
    rows = [insert(table, n, None) for n in range(others)]
    with pytest.raises(SinkError, match=rf"insert of shop\.one \(id=777\): .*{reason}"):
        feed(place.sink(), [transaction(30, *rows, insert(table, 777, value))], max_rows=1000)
    assert place.rows(table) == []


def test_keys_that_differ_by_case_only_are_other_keys(place):
    feed(place.sink(), [create(1, PAIRS), chunk(2, PAIRS, None, insert(PAIRS, 1, "a", 1))])
    feed(place.sink(), [transaction(3, update(PAIRS, (1, "a", 1), (1, "A", 1)))])
    feed(place.sink(), [transaction(4, insert(PAIRS, 1, "a", 2), update(PAIRS, (1, "A", 1), (1, "A", 3)))])
    assert sorted(place.rows(PAIRS)) == [(1, "A", 3), (1, "a", 2)]


def test_a_table_of_one_column_is_copied_with_its_nulls(place):
    table = Table("shop", "words", (Column("word", "text", length=2),))
    rows = [(word,) for word in [None, "", "\\.", "\n", '"', "\\N"] * 10]
    loaded(place, table, rows=rows)
    assert Counter(place.rows(table)) == Counter(rows)


# --- definitions ------------------------------------------------------------------------------------

GOODS = Table(
    "shop",
    "goods",
    (
        Column("id", "bigint", unsigned=True, nullable=False),
        Column("kind", "enum", members=("a", "it's"), nullable=False, default="'it''s'"),
        Column("name", "varchar", length=30, default=r"'a\\b\'c'"),
        Column("price", "decimal", True, 10, 2, nullable=False, default="1.50"),
        Column("made", "timestamp", scale=3, nullable=False, default="current_timestamp(3)"),
        Column("seen", "datetime", default="'0000-00-00 00:00:00'"),
        Column("flags", "bit", length=5, default="b'101'"),
        Column("span", "time", scale=2),
        Column("extra", "json"),
    ),
    key=(1, 0),
)


def test_a_table_is_created_with_types_and_constant_defaults(place):
    feed(place.sink(), [create(1, GOODS)])
    found = place.query(
        "SELECT column_name, format_type(a.atttypid, a.atttypmod), is_nullable, column_default "
        "FROM information_schema.columns AS c JOIN pg_attribute AS a ON attname = column_name "
        "AND attrelid = 'shop.goods'::regclass WHERE table_name = 'goods' ORDER BY ordinal_position"
    )
    assert found == [
        ("id", "numeric(20,0)", "NO", None),
        ("kind", "text", "NO", "'it''s'::text"),
        ("name", "character varying(30)", "YES", "'a\\b''c'::character varying"),
        ("price", "numeric(10,2)", "NO", "1.50"),
        ("made", "timestamp(3) with time zone", "NO", None),
        ("seen", "timestamp(0) without time zone", "YES", None),
        ("flags", "bit(5)", "YES", "'00101'::\"bit\""),
        ("span", "interval(2)", "YES", None),
        ("extra", "json", "YES", None),
    ]
    key = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'shop.goods'::regclass"
    assert place.query(key) == [("PRIMARY KEY (kind, id)",)]


def test_names_may_hold_any_character(place):
    columns = (Column('`a` {b} "c" \\ \r\n %s', "int", nullable=False), Column("select", "varchar", length=5))
    table = Table("shop", 'odd "name" {0} %', columns, key=(0,))
    loaded(place, table, rows=[(1, "x"), (2, "y")])
    feed(place.sink(), [transaction(30, update(table, (1, "x"), (1, "z")), delete(table, 2, "y"))])
    assert place.query('SELECT * FROM shop."odd ""name"" {0} %"') == [(1, "z")]


def test_a_name_that_would_be_cut_off_is_refused(place):
    long = "ä" * 32
    short = replace(ORDERS, name=long[:31])
    loaded(place, short, rows=[(1, "a")])
    for table in (
        replace(ORDERS, name=long),
        replace(ORDERS, schema=long),
        replace(ORDERS, name="t", columns=(replace(ORDERS.columns[0], name=long), ORDERS.columns[1])),
    ):
        with pytest.raises(SinkError, match=rf"{long}: the name '{long}' has 64 bytes, .* after 63: give"):
            feed(place.sink(), [replace(create(30, table), query="CREATE TABLE")])
    for change in (
        renamed(30, (("shop", short.name), ("shop", long))),
        alter(30, short, "ALTER", AddColumn(Column(long, "int"))),
        alter(
            30, short, "ALTER", ChangeColumn("note", replace(ORDERS.columns[1], name=long), ORDERS.columns[1])
        ),
    ):
        with pytest.raises(SinkError, match=r"has 64 bytes, and PostgreSQL would cut it off after 63"):
            feed(place.sink(), [change])
    sink = place.sink()
    assert not sink.has_table("shop", long)
    sink.close()
    assert place.rows(short) == [(1, "a")]


def test_a_schema_can_be_chosen(place):
    feed(place.sink(schema="all"), [create(1, ORDERS), chunk(2, ORDERS, None, insert(ORDERS, 1, "x"))])
    assert place.query('SELECT * FROM "all".orders') == [(1, "x")]
    assert place.query('SELECT ts FROM "all".tidemill_checkpoint') == [(2,)]


def test_without_a_chosen_schema_checkpoints_are_in_one_of_their_own(place):
    feed(place.sink(), [create(1, ORDERS), chunk(2, ORDERS, None, insert(ORDERS, 1, "x"))])
    assert place.query("SELECT * FROM shop.orders") == [(1, "x")]
    assert place.query("SELECT feed, ts FROM tidemill.tidemill_checkpoint") == [("test", 2)]


def test_a_table_that_is_there_is_used_if_it_is_empty_and_the_same(place):
    place.query("CREATE SCHEMA shop")
    place.query("CREATE TABLE shop.orders (id int PRIMARY KEY, note varchar(40) CHECK (note > 'a'))")
    feed(place.sink(), [create(1, ORDERS)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("INSERT INTO shop.orders VALUES (1, 'mine')", "shop.orders is about to be loaded"),
        (
            "ALTER TABLE shop.orders ADD mine INT",
            "differs from shop.orders: it has column mine integer, which the source lacks: remove",
        ),
        (
            "ALTER TABLE shop.orders ALTER note TYPE VARCHAR(39)",
            "it has column note as character varying.39. in place of character varying.40.:",
        ),
        (
            "ALTER TABLE shop.orders DROP CONSTRAINT orders_pkey",
            "it has column id as integer in place of integer key:",
        ),
    ],
)
def test_a_table_with_rows_or_of_another_shape_is_never_written_to(place, change, message):
    place.query("CREATE SCHEMA shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(40))")
    place.query(change)
    with pytest.raises(SinkError, match=message):
        feed(place.sink(), [create(1, ORDERS)])


# --- one row change for each row event --------------------------------------------------------------


def count_changes(place, *tables):
    place.query("CREATE TABLE counted (what TEXT)")
    place.query(
        "CREATE FUNCTION counts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO counted VALUES (TG_TABLE_NAME || ' ' || TG_OP); RETURN NULL; END $$"
    )
    for table in tables:
        place.query(
            f"CREATE TRIGGER counts AFTER INSERT OR UPDATE OR DELETE ON shop.{table} "
            "FOR EACH ROW EXECUTE FUNCTION counts()"
        )


def counted(place):
    return Counter(dict(place.query("SELECT what, COUNT(*) FROM counted GROUP BY what")))


def test_triggers_on_the_target_count_each_event_once(place):
    feed(place.sink(), HISTORY[:9])
    count_changes(place, "orders", "pairs", "loose")
    feed(place.sink(), HISTORY, max_rows=1000)
    events = Counter(
        f"{change.table.name} {change.op.upper()}"
        for item in HISTORY[9:]
        if isinstance(item, Transaction)
        for change in item.rows
    )
    assert counted(place) == events


def test_many_changes_of_rows_without_a_key_fire_triggers_once_each(place):
    loaded(place, LOOSE, rows=[(1, "a")] * 9)
    count_changes(place, "loose")
    changes = [update(LOOSE, (1, "a"), (1, "b"))] * 3 + [delete(LOOSE, 1, "a")] * 4
    feed(place.sink(), [transaction(30, *changes)], max_rows=10_000)
    assert counted(place) == {"loose UPDATE": 3, "loose DELETE": 4}
    assert Counter(place.rows(LOOSE)) == {(1, "a"): 2, (1, "b"): 3}


def test_many_deletes_of_rows_without_a_key_take_few_scans(place):
    rows = [(number, f"row {number}") for number in range(20_000)]
    loaded(place, LOOSE, rows=rows)
    scans = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'loose'"
    place.query("SELECT pg_stat_force_next_flush()")
    ((before,),) = place.query(scans)
    feed(place.sink(), [transaction(30, *[delete(LOOSE, *one) for one in rows[:17_400]])], max_rows=10_000)
    eventually(lambda: place.query(scans)[0][0] > before)
    assert place.query(scans)[0][0] - before < 30
    assert Counter(place.rows(LOOSE)) == Counter(rows[17_400:])


def test_a_row_that_a_trigger_leaves_out_is_an_error(place):
    loaded(place, ORDERS)
    place.query(
        "CREATE FUNCTION leaves_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$; "
        "CREATE TRIGGER leaves_out BEFORE INSERT ON shop.orders FOR EACH ROW "
        "WHEN (NEW.id = 7) EXECUTE FUNCTION leaves_out()"
    )
    for count in (1, 100):
        with pytest.raises(SinkError, match=r"insert of shop.orders \(id=7\)"):
            feed(place.sink(), [transaction(30, *[insert(ORDERS, n + 7, "x") for n in range(count)])], 1000)
    assert place.rows(ORDERS) == []


def test_a_unique_index_that_wanders_within_a_batch_is_followed(place):
    """One after the other these updates never collide."""
    loaded(place, ORDERS, rows=[(1, "a"), (2, "b"), (3, "c")])
    place.query("ALTER TABLE shop.orders ADD UNIQUE (note)")
    moves = [
        update(ORDERS, (3, "c"), (3, "d")),
        update(ORDERS, (2, "b"), (2, "c")),
        update(ORDERS, (1, "a"), (1, "b")),
    ]
    feed(place.sink(), [transaction(30, *moves)], max_rows=1000)
    assert sorted(place.rows(ORDERS)) == [(1, "b"), (2, "c"), (3, "d")]


# --- divergence -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (insert(ORDERS, 1, "x"), r"insert of shop.orders .id=1.: duplicate key .*: Key \(id\)=\(1\) already"),
        (insert(ORDERS, 9, "x" * 41), "insert of shop.orders .id=9.: value too long"),
    ],
)
def test_a_row_that_does_not_fit_is_named_and_nothing_is_written(place, change, named):
    assert_refused(place, ORDERS, change, named)


def test_a_missing_column_or_table_is_named(place):
    loaded(place, ORDERS, LOOSE)
    place.query("ALTER TABLE shop.orders DROP note")
    with pytest.raises(SinkError, match=r"shop\.orders: it lacks column note character varying\(40\): "):
        feed(place.sink(), [transaction(30, insert(ORDERS, 1, "x"))])
    place.query("DROP TABLE shop.loose")
    with pytest.raises(SinkError, match=r"the copy of shop\.loose, isn't there"):
        feed(place.sink(), [transaction(30, insert(LOOSE, 1, "x"))])


def test_several_feeds_share_a_database(place):
    loaded(place, ORDERS)
    other = PostgresPlace(place.server, place.database, feed="other")
    loaded(other, PAIRS)
    feed(place.sink(), [transaction(30, insert(ORDERS, 1, "x"))])
    found = place.query("SELECT feed, ts FROM tidemill.tidemill_checkpoint ORDER BY feed")
    assert found == [("other", 20), ("test", 30)]


def test_a_damaged_checkpoint_is_named(place):
    loaded(place, ORDERS)
    place.query("UPDATE tidemill.tidemill_checkpoint SET checkpoint = left(checkpoint, 50)")
    with pytest.raises(CheckpointError, match=r"table tidemill_checkpoint, feed 'test' is damaged"):
        place.sink().open()


# --- schema changes ---------------------------------------------------------------------------------


def renamed(ts, *pairs):
    query = "RENAME TABLE …"
    return replace(alter(ts, ORDERS, query, RenameTables(pairs)), schema=pairs[0][0][0], table=pairs[0][0][1])


def test_a_schema_change_is_undone_with_its_transaction(place):
    loaded(place, ORDERS, rows=[(1, "a")])
    sink = place.sink()
    sink.open()
    sink.write(batch(alter(30, ORDERS, "ALTER", DropColumn("note"))))
    sink.close()
    assert place.rows(ORDERS) == [(1, "a")]


def test_a_table_is_renamed_into_another_schema(place):
    tables = [replace(ORDERS, schema="one"), replace(ORDERS, schema="one", name="pairs")]
    loaded(place, *tables, rows=[(1, "x")])
    swap = (("one", "orders"), ("two", "pairs")), (("one", "pairs"), ("one", "orders"))
    feed(place.sink(), [renamed(30, *swap)])
    names = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('one', 'two') ORDER BY 1, 2"
    assert place.query(names) == [("one", "orders"), ("two", "pairs")]
    feed(place.sink(), [renamed(31, (("one", "orders"), ("two", "orders")))])
    assert place.query(names) == [("two", "orders"), ("two", "pairs")]


def test_in_a_chosen_schema_only_the_table_s_name_changes(place):
    place.options = {"schema": "all"}
    loaded(place, ORDERS, PAIRS)
    feed(place.sink(), [transaction(30, insert(ORDERS, 1, "x"))])
    moves = [
        renamed(31, (("shop", "orders"), ("mall", "orders"))),
        renamed(32, (("mall", "orders"), ("a", "b"))),
    ]
    feed(place.sink(), moves)
    assert place.query('SELECT * FROM "all".b') == [(1, "x")]
    with pytest.raises(SinkError, match=r"RENAME TABLE .* already exists"):
        feed(place.sink(), [renamed(33, (("a", "b"), ("mall", "pairs")))])


def test_two_tables_that_would_get_one_name_are_named(place):
    place.options = {"schema": "all"}
    items = [create(1, ORDERS), create(2, PAIRS), transaction(3, chunk=Chunk(""))]
    with pytest.raises(SinkError, match=r"shop\.pairs and mall\.pairs would both be called all\.pairs"):
        feed(place.sink(), [*items, renamed(4, (("shop", "orders"), ("mall", "pairs")))])
    feed(place.sink(), [*items, renamed(4, (("shop", "orders"), ("mall", "notes")))])


def test_added_columns_hold_the_default_of_the_source(place):
    loaded(place, ORDERS, rows=[(1, "a")])
    columns = [
        Column("plain", "int"),
        Column("needed", "varchar", length=5, nullable=False),
        Column("price", "decimal", length=8, scale=2, nullable=False, default="1.5"),
        Column("made", "timestamp", scale=3, default="current_timestamp(3)"),
        Column("word", "varchar", length=9, default="'it''s'"),
        Column("bytes", "varbinary", length=9, default="x'00ff'"),
        Column("bits", "bit", length=5, default="b'101'"),
    ]
    feed(place.sink(), [alter(30, ORDERS, "ALTER", *map(AddColumn, columns), epoch_seconds=1_700_000_000.25)])
    assert place.query("SELECT *, made::text FROM shop.orders")[0][2:5] == (None, "", Decimal("1.50"))
    found = place.query("SELECT made::text, word, bytes, bits FROM shop.orders")
    assert found == [("2023-11-14 22:13:20.25+00", "it's", b"\0\xff", "00101")]
    query = "SELECT column_name FROM information_schema.columns WHERE column_default IS NOT NULL"
    named = {name for (name,) in place.query(query)}
    assert named >= {"price", "word", "bytes", "bits"}
    assert named.isdisjoint({"plain", "needed", "made"})


def test_a_zero_date_as_implicit_default_is_refused_unless_dates_are_text(place):
    loaded(place, ORDERS, LOOSE)
    added = AddColumn(Column("day", "date", nullable=False))
    feed(place.sink(), [transaction(29, insert(ORDERS, 1, "a")), alter(30, LOOSE, "ALTER", added)])
    with pytest.raises(SinkError, match=r"shop\.orders, column day: PostgreSQL has no date '0000-00-00'"):
        feed(place.sink(), [alter(31, ORDERS, "ALTER", added)])
    feed(place.sink(dates="text"), [alter(31, ORDERS, "ALTER", added)])
    assert place.query("SELECT day FROM shop.orders") == [("0000-00-00",)]


def test_names_of_columns_are_found_in_other_letters(place):
    table = replace(ORDERS, columns=(ORDERS.columns[0], replace(ORDERS.columns[1], name="Note")))
    loaded(place, table, rows=[(1, "a")])
    note = replace(table.columns[1], name="NOTE")
    changes = [ChangeColumn("note", note, table.columns[1]), ChangeKey(("ID", "note"))]
    feed(place.sink(), [alter(30, table, "ALTER", *changes)])
    wider = replace(table, columns=(table.columns[0], note), key=(0, 1))
    feed(place.sink(), [transaction(31, update(wider, (1, "a"), (1, "b")))])
    assert place.rows(wider) == [(1, "b")]
    feed(place.sink(), [alter(32, table, "ALTER", ChangeKey(("id",)), DropColumn("nOtE"))])
    assert place.query("SELECT * FROM shop.orders") == [(1,)]


def test_longer_bits_keep_their_number(place):
    bits = Column("bits", "bit", length=5)
    table = Table("shop", "flags", (Column("id", "int", nullable=False), bits), key=(0,))
    loaded(place, table, rows=[(1, 5), (2, None)])
    wider = replace(bits, length=9)
    feed(place.sink(), [alter(30, table, "ALTER", ChangeColumn("bits", wider, bits))])
    assert sorted(place.rows(replace(table, columns=(table.columns[0], wider)))) == [(1, 5), (2, None)]


def test_times_with_more_digits_are_loaded_again_only_if_they_are_text(place):
    at = Column("at", "datetime")
    table = Table("shop", "times", (Column("id", "int", nullable=False), at), key=(0,))
    change = alter(30, table, "ALTER", ChangeColumn("at", replace(at, scale=3), at))
    for schema, dates in ("native", "native"), ("texts", "text"):
        place.options = {"schema": schema, "dates": dates}
        loaded(place, table, rows=[(1, datetime.fromisoformat("2024-01-01"))])
    feed(PostgresPlace(place.server, place.database, schema="native").sink(), [change])
    with pytest.raises(SinkError, match="its values may not stay the same from datetime to datetime"):
        feed(place.sink(), [change])


def test_a_column_that_was_changed_by_hand_is_loaded_again(place):
    loaded(place, ORDERS, rows=[(1, "a")])
    place.query("ALTER TABLE shop.orders ALTER note TYPE text")
    longer = replace(ORDERS.columns[1], length=50)
    with pytest.raises(SinkError, match=r"column note: it is text in the target, and was varchar\(40\)"):
        feed(place.sink(), [alter(30, ORDERS, "ALTER", ChangeColumn("note", longer, ORDERS.columns[1]))])


# --- a target that can't, for now -------------------------------------------------------------------


def test_a_commit_that_rolls_back_is_never_taken_for_one(place):
    sink = place.sink()
    sink.open()
    session = sink._database.session
    session.execute("BEGIN")
    with suppress(Exception):
        session.execute("SELECT 1/0")
    with pytest.raises(Exception, match="answered a COMMIT with ROLLBACK"):
        session.commit()
    sink.close()


def test_a_row_that_others_have_locked_is_waited_for(place):
    loaded(place, ORDERS, rows=[(1, "a")])
    sink = place.sink(workers=1)
    work = Delivery(sink, sink.open(), "src")
    sink._database.session.execute("SET lock_timeout='100ms'")
    with place.server.connect(dbname=place.database, autocommit=False) as other:
        other.execute("SELECT * FROM shop.orders WHERE id = 1 FOR UPDATE")
        work.accept([transaction(30, update(ORDERS, (1, "a"), (1, "b")))])
        with pytest.raises(Retryable, match="lock timeout"):
            work.run(0)
    work.run(0)
    sink.close()
    assert place.rows(ORDERS) == [(1, "b")]


def test_a_server_that_comes_back_is_found_again(private_postgresql):
    place = PostgresPlace(private_postgresql.start(), "postgres")
    sink = place.sink(workers=1)
    work = Delivery(sink, sink.open(), "src", DeliveryOptions(rowless_seconds=0))
    work.accept(HISTORY[:12])
    work.run(0)
    private_postgresql.kill()
    work.accept(HISTORY[12:])
    for _ in range(2):
        with pytest.raises(Retryable, match=r"postgresql://127\.0\.0\.1"):
            work.run(0)
    private_postgresql.start()
    work.run(0)
    sink.close()
    assert {table.full_name: Counter(place.rows(table)) for table in STATES} == expected(HISTORY)


def test_a_server_that_shuts_down_is_waited_for(private_postgresql):
    place = PostgresPlace(private_postgresql.start(), "postgres")
    loaded(place, ORDERS)
    sink = place.sink(workers=1)
    work = Delivery(sink, sink.open(), "src")
    private_postgresql.restart()
    work.accept([transaction(30, insert(ORDERS, 1, "x"))])
    with pytest.raises(Retryable):
        work.run(0)
    work.run(0)
    sink.close()
    assert place.rows(ORDERS) == [(1, "x")]


def test_settings_that_change_the_meaning_of_statements_do_not_matter(private_postgresql):
    private_postgresql.options = (
        "--standard_conforming_strings=off",
        "--datestyle=SQL, DMY",
        "--timezone=Asia/Kolkata",
        "--intervalstyle=sql_standard",
        "--search_path=nowhere",
        "--synchronous_commit=off",
        "--statement_timeout=1h",
        "--default_transaction_isolation=serializable",
        "--bytea_output=escape",
        "--transform_null_equals=on",
    )
    place = PostgresPlace(private_postgresql.start(), "postgres")
    loaded(place, kinds.KEYED, kinds.KEYLESS, rows=EVERY)
    sink = place.sink()
    sink.open()
    (found,) = sink._database.session.rows(
        "SELECT current_setting('synchronous_commit'), current_setting('statement_timeout')"
    )
    sink.close()
    assert found == ("on", "0")
    private_postgresql.options = ()
    private_postgresql.restart()
    assert Counter(place.rows(kinds.KEYED)) == Counter(EVERY)
    feed(place.sink(), [transaction(40, *[delete(kinds.KEYLESS, *row) for row in EVERY])], max_rows=1000)
    assert place.rows(kinds.KEYLESS) == []


def test_a_database_of_another_encoding_is_refused(place):
    name = f"{place.database}_latin"
    place.query(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(SinkError, match="stores text in LATIN1, which lacks characters of the source"):
        PostgresPlace(place.server, name).sink().open()
    place.query(f"DROP DATABASE {name}")


@pytest.mark.parametrize(
    ("user", "password", "database", "reason"),
    [
        ("root", "wrong-word", "postgres", 'password authentication failed for user "root"'),
        ("nobody", "wrong-word", "postgres", 'password authentication failed for user "nobody"'),
        ("root", "tidemill", "elsewhere", 'database "elsewhere" does not exist'),
        ("root", "tidemill", "postgres?sslmode=require", "server does not support SSL"),
        ("root", "tidemill", "postgres?sslmodus=require", 'invalid connection option "sslmodus"'),
    ],
)
def test_a_login_that_is_refused_is_an_error_that_says_so(postgresql, user, password, database, reason):
    url = postgresql.url(database, user=user, password=password)
    sink = open_sink("copy", url, feed="test", store=MemoryStore())
    with pytest.raises(SinkError, match=reason) as error:
        sink.open()
    assert "word@" not in str(error.value)
    assert password not in str(error.value).replace("password", "")


def test_a_server_that_is_not_there_may_come(postgresql):
    sink = open_sink("copy", "postgresql://root@127.0.0.1:1/shop", feed="test", store=MemoryStore())
    with pytest.raises(
        Retryable, match=r"postgresql://127\.0\.0\.1:1/shop: connecting: .*Connection refused"
    ):
        sink.open()


def test_a_user_with_as_many_connections_as_allowed_waits_for_one(place):
    user = f"few_{place.database}"
    place.query(
        f"CREATE USER {user} SUPERUSER PASSWORD 'word'; ALTER USER {user} NOSUPERUSER CONNECTION LIMIT 1"
    )
    place.query(f"GRANT CREATE ON DATABASE {place.database} TO {user}")
    url = place.server.url(place.database, user=user, password="word")
    one, two = (open_sink("copy", url, feed="test", store=MemoryStore()) for _ in range(2))
    one.open()
    with pytest.raises(Retryable, match="too many connections for role"):
        two.open()
    one.close()

    def is_let_in():
        with suppress(Retryable):
            two.open()
            return True

    eventually(is_let_in)
    two.close()
    place.query(f"DROP OWNED BY {user}; DROP USER {user}")


# --- preflight checks -------------------------------------------------------------------------------


def findings(url, **options):
    context = SinkContext(name="copy", feed="test", store=MemoryStore())
    return list(survey_sink(given_sink("copy", url, options), context))


def survey(url, **options):
    return [(finding.level, finding.text) for finding in findings(url, **options)]


def test_a_check_says_where_the_feed_begins_and_changes_nothing(place):
    url = place.server.url(place.database)
    assert survey(url) == [("ok", "127.0.0.1 answers"), ("ok", "has no position yet")]
    assert place.query("SELECT 1 FROM pg_namespace WHERE nspname = 'tidemill'") == []
    loaded(place, ORDERS)
    assert survey(url)[-1] == ("ok", "has position log:20")
    assert survey(url, schema="other")[-1] == ("ok", "has no position yet")


def test_a_check_names_missing_rights_and_refused_logins(place):
    user = f"reader_{place.database}"
    place.query(f"CREATE USER {user} PASSWORD 'word'")
    url = place.server.url(place.database, user=user, password="word")
    try:
        assert survey(url)[1:] == [
            ("error", f"{user} has no right to create schema tidemill"),
            ("warning", f"{user} has no right to create schemas: those of the source must be there"),
            ("ok", "has no position yet"),
        ]
        place.query("CREATE SCHEMA mine")
        named = ("error", f"{user} has no right to create tables in schema mine")
        assert named in survey(url, schema="mine")
        for remedy in (one for found in findings(url, schema="mine") for one in found.remedy):
            place.query(remedy)
        assert {level for level, _ in survey(url, schema="mine")} == {"ok"}
    finally:
        place.query(f"DROP OWNED BY {user}; DROP USER {user}")
    ((level, text),) = survey(place.server.url(place.database, user=user, password="word"))
    assert level == "error"
    assert "password authentication failed" in text
    assert "word@" not in text


@pytest.mark.parametrize("options", [{}, {"merge": True}, {"workers": 4}])
def test_a_cascade_of_the_target_comes_before_the_rows_that_follow_it(place, options):
    """The line goes with its order, then both come back: in one SQL transaction, too."""
    loaded(place, ORDERS, PAIRS)
    feed(place.sink(), [transaction(21, insert(ORDERS, 1, "a"), insert(PAIRS, 1, "x", 1))])
    place.query("ALTER TABLE shop.pairs ADD FOREIGN KEY (a) REFERENCES shop.orders (id) ON DELETE CASCADE")
    changes = [
        transaction(31, delete(PAIRS, 1, "x", 1), delete(ORDERS, 1, "a")),
        transaction(32, insert(ORDERS, 1, "b"), insert(PAIRS, 1, "z", 2)),
    ]
    feed(place.sink(**options), changes)
    assert place.rows(PAIRS) == [(1, "z", 2)]
