"""Decisions about rows that differ while both sides change; each reading is given as text."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import cycle

import pytest

from tidemill.compare.pace import Pace
from tidemill.compare.settle import MOST_ROUNDS, Settling
from tidemill.events import Checkpoint, Column, Table

ITEM = Table("shop", "item", (Column("id", "int", nullable=False), Column("v", "varchar", length=9)), (0,))


class Side:
    """Row 1 of a side, with another value at each reading; "-": there is no row. Source and target in one."""

    reads_at_checkpoint = False

    def __init__(self, values):
        self._values = cycle(values)

    def rows_of(self, table, keys):
        value = next(self._values)
        return [] if value == "-" else [(*keys[0], value)]

    def stored(self, table, rows):
        return rows

    def source_keys(self, table, keys):
        return keys

    def end(self):
        return "log:1"

    def has_passed(self, at, end):
        return at >= end

    position = "log:1"

    def checkpoint(self):
        return Checkpoint(1, self.position)

    @contextmanager
    def reading(self):
        yield self.checkpoint()


class Stopped(Side):
    position = "log:0"


@pytest.fixture
def settled():
    """Return the differences, and the number of rows that moved, for the values of both sides."""

    def settle(source, target, kind=Side):
        pace = Pace(0, type("Time", (), {"now": lambda _: 0.0})(), lambda _: False)
        settling = Settling(Side(source), kind(target), ITEM, pace, lambda: False)
        found = [(one.source, one.target, one.is_certain) for one in settling.settle([(1,)])]
        return found, settling.moving

    return settle


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("a", "b", ("a", "b")),
        ("a", "-", ("a", None)),
        ("-", "b", (None, "b")),
        ("abbb", "bccc", ("b", "c")),
    ],
)
def test_the_same_difference_in_three_rounds_is_one(settled, source, target, found):
    rows = tuple(None if value is None else (1, value) for value in found)
    assert settled(source, target) == ([(*rows, True)], 0)


@pytest.mark.parametrize(("source", "target"), [("aab", "bbb"), ("aabb", "bbaab"), ("-a", "aa")])
def test_a_difference_that_goes_within_three_rounds_is_none(settled, source, target):
    assert settled(source, target) == ([], 0)


def test_a_row_that_changes_in_every_round_is_given_up_and_counted(settled):
    assert MOST_ROUNDS == 60
    assert settled("abcde", "stuvwxyz") == ([], 1)


def test_a_target_that_does_not_move_may_only_be_late(settled):
    assert settled("a", "b", Stopped) == ([((1, "a"), (1, "b"), False)], 0)
