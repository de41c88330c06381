"""The bench of pumps runs and says what it should."""

from __future__ import annotations

import json

import pytest

from tidemill.benchmarks import pump


def test_a_run_gives_the_figure_of_its_yardstick_and_their_ratio():
    result = pump.run(binlogs=900, rounds=1)
    assert json.loads(json.dumps(result)) == result
    ratio = result["figures"]["merged"] / result["yardstick"]["bare"]["merged"]
    assert result["ratio"]["merged"] == pytest.approx(ratio, abs=0.02)
    ratio = result["figures"]["relayed"] / result["yardstick"]["no_relay"]["relayed"]
    assert result["ratio"]["relayed"] == pytest.approx(ratio, abs=0.02)
    assert result["figures"]["idle_ms"] > 0
    assert result["yardstick"]["bare"]["idle_ms"] > 0


def test_fewer_binlogs_than_pumps_are_refused():
    with pytest.raises(ValueError, match="binlogs 1, pumps 3"):
        pump.run(binlogs=1)
