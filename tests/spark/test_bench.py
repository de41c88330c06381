"""The benchmark of the data source, small."""

from __future__ import annotations

import json
import sys

import pytest

from tidemill.testing.progress import completed


@pytest.mark.soak
def test_it_ends_with_one_line_of_json_with_its_yardstick() -> None:
    command = [sys.executable, "-m", "tidemill.benchmarks.spark", "rows=20000", "rounds=1", "batches=1"]
    done = completed(command, 900)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result.keys() == {"bench", "settings", "figures", "yardstick", "ratio"}
    assert result["bench"] == "spark"
    assert result["figures"].keys() - {"fixed_seconds", "fixed_capture_seconds"} == result["yardstick"].keys()
    assert {"read", "one_core", "json", "json_one_core", "cores", "json_cores"} == result["ratio"].keys()
    assert all(figure > 0 for figure in result["figures"].values())
