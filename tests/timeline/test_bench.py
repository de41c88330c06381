"""The benchmark of merges."""

from __future__ import annotations

from tidemill.benchmarks.merge import run


def test_the_queue_and_the_barrier_are_measured_beside_each_other() -> None:
    result = run(entries=2_000, barrier_entries=400, rounds=1)
    assert result["figures"]["entries_per_second"] > 0
    assert result["yardstick"]["entries_per_second"] > 0
    assert set(result["ratio"]) == {"entries_per_second"}
