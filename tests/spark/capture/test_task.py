"""A task with captures gives the same as one without."""

from __future__ import annotations

import pytest

from tidemill.spark.capture import task
from tidemill.spark.capture.captures import Captures
from tidemill.spark.envelope import EnvelopeEncoder
from tidemill.spark.read import bounded
from tidemill.spark.read.options import read_options
from tidemill.spark.read.parts import WHOLE, Part
from tidemill.spark.read.pick import Pick

from .history import Keeping, history, offset, rows_of
from .served import served

COUNT = 30
ITEMS = history(31, COUNT)
OPERATIONS = ("insert", "delete")
OPTIONS = read_options(
    {"source": "mysql://root@127.0.0.1:1", "tables": "shop.*", "operations": ",".join(OPERATIONS)}
)
PARTS = [WHOLE, *WHOLE.divided(3)]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_by_a_capture(tmp_path, part):
    keeping = Keeping(tmp_path)
    keeping.take(ITEMS)
    expected = EnvelopeEncoder(Pick(part, OPERATIONS)).encode(ITEMS).to_pylist()
    with served(keeping) as address:
        captures = Captures(addresses=("127.0.0.1:1", address), lease="query")
        found = task.changes(OPTIONS, part, offset(0), offset(COUNT), captures)
        assert rows_of(found) == expected


def test_the_captures_are_asked_in_another_order_for_each_part():
    addresses = ("a", "b", "c")
    orders = [task._in_turn(addresses, Part(number, 4)) for number in range(4)]
    assert [order[0] for order in orders] == ["a", "b", "c", "a"]
    assert all(sorted(order) == ["a", "b", "c"] for order in orders)
    assert task._in_turn((), WHOLE) == ()


def test_without_captures_the_source_itself_is_read(monkeypatch):
    asked = []

    def changes(*arguments):
        asked.append(arguments)
        return [EnvelopeEncoder().encode(ITEMS)]

    monkeypatch.setattr(bounded, "changes", changes)
    found = task.changes(OPTIONS, WHOLE, offset(0), offset(COUNT), Captures(addresses=()))
    assert rows_of(found) == EnvelopeEncoder().encode(ITEMS).to_pylist()
    assert asked == [(OPTIONS, WHOLE, offset(0), offset(COUNT))]
