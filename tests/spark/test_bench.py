"""The benchmark of the data source, small."""

from __future__ import annotations

import json
import sys

import pytest

from tidemill.benchmarks.spark_jdbc import driver
from tidemill.testing.progress import completed


@pytest.mark.soak
def test_it_ends_with_one_line_of_json_with_its_yardstick() -> None:
    command = [sys.executable, "-m", "tidemill.benchmarks", "--json", "spark", "rows=20000"]
    command += ["rounds=1", "batches=1", "jdbc_rows=3000", "tikv_rows=3000"]
    done = completed(command, 900)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result.keys() == {"bench", "unit", "settings", "figures", "yardstick", "ratio"}
    assert result["bench"] == "spark"
    alone = {"fixed_seconds", "fixed_capture_seconds", "first_query_seconds", "query_seconds"}
    assert result["figures"].keys() - alone == result["yardstick"].keys()
    tables = {"jdbc", "jdbc_one", "jdbc_row", "python_row"} if driver() else set()
    own = {"read", "one_core", "json", "json_one_core", "cores", "json_cores", "tikv", "tikv_one"}
    assert own | tables == result["ratio"].keys()
    assert all(figure > 0 for figure in result["figures"].values())
