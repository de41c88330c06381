"""The bench runs, says what it should, and feeds everybody the same."""

from __future__ import annotations

import json

import pytest

from tidemill.benchmarks import sorter
from tidemill.benchmarks.__main__ import main
from tidemill.benchmarks.report import BENCHES, UNITS, measured, report
from tidemill.benchmarks.rocks import YARDSTICKS
from tidemill.errors import ConfigError
from tidemill.testing.workload import FIRST_TS, w1


def test_w1_is_the_same_in_every_run_and_shuffled_within_windows():
    first, second = w1(25_000, 7), w1(25_000, 7)
    assert first == second
    assert [sum(map(len, window.tables.values())) for window in first] == [10_000, 10_000, 5_000]
    resolved = FIRST_TS
    for window in first:
        for changes in window.tables.values():
            assert all(resolved < change.commit_ts <= window.resolved for change in changes)
            assert sorted(changes) != changes
        resolved = window.resolved


@pytest.mark.parametrize("kind", YARDSTICKS)
def test_a_yardstick_reads_back_all_that_it_wrote(tmp_path, kind):
    yardstick = YARDSTICKS[kind](tmp_path / "db")
    above = FIRST_TS
    for window in w1(25_000, 7):
        wrote = sum(map(len, window.tables.values()))
        yardstick.write(window)
        assert yardstick.fetch(range(7), above, window.resolved) == wrote
        above = window.resolved
    yardstick.close()


@pytest.mark.parametrize(("mode", "figures"), [("both", {"both"}), ("fetch", {"write", "fetch"})])
def test_a_run_gives_figures_yardsticks_and_ratios(mode, figures):
    result = sorter.run(engine="db", tables=5, events=20_000, mode=mode, memory_tier=1 << 20, rounds=1)
    assert json.loads(json.dumps(result)) == result
    assert result["bench"] == "sorter"
    assert result["settings"]["memory_tier"] == 1 << 20
    assert figures <= result["figures"].keys()
    assert figures <= result["yardstick"]["one_put"].keys()
    for name in figures:
        ratio = result["figures"][name] / result["yardstick"]["one_put"][name]
        assert result["ratio"][name] == pytest.approx(ratio, abs=0.01)


def test_an_unknown_mode_is_refused():
    with pytest.raises(
        ConfigError, match="--mode: no mode 'fast'; accepted: write, fetch, both, latency, tables"
    ):
        sorter.run(mode="fast")


def test_a_run_that_stays_in_memory_says_so_and_every_bench_has_a_unit():
    small = measured("sorter", events=2_000, rounds=1, yardsticks=["one_put"])
    assert small["figures"]["spilled_bytes"] == 0
    assert small["note"] in report(small)
    assert "the disk wasn't used" in small["note"]
    assert small["unit"].startswith("million events per second")
    large = measured("sorter", events=2_000, memory_tier=0, rounds=1, yardsticks=["one_put"])
    assert large["figures"]["spilled_bytes"] > 0
    assert "note" not in large
    assert UNITS.keys() == BENCHES.keys()


def test_many_tables_come_are_filled_resolved_and_go():
    result = sorter.run(
        tables=2000, events=20_000, mode="tables", memory_tier=1 << 20, rounds=1, yardsticks=["one_put"]
    )
    figures = result["figures"]
    assert figures["bytes_per_table"] < 2000
    assert figures["threads"] <= 3
    assert result["ratio"]["write_seconds"] > 0


def test_benchmarks_run_one_after_the_other_and_each_result_has_its_unit(monkeypatch, capsys):
    result = {"bench": "sorter", "settings": {}, "figures": {"write": 2.0}, "yardstick": {}, "ratio": {}}
    monkeypatch.setitem(BENCHES, "sorter", lambda: dict(result))
    main(["sorter", "sorter"])
    assert capsys.readouterr().out.count("unit: million events per second") == 2
    main(["--json", "sorter"])
    assert json.loads(capsys.readouterr().out)["unit"].startswith("million events")


def test_an_unknown_benchmark_is_refused_with_the_names(capsys):
    with pytest.raises(SystemExit):
        main(["sorter", "sorters"])
    assert "NAME: sorters: choose from actors, sorter," in capsys.readouterr().err
