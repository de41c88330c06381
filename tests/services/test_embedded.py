"""Feeds inside a program: for, async for, a callback; each with its acknowledgements."""

import asyncio
import runpy
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote, urlsplit

import duckdb
import pytest
from msgspec.structs import replace

import tidemill
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import eventually
from tidemill.testing.shop_copies import log_end

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def orders(mariadb: MariaDb, database: str) -> str:
    """A table of three rows, and its database's name."""
    mariadb.execute(
        f"CREATE TABLE {database}.orders (id INT PRIMARY KEY, total DECIMAL(8,2))",
        f"INSERT INTO {database}.orders VALUES (1, 1.50), (2, 2.50), (3, NULL)",
    )
    return database


def opened(
    server: MariaDb, database: str, state: Path, until: str | None = "now", **more
) -> tidemill.OpenFeed:
    return tidemill.open(server.url(), [f"{database}.*"], data_dir=state, until=until, **more)


def keys(feed: tidemill.OpenFeed, ack: bool = True) -> list:
    found = []
    for txn in feed:
        found += [(row.op, row.after_dict()["id"]) for row in txn.rows]
        if ack:
            feed.ack(txn)
    return found


def test_a_loop_gets_the_rows_that_are_there_and_after_a_restart_those_that_came(mariadb, orders, tmp_path):
    with opened(mariadb, orders, tmp_path) as feed:
        assert keys(feed) == [("insert", 1), ("insert", 2), ("insert", 3)]
    mariadb.execute(
        f"UPDATE {orders}.orders SET total = 9 WHERE id = 2",
        f"INSERT INTO {orders}.orders VALUES (4, 4)",
    )
    with opened(mariadb, orders, tmp_path) as feed:
        assert keys(feed) == [("update", 2), ("insert", 4)]
    with opened(mariadb, orders, tmp_path) as feed:
        assert keys(feed) == []


def test_a_feed_may_begin_at_a_position_without_the_rows_before(mariadb, orders, tmp_path):
    file, offset = log_end(mariadb)
    mariadb.execute(f"DELETE FROM {orders}.orders WHERE id = 2")
    with opened(mariadb, orders, tmp_path, source_options={"position": f"{file}:{offset}"}) as feed:
        found = []
        for txn in feed:
            found += [(row.op, row.before) for row in txn.rows]
            feed.ack(txn)
    assert found == [("delete", (2, Decimal("2.50")))]


def test_stages_stand_before_the_program(mariadb, orders, tmp_path):
    class Masked:
        """Hides the totals."""

        name = "mask"

        def open(self, context): ...

        def apply(self, batch):
            return [self.masked(item) if isinstance(item, tidemill.Transaction) else item for item in batch]

        def masked(self, txn):
            return replace(txn, rows=[replace(row, after=(row.after[0], None)) for row in txn.rows])

        def durable(self, checkpoint):
            return ()

        def waits(self):
            return ()

        def close(self): ...

    with opened(mariadb, orders, tmp_path, stages=[Masked()]) as feed:
        found = []
        for txn in feed:
            found += [row.after for row in txn.rows]
            feed.ack(txn)
    assert found == [(1, None), (2, None), (3, None)]


def test_a_source_may_be_given_as_options(mariadb, orders, tmp_path):
    found = urlsplit(mariadb.url())
    source = tidemill.MysqlOptions(
        host=found.hostname, port=found.port, user=found.username, password=unquote(found.password or "")
    )
    with tidemill.open(source, [f"{orders}.*"], data_dir=tmp_path, until="now") as feed:
        assert keys(feed) == [("insert", 1), ("insert", 2), ("insert", 3)]


def test_what_was_not_acknowledged_comes_again(mariadb, orders, tmp_path):
    with opened(mariadb, orders, tmp_path) as feed:
        keys(feed)
    mariadb.execute(*(f"INSERT INTO {orders}.orders VALUES ({key}, 0)" for key in range(10, 20)))
    end = "{}:{}".format(*log_end(mariadb))
    with opened(mariadb, orders, tmp_path, until=end) as feed:
        for txn in feed:
            if txn.rows[0].after[0] == 14:
                feed.ack(txn)
                break
    with opened(mariadb, orders, tmp_path, until=end) as feed:
        assert keys(feed) == [("insert", key) for key in range(15, 20)]


def test_explain_says_that_an_acknowledgement_is_waited_for(mariadb, orders, tmp_path):
    with opened(mariadb, orders, tmp_path) as feed:
        txn = next(iter(feed))
        assert "acknowledgement" in [wait.kind for wait in feed.explain()]
        eventually(lambda: "acknowledgement" in [wait.kind for wait in feed.status().waits])
        feed.ack(txn)
        assert [wait for wait in feed.explain() if wait.kind == "acknowledgement"] == []


def test_leaving_the_loop_early_ends_the_feed_even_while_more_comes(mariadb, orders, tmp_path):
    mariadb.execute(f"INSERT INTO {orders}.orders SELECT seq, 1 FROM {orders}.seq_100_to_20000")
    with opened(mariadb, orders, tmp_path, until=None, source_options={"chunk_rows": 50}) as feed:
        for _txn in feed:
            break
    assert feed.status().state == "stopped"


def test_a_feed_that_was_left_has_no_more_transactions(mariadb, orders, tmp_path):
    with opened(mariadb, orders, tmp_path, until=None) as feed:
        pass
    assert list(feed) == []


