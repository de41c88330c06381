"""A feed of MariaDB as Arrow batches: the same rows as its transactions, in their order."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import tidemill
from tidemill.testing.child import Child
from tidemill.testing.mariadb import MariaDb

FOLLOWER = Path(__file__).parents[1] / "tikv" / "arrow_follower.py"


@pytest.fixture
def shop(mariadb: MariaDb, database: str) -> str:
    mariadb.execute(
        f"CREATE TABLE {database}.orders (id INT PRIMARY KEY, total DECIMAL(50,2), d DATE,"
        " t TIMESTAMP(3) NULL, note TEXT, kind ENUM('a','b'), j JSON)",
        f"CREATE TABLE {database}.words (word VARCHAR(20) PRIMARY KEY, n TIME(6))",
        f"INSERT INTO {database}.orders VALUES"
        " (1, 1.5, '2026-01-02', '2026-01-02 03:04:05.678', 'x', 'a', '[1]')",
    )
    return database


def opened(server: MariaDb, database: str, state: Path, **more: Any) -> tidemill.OpenFeed[Any]:
    return tidemill.open(server.url(), [f"{database}.*"], data_dir=state, until="now", **more)


def of_batches(feed: tidemill.OpenFeed[Any]) -> list[Any]:
    found = []
    for batch in feed.arrow_batches():
        for row in batch.data.to_pylist():
            place = row["commit_ts"], row["start_ts"], row["sequence"]
            images = [row[name] and tuple(row[name].values()) for name in ("before", "after")]
            found.append((*place, batch.table.name, row["op"], *images))
        feed.ack(batch)
    return sorted(found, key=lambda row: row[:3])


def of_transactions(feed: tidemill.OpenFeed[Any]) -> list[Any]:
    found: list[Any] = []
    for txn in feed:
        at = txn.commit_ts, txn.start_ts
        first = found[-1][2] + 1 if found and found[-1][:2] == at else 0
        for number, row in enumerate(txn.rows, first):
            found.append((*at, number, row.table.name, row.op, row.before, row.after))
        feed.ack(txn)
    return found


def write(server: MariaDb, database: str) -> None:
    server.execute(
        "BEGIN",
        f"INSERT INTO {database}.orders (id, total) VALUES (2, -2.5), (3, NULL)",
        f"INSERT INTO {database}.words VALUES ('one', '-01:02:03.5')",
        f"UPDATE {database}.orders SET note = 'grün', kind = 'b' WHERE id < 3",
        "COMMIT",
        f"DELETE FROM {database}.orders WHERE id = 1",
        f"ALTER TABLE {database}.orders ADD COLUMN more INT DEFAULT 7",
        f"INSERT INTO {database}.orders (id) VALUES (9)",
    )


def test_batches_have_the_rows_of_the_transactions(mariadb: MariaDb, shop: str, tmp_path: Path) -> None:
    for step in (0, 1):
        with opened(mariadb, shop, tmp_path / "arrow", arrow=True) as feed:
            batches = of_batches(feed)
        with opened(mariadb, shop, tmp_path / "rows") as feed:
            transactions = of_transactions(feed)
        assert [row[3:] for row in batches] == [row[3:] for row in transactions]
        assert len(batches) == (7 if step else 1)
        if not step:
            write(mariadb, shop)


def test_a_kill_before_an_acknowledgement_loses_nothing(mariadb: MariaDb, shop: str, tmp_path: Path) -> None:
    file, patterns = tmp_path / "lines", f"{shop}.*"

    def follow(batches: int) -> Child:
        command = [sys.executable, FOLLOWER, mariadb.url(), patterns, tmp_path / "state", file, str(batches)]
        return Child(command, tmp_path / "log")

    with follow(0) as child:
        assert child.exit_status() == 0, child.output()
    loaded = len(file.read_text().splitlines())
    write(mariadb, shop)
    with follow(1) as child:
        child.dies()
    killed = len(file.read_text().splitlines())
    with follow(0) as child:
        assert child.exit_status() == 0, child.output()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    again = lines[killed:]
    assert loaded == 1
    assert killed > loaded
    assert lines[loaded:killed] == again[: killed - loaded]  # what wasn't acknowledged comes again
    assert sorted((line[3], line[4]) for line in again) == [
        ("orders", "delete"), *[("orders", "insert")] * 3, *[("orders", "update")] * 2, ("words", "insert"),
    ]  # fmt: skip
