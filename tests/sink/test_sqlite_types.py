from __future__ import annotations

import sqlite3
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidemill.dialects.sqlite.types import compile_encode, declared_type, from_sqlite
from tidemill.events import Column
from tidemill.testing.column_kinds import EVERY

CASES = [pytest.param(column, values, id=column.name) for column, values in EVERY]


def stored(column, values):
    """The values as they come back from a column of SQLite, in the order that it gives them."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t (v {declared_type(column)})")
    connection.executemany("INSERT INTO t VALUES (?)", compile_encode((column,), [0])([(v,) for v in values]))
    found = [value for (value,) in connection.execute("SELECT v FROM t ORDER BY rowid")]
    connection.close()
    return found


@pytest.mark.parametrize(("column", "values"), CASES)
def test_every_value_comes_back(column, values):
    found = [from_sqlite(column, value) for value in stored(column, [*values, None])]
    assert found == [*values, None]
    assert [type(value) for value in found] == [type(value) for value in [*values, None]]


@pytest.mark.parametrize(("column", "values"), CASES)
def test_a_row_is_found_by_its_value(column, values):
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t (v {declared_type(column)} PRIMARY KEY) WITHOUT ROWID")
    encoded = compile_encode((column,), [0])([(v,) for v in values])
    connection.executemany("INSERT INTO t VALUES (?)", encoded)
    for value in encoded:
        assert connection.execute("DELETE FROM t WHERE v = ?", value).rowcount == 1
    connection.close()


@example([9, 10**19, 2**63, 10**19 - 1, 2**63 - 1, 2**64 - 1])
@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, unique=True))
def test_unsigned_integers_keep_their_order(values):
    column = Column("v", "bigint", True)
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t (v {declared_type(column)})")
    connection.executemany("INSERT INTO t VALUES (?)", compile_encode((column,), [0])([(v,) for v in values]))
    found = [from_sqlite(column, value) for (value,) in connection.execute("SELECT v FROM t ORDER BY v")]
    connection.close()
    assert found == sorted(values)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=30).filter(lambda d: abs(d) < 10**35))
def test_decimals_keep_every_digit(value):
    column = Column("v", "decimal", length=65, scale=30)
    (text,) = stored(column, [value])
    assert len(text.partition(".")[2]) == 30
    assert from_sqlite(column, text) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_keep_every_bit_but_the_sign_of_zero(value):
    assert stored(Column("v", "double"), [value]) == [value]


def test_times_are_printed_as_the_source_prints_them():
    for column, values in EVERY:
        if column.kind in ("time", "datetime", "timestamp"):
            for text in stored(column, values):
                assert len(text.partition(".")[2]) == column.scale
    assert stored(Column("v", "decimal", length=5, scale=2), [Decimal("1E+1")]) == ["10.00"]
