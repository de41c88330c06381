from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from msgspec.structs import replace

from tidemill.errors import ConfigError, Retryable, SinkError
from tidemill.events import (
    AddColumn,
    ChangeColumn,
    ChangeKey,
    Column,
    DropColumn,
    RenameTables,
    Table,
    TruncateTable,
)
from tidemill.sink import open_sink
from tidemill.sink.registry import given_sink
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import (
    LOOSE,
    ORDERS,
    PAIRS,
    MemoryStore,
    alter,
    batch,
    create,
    delete,
    insert,
    transaction,
    update,
)
from tidemill.testing.child import Child
from tidemill.testing.sink_conformance import HISTORY, STATES, expected, feed

from ..dialects.places import DuckDbPlace
from .sql_conformance import assert_refused, loaded


def query(place, sql):
    with duckdb.connect(str(place.path)) as connection:
        return connection.execute(sql).fetchall()


@pytest.fixture
def place(tmp_path):
    return DuckDbPlace(tmp_path / "copy.duckdb")


# --- values and tables ------------------------------------------------------------------------------


def test_every_value_is_stored_and_found_again(place):
    rows = [*kinds.ROWS, kinds.NULLS]
    loaded(place, kinds.KEYED, kinds.KEYLESS, rows=rows)
    new = [(row[0], *other[1:]) for row, other in zip(rows, [*rows[1:], rows[0]], strict=True)]
    for ts, table in [(30, kinds.KEYED), (60, kinds.KEYLESS)]:
        assert Counter(place.rows(table)) == Counter(rows)
        updates = [update(table, before, after) for before, after in zip(rows, new, strict=True)]
        feed(place.sink(), [transaction(ts, *updates)], max_rows=1000)
        assert Counter(place.rows(table)) == Counter(new)
        feed(place.sink(), [transaction(ts + 10, *[delete(table, *row) for row in new])], max_rows=1000)
        assert place.rows(table) == []


def test_types_are_those_of_the_documentation(place):
    columns = [column for column, _ in kinds.EVERY if column.kind not in ("date", "datetime", "timestamp")]
    dates = [Column("d", "date"), Column("dt", "datetime", scale=3), Column("ts", "timestamp")]
    place.options = {}
    feed(place.sink(), [create(1, Table("shop", "kinds", (*columns, *dates)))])
    found = dict(query(place, "SELECT column_name, data_type FROM duckdb_columns() WHERE schema_name='shop'"))
    page = (Path(__file__).parents[2] / "docs/reference/duckdb.md").read_text()
    assert [type_ for type_ in found.values() if f"`{type_.partition('(')[0]}" not in page] == []
    assert found["bigint_unsigned"] == "UBIGINT"
    assert (found["wide"], found["whole"]) == ("VARCHAR", "DECIMAL(10,0)")
    assert (found["d"], found["dt"], found["ts"]) == ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")


@pytest.mark.parametrize("bad", ["0000-00-00", "2024-02-31"])
def test_a_date_that_does_not_exist_is_refused_by_name(place, bad):
    place.options = {}
    table = Table("shop", "days", (Column("id", "int", nullable=False), Column("day", "date")), key=(0,))
    loaded(place, table, rows=[])
    with pytest.raises(
        SinkError, match=f"insert of shop.days .id=1.: column day: DuckDB has no date '{bad}'"
    ):
        feed(place.sink(), [transaction(30, insert(table, 1, bad))])
    assert place.rows(table) == []


def test_a_time_in_a_key_is_refused_by_name(place):
    columns = (Column("id", "int", nullable=False), Column("at", "time", nullable=False))
    table = Table("shop", "starts", columns, key=(0, 1))
    said = "table shop.starts: column at: DuckDB has no keys of INTERVAL"
    with pytest.raises(SinkError, match=said):
        feed(place.sink(), [create(1, table)])
    given = given_sink("copy", place.url)
    (finding,) = given.kind.misfits(given.options, table)
    assert finding.text.startswith(said)
    feed(place.sink(), [create(1, replace(table, key=(0,)))])


def test_the_sign_of_zero_tells_rows_without_a_key_apart(place):
    table = Table("shop", "zeros", (Column("x", "double"),))
    loaded(place, table, rows=[(0.0,), (-0.0,)])
    feed(place.sink(), [transaction(30, delete(table, -0.0), update(table, (0.0,), (-0.0,)))])
    assert query(place, "SELECT x::VARCHAR FROM copy.shop.zeros") == [("-0.0",)]


