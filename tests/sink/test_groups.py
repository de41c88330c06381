from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tidemill.dialects.groups import cut_groups
from tidemill.events import Column, runs_of
from tidemill.testing.changes import LOOSE, ORDERS, PAIRS, delete, insert, update


def shape(changes, max_rows=100):
    return [(run.table.name, run.op, len(run.changes)) for run in cut_groups(runs_of(changes), max_rows)]


def test_like_changes_of_a_table_are_one_run():
    changes = [insert(ORDERS, 1, "a"), insert(ORDERS, 2, "b"), delete(ORDERS, 3, "c"), delete(ORDERS, 4, "d")]
    assert shape(changes) == [("orders", "insert", 2), ("orders", "delete", 2)]


def test_tables_do_not_cut_each_other():
    changes = [
        insert(ORDERS, 1, "a"),
        insert(PAIRS, 1, "a", 1),
        insert(ORDERS, 2, "b"),
        insert(PAIRS, 2, "b", 2),
    ]
    assert shape(changes) == [("orders", "insert", 2), ("pairs", "insert", 2)]


def test_linked_tables_keep_their_order():
    changes = [
        insert(PAIRS, 1, "a", 1),
        delete(ORDERS, 1, "a"),
        insert(LOOSE, 1, "x"),
        delete(PAIRS, 1, "a", 1),
    ]
    found = cut_groups(runs_of(changes), 100, lambda table: table in (ORDERS, PAIRS))
    assert [(run.table.name, run.op) for run in found] == [
        ("pairs", "insert"),
        ("orders", "delete"),
        ("pairs", "delete"),
        ("loose", "insert"),
    ]


def test_a_key_that_comes_twice_cuts():
    changes = [update(ORDERS, (1, "a"), (1, "b")), update(ORDERS, (2, "a"), (2, "b"))]
    assert shape([*changes, *changes]) == [("orders", "update", 2), ("orders", "update", 2)]


def test_another_version_of_the_table_cuts():
    wider = replace(ORDERS, columns=(*ORDERS.columns, Column("n", "int")))
    assert shape([insert(ORDERS, 1, "a"), insert(wider, 2, "b", 3)]) == [("orders", "insert", 1)] * 2


def test_without_a_key_nothing_cuts():
    assert shape([delete(LOOSE, 1, "a")] * 3) == [("loose", "delete", 3)]


def test_an_update_of_the_key_is_alone():
    changes = [update(ORDERS, (n, "a"), (n + 1, "a")) for n in (3, 2, 1)]
    assert shape(changes) == [("orders", "move", 1)] * 3


def test_a_run_has_at_most_so_many_rows():
    assert shape([insert(ORDERS, n, "") for n in range(5)], 2) == [("orders", "insert", n) for n in (2, 2, 1)]


CHANGE = st.one_of(
    st.builds(lambda n: insert(ORDERS, n, "x"), st.integers(0, 3)),
    st.builds(lambda n: delete(ORDERS, n, "x"), st.integers(0, 3)),
    st.builds(lambda n, m: update(ORDERS, (n, "x"), (m, "y")), st.integers(0, 3), st.integers(0, 3)),
    st.builds(lambda n: delete(LOOSE, n, "x"), st.integers(0, 3)),
    st.builds(lambda n: insert(PAIRS, n, "x", n), st.integers(0, 3)),
)


@given(st.lists(CHANGE), st.integers(1, 4))
def test_each_table_keeps_its_changes_in_order(changes, max_rows):
    runs = cut_groups(runs_of(changes), max_rows)
    for table in (ORDERS, LOOSE, PAIRS):
        ordered = [change for run in runs if run.table is table for change in run.changes]
        assert ordered == [change for change in changes if change.table is table]
    for run in runs:
        assert 1 <= len(run.changes) <= max_rows
        keys = [change.before[0] for change in run.changes if change.before and run.table is ORDERS]
        assert len(keys) == len(set(keys))
        assert {change.op for change in run.changes} == {"update" if run.op == "move" else run.op}
