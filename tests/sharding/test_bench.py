"""The benchmark of shards."""

from __future__ import annotations

import pytest

from tidemill.benchmarks.report import measured, report


@pytest.mark.soak
def test_it_has_a_ratio_for_each_way_to_merge_shards(mariadb_template):
    result = measured("shards", rows=2_400, transaction_rows=10, rounds=1)
    assert set(result["ratio"]) == {"twelve", "unresolved", "hold", "seek"}
    assert "ratio twelve" in report(result)
