"""A stuck sink doesn't stop the reading of the log: what comes goes to the sorter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tidemill
from tidemill.sorter import admission
from tidemill.testing.mariadb import PASSWORD
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import eventually

MEGABYTES = 60
"""More than what the sockets (up to 38) and every mailbox hold."""
BATCH_BYTES = 100_000


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "STUCK_SECONDS", 0.1)
    monkeypatch.setattr(admission, "READY_BYTES", 1 << 20)


def has_sent_all(server: Client) -> Callable[[], bool]:
    """Return whether the server's dump waits for more changes, and not for its reader."""
    sql = "SELECT state FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
    return lambda: "has sent all binlog" in " ".join(state for (state,) in server(sql))


def test_a_program_that_is_stuck_does_not_stop_the_reader(own: Client, tmp_path: Path) -> None:
    own("CREATE TABLE t (id INT PRIMARY KEY, note LONGTEXT)", "INSERT INTO t VALUES (1, 'a')")
    source = tidemill.MysqlOptions(port=own.server.port, password=PASSWORD, max_batch_bytes=BATCH_BYTES)
    sorter = tidemill.SorterOptions(memory_bytes=1 << 20)
    with tidemill.open(source, ["shop.*"], data_dir=tmp_path, sorter=sorter) as feed:
        transactions = iter(feed)
        feed.ack(next(transactions))
        for number in range(100, 100 * (MEGABYTES + 1), 100):
            own(f"INSERT INTO t SELECT {number} + seq, REPEAT('x', 10000) FROM seq_1_to_100")
        eventually(has_sent_all(own))
        seen = 0
        for txn in transactions:
            seen += len(txn.rows)
            feed.ack(txn)
            if seen == 100 * MEGABYTES:
                break
