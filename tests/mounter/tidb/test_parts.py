"""Decoded rows are divided where one transaction ends and the next one begins."""

from __future__ import annotations

from itertools import groupby, pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from tidemill.events import Column, RowChange, Table, Transaction
from tidemill.mounter.tidb.items import Items, Parts
from tidemill.mounter.tidb.runs import by_transaction

TABLE = Table("s", "t", (Column("a", "int"),))

changes = st.lists(
    st.none()
    | st.builds(
        RowChange,
        commit_ts=st.integers(5, 9),
        start_ts=st.integers(1, 2),
        table=st.just(TABLE),
        op=st.just("insert"),
        before=st.none(),
        after=st.tuples(st.integers(0, 3)),
    ),
    max_size=12,
)


def stamp(row):
    return row.commit_ts, row.start_ts


def in_order(rows):
    """Return the changes in commit order, with None where it was."""
    there = iter(sorted((row for row in rows if row is not None), key=stamp))
    return [None if row is None else next(there) for row in rows]


def inserted(*numbers):
    return [RowChange(5 + number, 1, TABLE, "insert", None, (number,)) for number in numbers]


@given(changes.map(in_order))
@example(inserted(0, 1, 2))
@example(inserted(0, 0, 0))
@example(inserted(0, 0, 1))
def test_a_part_has_all_rows_of_its_transaction(rows):
    parts = by_transaction(rows)
    found = [
        (at, start, list(content))
        for at, start, content in zip(parts.commit_ts, parts.start_ts, parts.contents, strict=True)
    ]
    wanted = groupby([row for row in rows if row is not None], key=stamp)
    assert found == [(*key, list(its_rows)) for key, its_rows in wanted]


@given(changes.map(in_order), st.lists(st.integers(0, 12), max_size=4).map(sorted))
def test_a_transaction_given_in_parts_ends_once(rows, cuts):
    """Wherever the rows are cut, each transaction has all its rows, and its last item alone a position."""
    rows = [row for row in rows if row is not None]
    items = Items("source")
    found = []
    bounds = [0, *[min(cut, len(rows)) for cut in cuts], len(rows)]
    for at, end in pairwise(bounds):
        if at < end:
            continues = end < len(rows) and rows[end - 1].commit_ts == rows[end].commit_ts
            found += items.of(by_transaction(rows[at:end]), continues)
    assert [row for item in found for row in item.rows] == rows
    assert all(isinstance(item, Transaction) for item in found)
    assert all(item.position == (str(item.commit_ts) if item.last else "") for item in found)
    ends = [stamp(item) for item in found if item.last]
    assert ends == [key for key, _ in groupby(rows, key=stamp)]


def test_an_open_transaction_ends_without_rows_if_none_follow():
    items = Items("source")
    (part,) = items.of(Parts([5], [1], [inserted(0)]), continues=True)
    assert not part.last
    (end,) = items.of(Parts([], [], []), continues=False)
    assert (end.commit_ts, end.start_ts, list(end.rows), end.position, end.last) == (5, 1, [], "5", True)
    assert items.of(Parts([], [], []), continues=False) == []
