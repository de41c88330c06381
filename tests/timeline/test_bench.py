"""The benchmark of merges."""

from __future__ import annotations

from tidemill.benchmarks.merge import run


def test_the_queue_is_ten_times_as_fast_as_the_barrier() -> None:
    result = run(entries=20_000, barrier_entries=400, rounds=1)
    assert result["ratio"]["entries_per_second"] >= 10
