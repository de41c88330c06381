"""The rows of a worker's SQL transaction follow the time that earlier ones took."""

from __future__ import annotations

import pytest

from tidemill.sink.sql.parallel.batch_size import LEAST_ROWS, MOST_ROWS, START_ROWS, BatchSize


def size_after(*taken: tuple[int, float]) -> int:
    size = BatchSize()
    for rows, seconds in taken:
        size.note(rows, seconds)
    return size.rows


@pytest.mark.parametrize(
    ("taken", "rows"),
    [
        ([(4_000, 0.1)], 5_000),
        ([(4_000, 0.1)] * 3, 7_812),
        ([(4_000, 0.5)], START_ROWS),
        ([(100, 0.01)], START_ROWS),
        ([(4_000, 2.0)], 2_000),
        ([(4_000, 2.0), (2_000, 2.0), (1_000, 0.1)], 1_250),
        ([(4_000, 2.0), (2_000, 2.0), (1_000, 0.1), (1_000, 0.1)], 1_562),
        ([(100_000, 20.0)], START_ROWS),
        ([(3, 3.0)], START_ROWS),
        ([(500, 3.0)] * 2, LEAST_ROWS),
        ([(10_000, 0.1)] * 50, MOST_ROWS),
    ],
)
def test_a_fast_target_gets_more_and_a_slow_one_less(taken, rows):
    assert size_after(*taken) == rows
