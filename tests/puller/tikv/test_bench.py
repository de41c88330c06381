"""The bench runs and says what it should."""

from __future__ import annotations

import json

import pytest

from tidemill.benchmarks import puller


def test_a_run_gives_figures_yardsticks_and_ratios():
    result = puller.run(rows=5_000, regions=2, rounds=1)
    assert json.loads(json.dumps(result)) == result
    assert result["bench"] == "puller"
    for kind in puller.KINDS:
        ratio = result["figures"][kind] / result["yardstick"]["bare"][kind]
        assert result["ratio"][kind] == pytest.approx(ratio, abs=0.01)


def test_fewer_rows_than_regions_are_refused():
    with pytest.raises(ValueError, match="rows 1, regions 2"):
        puller.run(rows=1, regions=2)
