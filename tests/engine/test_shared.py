"""Pauses of feeds that share a process: the more there are, the less often an idle one works."""

from __future__ import annotations

from contextlib import closing

import pytest

from tidemill.actors import Workers
from tidemill.engine.shared import Shared
from tidemill.sorter.quota import MemoryQuota


@pytest.mark.parametrize(
    ("feeds", "look", "rowless", "pace"),
    [
        (1, 0.01, 1.0, 1.0),
        (100, 1.0, 1.0, 1.0),
        (200, 2.0, 1.0, 2.0),
        (500, 5.0, 2.0, 3.0),
        (5000, 50.0, 4.0, 3.0),
    ],
)
def test_pauses_grow_with_the_number_of_feeds(feeds: int, look: float, rowless: float, pace: float) -> None:
    with closing(Workers("compute", 1)) as workers:
        shared = Shared(workers, MemoryQuota(1 << 20))
        workers.join(feeds)
        assert (shared.look_seconds, shared.rowless_seconds, shared.pace) == (look, rowless, pace)
