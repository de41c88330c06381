"""Changes that are seen to be in commit order are in the order in which sorting puts them."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tidemill.events import DELETE, PUT, KvChange
from tidemill.sorter.cursor import MergeCursor
from tidemill.sorter.cut import make_runs
from tidemill.sorter.order import are_distinct, has_repeated, sort
from tidemill.sorter.run import floor
from tidemill.sorter.table import Table

stamps = st.sampled_from([5, 6, 7])
changes = st.builds(
    KvChange,
    commit_ts=stamps,
    start_ts=st.sampled_from([1, 1, 1, 2]),
    op=st.sampled_from([PUT, PUT, PUT, DELETE]),
    key=st.integers(0, 99).map(lambda number: b"%02d" % number),
    value=st.just(b""),
)
transactions = st.lists(
    st.tuples(stamps, st.sets(st.binary(min_size=1, max_size=2), max_size=12), st.booleans()), max_size=4
)


def of(parts):
    return [
        KvChange(ts, 1, PUT, key, b"")
        for ts, keys, in_order in parts
        for key in (sorted(keys) if in_order else keys)
    ]


def check(given: list[KvChange]) -> None:
    found = given.copy()
    distinct = sort(found)
    assert [c.commit_ts for c in found] == sorted(c.commit_ts for c in given)
    assert found == sorted(given)
    assert not (distinct and has_repeated(found))


@given(st.lists(changes, max_size=40))
@example([KvChange(5, 1, PUT, b"%d" % (number % 5), b"") for number in range(10)])
def test_sorted_changes_are_in_commit_order(given):
    check(given)


@given(transactions)
def test_changes_of_transactions_are_in_commit_order(parts):
    check(of(parts))


def test_a_transaction_that_ascends_by_key_is_not_sorted():
    ascending = [KvChange(ts, 1, PUT, b"%02d" % key, b"") for ts in (5, 6) for key in range(20)]
    assert are_distinct(ascending)
    for at in (0, 25):  # a key that comes twice, or out of order
        assert not are_distinct([*ascending[: at + 1], *ascending[at:]])
        assert not are_distinct([*ascending[:at], ascending[at + 1], ascending[at], *ascending[at + 2 :]])
    other = KvChange(6, 2, PUT, b"99", b""), KvChange(6, 1, DELETE, b"99", b"")
    assert not any(are_distinct([*ascending, change]) for change in other)


@given(st.lists(changes, min_size=1, max_size=40), st.booleans(), st.lists(stamps, max_size=4).map(sorted))
def test_a_cursor_takes_what_is_below_each_bound(given, ascend, bounds):
    if ascend:
        given = sorted(given, key=lambda change: change.commit_ts)
    (run,) = make_runs([Table(1, 1, 0, 0, 0.0)], None, given.copy(), 100, 1 << 20)
    assert run.ascends == (given == sorted(given, key=lambda change: change.commit_ts))
    cursor = MergeCursor(run, run.changes, None)
    taken = []
    for ts in bounds:
        left = [change for change in given if change not in taken]
        end = cursor.find(floor(ts))
        below = cursor.changes[cursor.at : end]
        assert sorted(below) == sorted(change for change in left if change.commit_ts < ts)
        taken += below
        cursor.advance(end)
        assert all(cursor.first <= change for change in cursor.changes[cursor.at :])
