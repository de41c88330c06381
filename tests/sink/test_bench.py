"""The benchmark of SQL sinks."""

from __future__ import annotations

import pytest

from tidemill.benchmarks.report import measured, report


@pytest.mark.soak
def test_it_has_a_figure_for_each_way_to_apply_rows():
    result = measured("sink", rows=2_000, updates=500, small=20, parallel=1_500, rounds=1)
    ways = ("workers_small", "workers_large", "updates", "load")
    wanted = {"diff", "postgres_load", *ways, *(f"{way}_synced" for way in ways)}
    assert wanted <= result["ratio"].keys()
    assert all(0 < ratio < 1_000 for ratio in result["ratio"].values())  # all rows are in the time
    assert "ratio workers_small_synced" in report(result)


@pytest.mark.soak
def test_kafka_has_figures_of_both_deliveries(kafka_server):
    result = measured("kafka", rows=2_000, rounds=1)
    assert result["ratio"].keys() == {"exactly_once", "at_least_once", "exactly_once_to_at_least_once"}
    assert all(0 < ratio < 1_000 for ratio in result["ratio"].values())


@pytest.mark.soak
def test_parquet_has_figures_of_the_clock_and_of_cpu_time():
    result = measured("parquet", rows=5_000, rounds=1)
    works = ("parquet", "directory", "none", "write_table")
    assert result["ratio"].keys() == {name for work in works for name in (work, f"{work}_cpu")}
    assert all(0 < ratio < 1_000 for ratio in result["ratio"].values())
    assert result["settings"]["bytes_per_row"] > 0
