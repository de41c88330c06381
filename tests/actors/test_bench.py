"""The benchmark runs, and what it promises about memory holds."""

from __future__ import annotations

from tidemill.benchmarks.actors import create_in_own_process, run


def test_the_benchmark_reports_figures_yardstick_and_ratios() -> None:
    report = run(messages=2_000, threaded_messages=2_000, asks=100, actors=100, rounds=1)
    assert set(report) == {"bench", "settings", "figures", "yardstick", "ratio"}
    assert report["bench"] == "actors"
    assert report["settings"]["messages"] == 2_000
    assert set(report["ratio"]) == {"one_to_one", "one_to_thousand"}
    assert all(ratio > 0 for ratio in report["ratio"].values())
    assert report["figures"]["tell_many_tells_per_second"] > 0


def test_a_yardstick_that_has_had_its_time_is_not_measured_again() -> None:
    settings = {"messages": 2_000, "threaded_messages": 2_000, "asks": 100, "actors": 100}
    report = run(**settings, rounds=3, yardstick_seconds=0.0)
    assert {len(values) for values in report["figures"]["rounds"].values()} == {3}
    assert {len(values) for values in report["yardstick"]["rounds"].values()} == {1}
    assert all(ratio > 0 for ratio in report["ratio"].values())


def test_a_hundred_thousand_actors_fit_into_150_mb() -> None:
    _, mb = create_in_own_process(100_000, workers=2)
    assert 0 < mb < 150