def test_a_schema_named_like_the_file_and_names_of_any_character_are_kept_apart(place):
    columns = (Column('a "b" ? $1', "int", nullable=False), Column("select", "varchar", length=5))
    table = Table("copy", 'odd "name" ?', columns, key=(0,))
    loaded(place, table, rows=[(1, "x"), (2, "y")])
    feed(place.sink(), [transaction(30, update(table, (1, "x"), (1, "z")), delete(table, 2, "y"))])
    assert query(place, 'FROM copy.copy."odd ""name"" ?"') == [(1, "z")]


def test_a_key_that_is_there_is_named_and_nothing_is_written(place):
    assert_refused(place, ORDERS, insert(ORDERS, 1, "x"), "insert of shop.orders .id=1.: .*Duplicate key")


def test_in_safe_mode_rows_are_those_after_the_changes(place):
    loaded(place, ORDERS, LOOSE, rows=[(1, "a"), (2, "b")])
    changes = [
        insert(ORDERS, 1, "new"),
        update(ORDERS, (7, "x"), (8, "y")),
        delete(ORDERS, 9, "no"),
        update(ORDERS, (2, "?"), (2, "c")),
        delete(LOOSE, 5, "no"),
        update(LOOSE, (1, "a"), (1, "A")),
    ]
    feed(place.sink(safe_mode=True), [transaction(30, *changes)], max_rows=1000)
    assert Counter(place.rows(ORDERS)) == Counter([(1, "new"), (2, "c"), (8, "y")])
    assert Counter(place.rows(LOOSE)) == Counter([(2, "b"), (1, "A")])


def test_a_rejected_row_becomes_a_dead_letter_and_the_others_are_written(place):
    loaded(place, ORDERS, rows=[(1, "a")])
    changes = [insert(ORDERS, 2, "b"), insert(ORDERS, 1, "again"), insert(ORDERS, 3, "c")]
    feed(place.sink(on_error="dead letters"), [transaction(30, *changes)], max_rows=1000)
    assert Counter(place.rows(ORDERS)) == Counter([(1, "a"), (2, "b"), (3, "c")])
    assert query(place, "SELECT op, ts FROM tidemill_dead_letters") == [("insert", 30)]


# --- schema changes ---------------------------------------------------------------------------------


def test_columns_and_keys_change_in_one_statement_with_the_same_rows(place):
    loaded(place, ORDERS, rows=[(1, "a"), (2, None)])
    wide = replace(ORDERS.columns[0], name="number", kind="bigint")
    price = Column("price", "decimal", length=8, scale=2, nullable=False, default="1.5")
    actions = [
        ChangeColumn("id", wide, ORDERS.columns[0]),
        AddColumn(price, None),
        AddColumn(Column("day", "varchar", length=9, default="'it''s'"), None),
        ChangeKey(("number", "price")),
    ]
    feed(place.sink(), [alter(30, ORDERS, "ALTER", *actions), alter(31, ORDERS, "ALTER", DropColumn("note"))])
    assert query(place, "FROM copy.shop.orders") == [
        (1, Decimal("1.50"), "it's"),
        (2, Decimal("1.50"), "it's"),
    ]
    rows = query(place, "SELECT constraint_column_names FROM duckdb_constraints() WHERE schema_name='shop' "
                 "AND constraint_type='PRIMARY KEY'")  # fmt: skip
    assert rows == [(["number", "price"],)]


def test_tables_swap_names_and_move_to_another_schema(place):
    other = replace(ORDERS, name="other")
    loaded(place, ORDERS, other, rows=[(1, "a")])
    feed(place.sink(), [transaction(30, update(other, (1, "a"), (2, "b")))])
    swap = (("shop", "orders"), ("shop", "other")), (("shop", "other"), ("shop", "orders"))
    move = ((("shop", "other"), ("mall", "orders")),)
    feed(place.sink(), [alter(32, ORDERS, "RENAME", RenameTables(swap))])
    feed(place.sink(), [alter(33, other, "RENAME", RenameTables(move))])
    assert query(place, "FROM copy.shop.orders") == [(2, "b")]
    assert query(place, "FROM copy.mall.orders") == [(1, "a")]
    feed(place.sink(), [alter(34, ORDERS, "TRUNCATE", TruncateTable())])
    assert query(place, "FROM copy.shop.orders") == []