async def test_an_async_loop_gets_batches_and_leaves_the_event_loop_free(mariadb, orders, tmp_path):
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    beating = asyncio.create_task(beat())
    rows = []
    async with opened(mariadb, orders, tmp_path) as feed:
        before = beats
        async for batch in feed.batches():
            rows += [row.after[0] for txn in batch for row in txn.rows]
            feed.ack(batch[-1])
    beating.cancel()
    assert rows == [1, 2, 3]
    assert beats - before > 100


async def test_async_for_over_the_feed_itself_gives_transactions(mariadb, orders, tmp_path):
    async with opened(mariadb, orders, tmp_path) as feed:
        found = []
        async for txn in feed:
            found.append(len(txn.rows))
            feed.ack(txn)
    assert sum(found) == 3


async def test_leaving_an_async_loop_early_ends_the_feed(mariadb, orders, tmp_path):
    mariadb.execute(f"INSERT INTO {orders}.orders SELECT seq, 1 FROM {orders}.seq_100_to_20000")
    async with opened(mariadb, orders, tmp_path, until=None, source_options={"chunk_rows": 50}) as feed:
        async for _batch in feed.batches():
            break
    assert feed.status().state == "stopped"


def test_a_callback_gets_each_transaction_and_what_it_raises_stops_the_feed(mariadb, orders, tmp_path):
    found = []

    def receive(txn: tidemill.Transaction) -> None:
        if len(found) == 1:
            raise RuntimeError("no more room")
        found.append([row.after[0] for row in txn.rows])

    url, tables = mariadb.url(), [f"{orders}.*"]
    with pytest.raises(tidemill.Fatal, match="no more room"):
        tidemill.follow(
            receive, url, tables, data_dir=tmp_path, until="now", source_options={"chunk_rows": 2}
        )
    assert found == [[1, 2]]
    again = []
    tidemill.follow(lambda txn: again.extend(txn.rows), url, tables, data_dir=tmp_path, until="now")
    assert [row.after[0] for row in again][-1] == 3


def test_a_fault_of_the_source_ends_the_loop_with_its_error(mariadb, orders, tmp_path):
    with (
        pytest.raises(tidemill.Fatal, match="nothing_here"),
        tidemill.open(mariadb.url(), ["nothing_here.*"], data_dir=tmp_path) as feed,
    ):
        list(feed)


def test_a_large_transaction_comes_in_parts_and_only_the_last_is_marked(mariadb, orders, tmp_path):
    with opened(mariadb, orders, tmp_path) as feed:
        keys(feed)
    mariadb.execute(f"INSERT INTO {orders}.orders SELECT seq, 1 FROM {orders}.seq_1000_to_200000")
    parts = []
    with opened(mariadb, orders, tmp_path) as feed:
        for txn in feed:
            parts.append((txn.commit_ts, len(txn.rows), txn.last))
            feed.ack(txn)
    assert sum(rows for _, rows, _ in parts) == 199_001
    assert len({ts for ts, _, _ in parts}) == 1
    assert len(parts) > 1
    assert [last for _, _, last in parts] == [False] * (len(parts) - 1) + [True]


@pytest.mark.parametrize("name", ["embedded", "embedded_async", "followed"])
def test_the_example_runs(name, mariadb, tmp_path, capsys, monkeypatch):
    mariadb.execute(
        "CREATE DATABASE IF NOT EXISTS shop",
        "CREATE TABLE IF NOT EXISTS shop.greetings (id INT PRIMARY KEY, word VARCHAR(20))",
        "REPLACE INTO shop.greetings VALUES (1, 'hello')",
    )
    monkeypatch.setattr(sys, "argv", [name, mariadb.url(), str(tmp_path), "now"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    output = capsys.readouterr().out
    expected = {
        "embedded": "insert shop.greetings None {'id': 1, 'word': 'hello'}\n",
        "embedded_async": "1 rows, ",
        "followed": "insert shop.greetings {'id': 1, 'word': 'hello'}\n",
    }
    assert expected[name] in output


def test_the_example_copies_mariadb_to_duckdb_and_goes_on_after_a_restart(mariadb, tmp_path, monkeypatch):
    mariadb.execute(
        "CREATE DATABASE IF NOT EXISTS shop",
        "CREATE OR REPLACE TABLE shop.prices (id BIGINT UNSIGNED PRIMARY KEY, price DECIMAL(38,2), t TIME)",
        "INSERT INTO shop.prices VALUES (18446744073709551615, 1.50, '-30:00:00'), (2, NULL, NULL)",
    )
    monkeypatch.setattr(sys, "argv", ["mariadb_to_duckdb", mariadb.url(), str(tmp_path), "now"])
    runpy.run_path(str(EXAMPLES / "mariadb_to_duckdb.py"), run_name="__main__")
    mariadb.execute(
        "ALTER TABLE shop.prices ADD word VARCHAR(9) NOT NULL DEFAULT 'new'",
        "DELETE FROM shop.prices WHERE id = 2",
    )
    runpy.run_path(str(EXAMPLES / "mariadb_to_duckdb.py"), run_name="__main__")
    mariadb.execute("DROP TABLE shop.prices")
    with duckdb.connect(str(tmp_path / "copy.duckdb")) as copy:
        rows = copy.execute("FROM copy.shop.prices").fetchall()
    assert rows == [(2**64 - 1, Decimal("1.50"), timedelta(hours=-30), "new")]
