"""The bench of a whole feed runs and says what it should."""

from __future__ import annotations

import json

import pytest

from tidemill.benchmarks import tikv
from tidemill.benchmarks.report import measured, report


def test_a_run_gives_figures_yardsticks_and_ratios():
    result = measured("tikv", rows=4_000, regions=2, rounds=1)
    assert json.loads(json.dumps(result)) == result
    for name in tikv.SIZES:
        ratio = result["figures"][name] / result["yardstick"][name]
        assert result["ratio"][name] == pytest.approx(ratio, abs=0.001)
    assert [line.split()[0] for line in report(result).splitlines()[:3]] == ["tikv", "unit:", "single_row"]


def test_a_region_has_a_thousand_rows_at_least():
    with pytest.raises(ValueError, match="rows 1500, regions 2"):
        tikv.run(rows=1_500, regions=2)
