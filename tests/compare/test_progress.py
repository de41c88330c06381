"""The progress of a comparison where there is no terminal."""

from __future__ import annotations

from io import StringIO
from types import SimpleNamespace

import pytest

from tidemill.compare.report import DiffProgress


class Time:
    seconds = 0.0

    def now(self):
        return self.seconds


@pytest.fixture
def shown():
    """Return the line that is printed for a state of the comparison, after some seconds."""
    time, stream = Time(), StringIO()
    progress = DiffProgress(stream, time)

    def line(seconds, table, rows, estimated):
        time.seconds += seconds
        stream.truncate(stream.seek(0))
        progress.show(
            SimpleNamespace(table=table, rows=rows, rows_estimated=estimated, tables_done=0, tables_in_all=2)
        )
        return stream.getvalue()

    return line


def test_a_line_every_ten_seconds_says_how_far_it_is_and_how_long_it_takes(shown):
    assert shown(0, "shop.orders", 0, 10_000) == ""
    assert shown(9, "shop.orders", 1_800, 10_000) == ""
    assert shown(1, "shop.orders", 2_000, 10_000) == "shop.orders: 2,000 of about 10,000 rows, 40 s left\n"
    assert shown(9, "shop.orders", 3_800, 10_000) == ""
    assert shown(11, "shop.orders", 6_000, 10_000) == "shop.orders: 6,000 of about 10,000 rows, 20 s left\n"


def test_a_table_without_an_estimate_has_no_time_left(shown):
    shown(0, "shop.orders", 0, 0)
    assert shown(10, "shop.orders", 500, 0) == "shop.orders: 500 of about 500 rows\n"


def test_the_time_of_a_table_begins_with_it(shown):
    shown(0, "shop.items", 0, 100)
    assert shown(30, "shop.orders", 0, 1_000) == ""
    assert shown(10, "shop.orders", 500, 1_000) == "shop.orders: 500 of about 1,000 rows, 10 s left\n"