def test_an_index_of_ones_own_is_named_before_a_table_is_created_again(place):
    loaded(place, ORDERS, rows=[(1, "a")])
    query(place, "CREATE INDEX mine ON copy.shop.orders (note)")
    with pytest.raises(SinkError, match=r"shop\.orders has indexes of its own \(mine\).*: drop them"):
        feed(place.sink(), [alter(30, ORDERS, "ALTER", DropColumn("note"))])
    assert place.rows(ORDERS) == [(1, "a")]


# --- a target that can't ----------------------------------------------------------------------------


def test_a_file_that_another_process_has_open_is_waited_for(place):
    script = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(place.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(Retryable, match="DuckDB lets one process write"):
            place.sink().open()
        other.stdin.close()
    loaded(place, PAIRS, rows=[])


def test_a_file_is_needed_and_its_directory_must_be_there(tmp_path):
    with pytest.raises(ConfigError, match="a DuckDB sink needs a file"):
        open_sink("copy", "duckdb://", feed="f", store=MemoryStore())
    sink = open_sink("copy", f"duckdb:///{tmp_path}/no/copy.duckdb", feed="f", store=MemoryStore())
    with pytest.raises(SinkError, match="does the directory exist"):
        sink.open()


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.delitem(sys.modules, "tidemill.dialects.duckdb.duckdb", raising=False)
    with pytest.raises(ConfigError, match=r"DuckDB needs: pip install 'tidemill\[duckdb\]'"):
        open_sink("copy", f"duckdb:///{tmp_path}/copy.duckdb", feed="f", store=MemoryStore())


def test_a_transaction_too_large_to_search_says_so_and_writes_nothing(place, monkeypatch):
    monkeypatch.setattr("tidemill.dialects.duckdb.session.MAX_KEPT_BYTES", 50)
    loaded(place, ORDERS, rows=[(1, "a")])
    changes = [insert(ORDERS, n, "x" * 50) for n in (2, 3, 1)]
    with pytest.raises(SinkError, match="nothing of it was written"):
        feed(place.sink(), [transaction(30, *changes)], max_rows=1)
    assert place.rows(ORDERS) == [(1, "a")]


# --- kill -9 ----------------------------------------------------------------------------------------

RUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tidemill.testing.sink_conformance import HISTORY, feed
from tests.dialects.places import DuckDbPlace
feed(DuckDbPlace(Path(sys.argv[2])).sink(), HISTORY)
"""


@pytest.mark.parametrize("point", ["sink.mid_batch", "sink.before_commit", "sink.committed"])
def test_killed_at_any_point_it_goes_on_where_it_was(place, point):
    root = Path(__file__).parents[2]
    kills = 0
    for nth in (5, 50):
        with Child([sys.executable, "-c", RUN, root, place.path], failpoint=f"{point}:{nth}") as child:
            status = child.exit_status()
        assert status in (0, -signal.SIGKILL)
        kills += status == -signal.SIGKILL
    assert kills >= 1
    assert {table.full_name: Counter(place.rows(table)) for table in STATES} == expected(HISTORY)


def test_a_full_disk_is_an_error_that_says_so(small_disk):
    place = DuckDbPlace(small_disk / "copy.duckdb")
    loaded(place, ORDERS)
    sink = place.sink()
    sink.open()
    rows = iter(range(1_000_000))

    def fill():
        for ts in range(30, 1000):
            made = [insert(ORDERS, next(rows), f"{n} of {ts}" * 3) for n in range(5_000)]
            sink.write(batch(transaction(ts, *made)))
            sink.flush()

    with pytest.raises(SinkError, match=r"No space left on device.*: make room, then start again"):
        fill()
    sink.close()


@pytest.mark.parametrize(
    "error",
    [
        duckdb.TransactionException("Failed to commit: Could not write file: No space left on device"),
        duckdb.IOException("Could not write all bytes of a block: No space left on device"),
        duckdb.FatalException("Failed to write the checkpoint: No space left on device"),
    ],
)
def test_a_full_disk_is_no_conflict_and_no_lock(place, error):
    found = place.sink()._database.explain(error, "committing")
    assert isinstance(found, SinkError)
    assert "make room, then start again" in str(found)
