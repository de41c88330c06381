"""A stream that breaks off is continued by another one, each row once."""

from __future__ import annotations

import pytest

from tidemill.events import RowChange, Transaction
from tidemill.spark.capture.progress import OutOfOrder, WholeTransactions
from tidemill.spark.capture.texts import Texts
from tidemill.spark.envelope import EnvelopeEncoder
from tidemill.spark.offsets.offset import Offset
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import ORDERS

from .history import BASE, SOURCE, history, offset, rows_of


def shared(ts: int, start_ts: int, *ids: int) -> Transaction:
    rows = [RowChange(ts, start_ts, ORDERS, "insert", None, (number, "x")) for number in ids]
    return Transaction(ts, start_ts, SOURCE, rows, str(ts))


HISTORIES = [
    history(1),
    history(2, most_rows=3),
    # Several of TiKV's transactions with one commit ts.
    [
        shared(BASE + 1, 5, 1),
        shared(BASE + 2, 5, 2, 3),
        shared(BASE + 2, 6, 4),
        shared(BASE + 2, 7, 5),
        shared(BASE + 4, 8, 6),
    ],
]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize("items", HISTORIES)
def test_wherever_it_breaks_off(items, size):
    whole = EnvelopeEncoder(json=False).encode(items)
    every = whole.to_pylist()
    for broken in range(whole.num_rows + 1):
        progress = WholeTransactions(offset(0))
        first = whole.slice(0, broken)
        cut = [first.slice(n, size) for n in range(0, broken, size)]
        found = rows_of(progress.continued(cut))
        assert (progress.at.ts, progress.beyond) <= (
            whole.column(0)[broken - 1].as_py() if broken else BASE,
            broken,
        )
        rest = EnvelopeEncoder(json=False).encode([item for item in items if item.commit_ts > progress.at.ts])
        found += rows_of(progress.continued([rest.slice(n, 3) for n in range(0, rest.num_rows, 3)]))
        assert found == every


def test_it_goes_on_behind_the_last_whole_transaction():
    items = [shared(BASE + n, 1, n) for n in range(1, 6)]
    progress = WholeTransactions(offset(0))
    list(progress.continued([EnvelopeEncoder(json=False).encode(items[:4])]))
    assert progress.at == Offset(BASE + 3, str(BASE + 3), SOURCE)
    assert progress.beyond == 1


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        ([shared(BASE + 3, 1, 1), shared(BASE + 2, 1, 2)], "not in commit order"),
        ([shared(BASE, 1, 1)], "from before the range"),
    ],
)
def test_rows_out_of_order_are_not_handed_on(items, sentence):
    with pytest.raises(OutOfOrder, match=sentence):
        list(WholeTransactions(offset(0)).continued([EnvelopeEncoder(json=False).encode(items)]))


def test_a_continuation_that_does_not_fit_is_refused():
    items = [shared(BASE + 1, 1, 1), shared(BASE + 2, 1, 2, 3, 4)]
    whole = EnvelopeEncoder(json=False).encode(items)

    def broken() -> WholeTransactions:
        progress = WholeTransactions(offset(0))
        list(progress.continued([whole.slice(0, 3)]))
        return progress

    with pytest.raises(OutOfOrder, match="fewer"):
        list(broken().continued([whole.slice(0, 1)]))
    with pytest.raises(OutOfOrder, match="other numbers"):
        list(broken().continued([EnvelopeEncoder(json=False).encode([shared(BASE + 2, 9, 2, 3, 4)])]))
    with pytest.raises(OutOfOrder, match="not in commit order"):
        list(broken().continued([whole.slice(1), whole.slice(0, 1)]))


def test_the_images_are_made_as_the_encoder_makes_them():
    rows = [RowChange(BASE + 1, 1, kinds.KEYED, "insert", None, row) for row in [*kinds.ROWS, kinds.NULLS]]
    items = [*history(3), Transaction(BASE + 100, 1, SOURCE, rows, "log.000001:99999")]
    assert (
        Texts()(EnvelopeEncoder(json=False).encode(items)).to_pylist()
        == EnvelopeEncoder().encode(items).to_pylist()
    )
