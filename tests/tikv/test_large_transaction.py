"""One transaction of a cluster that is larger than the memory it may take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .follower import following, heard
from .served import served

TEXT_BYTES = 90


def followed(directory: Path, rows: int, **quotas: Any) -> dict[str, Any]:
    """Return a feed's counts for a transaction of `rows` rows, whose prewrites all came first."""
    with served(stores=3) as cluster:
        cluster("tables", 2, 8)
        options = {
            "data_dir": str(directory),
            "source": {
                "url": f"tikv://{cluster.pd_address}",
                "tables": ["many.*"],
                "start_ts": cluster("tso"),
                "max_prewrite_bytes": quotas["max_prewrite_bytes"],
            },
            "sorter": {"memory_bytes": quotas["memory_bytes"]},
        }
        with following(options, "many.t0", TEXT_BYTES) as feed:
            cluster("put", [[1, 1, "begin"]])
            assert heard(feed) == {"ready": True}
            cluster("fill", 0, rows, TEXT_BYTES)
            cluster("put", [[1, 2, "end"]])
            return heard(feed)


def check(found: dict[str, Any], rows: int) -> None:
    print(
        f"{rows:,} rows: peak {found['peak_bytes'] / 1e6:.0f} MB, {found['parts']} parts, "
        f"{found['prewrite_blocks']} blocks of prewrites on disk"
    )
    assert found["error"] is None
    assert found["wrong"] == []
    assert found["rows"] == rows
    assert found["parts"] > 1
    assert found["prewrite_blocks"] > 0


def test_a_transaction_larger_than_its_quotas_comes_once_in_the_order_of_its_keys(tmp_path):
    check(followed(tmp_path, 40_000, max_prewrite_bytes="2MiB", memory_bytes="1MiB"), 40_000)


@pytest.mark.soak
def test_four_million_rows_in_one_transaction_stay_under_600_mb(tmp_path):
    found = followed(tmp_path, 4_000_000, max_prewrite_bytes="128MiB", memory_bytes="64MiB")
    check(found, 4_000_000)
    assert found["peak_bytes"] < 600e6
