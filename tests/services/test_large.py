"""A transaction larger than the memory it may take."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidemill.testing import shop
from tidemill.testing.compare import compare, mariadb_rows, source_columns, sqlite_rows
from tidemill.testing.mariadb import MariaDb

FEED = """\
name = "large"
data_dir = "{directory}/state"
until = "now"

[source]
url = "{url}"
tables = ["shop.orders"]

[sorter]
memory_bytes = "16MiB"

[[sink]]
name = "sqlite"
url = "sqlite:///{directory}/shop.db"
"""


def run_to_the_end(config: Path) -> int:
    """Peak resident bytes of a feed that finishes by itself."""
    child = subprocess.Popen([sys.executable, "-m", "tidemill.cli", "run", str(config)])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return usage.ru_maxrss * 1024


def peaks(tmp_path: Path, server: MariaDb, rows: int) -> tuple[int, int]:
    """Peak memory of a feed over a small transaction, and over one of `rows` rows."""
    with server.connect(autocommit=False) as connection:
        shop.create(connection)
        config = tmp_path / "feed.toml"
        config.write_text(FEED.format(directory=tmp_path, url=server.url()))
        run_to_the_end(config)
        shop.insert_many(connection, 1_000, first=1)
        small = run_to_the_end(config)
        shop.insert_many(connection, rows)
        large = run_to_the_end(config)
        columns = source_columns(connection, "shop", "orders")
    source = mariadb_rows(server.connect, "shop", "orders", columns)
    result = compare({"orders": (source, sqlite_rows(tmp_path / "shop.db", "shop.orders", columns))})
    assert result.identical, str(result)
    assert result.rows == rows + 1_000
    print(f"{rows:,} rows: peak {large / 1e6:.0f} MB, {small / 1e6:.0f} MB over 1,000 rows")
    return small, large


def test_a_transaction_far_larger_than_the_quota_takes_little_more_memory_than_a_small_one(
    tmp_path, private_mariadb
):
    small, large = peaks(tmp_path, private_mariadb.start(), 150_000)
    assert large - small < 80 << 20


@pytest.mark.soak
def test_two_million_rows_in_one_transaction_stay_under_500_mb(tmp_path, private_mariadb):
    _, large = peaks(tmp_path, private_mariadb.start(), 2_000_000)
    assert large < 500e6
