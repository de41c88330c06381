"""Emulated MariaDBs with the same transactions in logs of their own, and feeds that change between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from time import monotonic

import pytest

from tidemill.codec.mysql.layout import Layouts
from tidemill.emulator import Mysql
from tidemill.events import PENDING, REST, WHOLE, Checkpoint
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.pull import Pull
from tidemill.testing import LiveFeed
from tidemill.testing.progress import eventually

QUICK = {"heartbeat_seconds": 0.05, "retry_first_seconds": 0.01, "retry_longest_seconds": 0.05}


@pytest.fixture
def servers() -> Iterator[tuple[Mysql, Mysql]]:
    with Mysql() as first, Mysql(server_id=2, log_name="other", replica_of=first) as second:
        first.execute("create database shop")
        first.execute("create table shop.item (id int primary key)")
        insert(first, 1, 2)
        yield first, second


def insert(mysql: Mysql, *ids: int) -> None:
    with mysql.transaction() as txn:
        for number in ids:
            txn.insert("shop.item", {"id": number})


def test_both_have_the_same_transactions_in_files_of_their_own(servers: tuple[Mysql, Mysql]) -> None:
    first, second = servers
    second.rotate()
    insert(second, 3)
    assert first.gtid == second.gtid == "0-2-4"
    assert first.rows("shop.item") == second.rows("shop.item") == [(1,), (2,), (3,)]
    assert first.position.startswith("binlog.000001:")
    assert second.position.startswith("other.000002:")


def test_a_replica_is_made_before_its_source_is_used(servers: tuple[Mysql, Mysql]) -> None:
    with pytest.raises(ValueError, match="before its source has logged a transaction"):
        Mysql(replica_of=servers[0])


def test_a_feed_goes_on_at_the_replica(
    servers: tuple[Mysql, Mysql], tidemill_feed: Callable[..., LiveFeed]
) -> None:
    first, second = servers
    options = QUICK | {"failover": [f"127.0.0.1:{second.port}"]}
    feed = tidemill_feed(first, ["shop.*"], source_options=options)
    feed.caught_up()
    feed.until(lambda: first.followers)
    with first.down():
        insert(second, 3)
        feed.until(lambda: [row.after_dict()["id"] for row in feed.rows] == [1, 2, 3])
        feed.until(lambda: feed.status().sinks[0].position.startswith(f"{second.position} "))


@pytest.mark.parametrize("rotations", [0, 3])
def test_a_load_begins_at_a_replica_that_logs_nothing_more(
    servers: tuple[Mysql, Mysql], rotations: int
) -> None:
    first, second = servers
    for _ in range(rotations):
        first.rotate()
    position = f"{first.position} gtid={first.gtid} server=1"
    loading = {"shop.item": PENDING, REST: WHOLE}
    start = Checkpoint(1, position=position, source="mariadb server 1", loading=loading)
    options = MysqlOptions(
        port=second.port, password=second.server.password, heartbeat_seconds=0.05, snapshot_workers=1
    )
    pull = Pull(options, lambda *_: True, Layouts(), start, (), monotonic)
    with closing(pull.steps()) as steps:
        eventually(lambda: (next(steps), pull.statistics().state == "following")[1], 20)
