"""GTIDs of emulated servers: domains of MariaDB, blocks of a group of MySQL, transactions without a GTID."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidemill.emulator import Mysql
from tidemill.emulator.mysql.gtids import GROUP, DomainGtids, Gtid, IntervalGtids
from tidemill.testing import LiveFeed

QUICK = {"heartbeat_seconds": 0.05, "retry_first_seconds": 0.01, "retry_longest_seconds": 0.05}


def create(mysql: Mysql) -> None:
    mysql.execute("create database shop")
    mysql.execute("create table shop.item (id int primary key)")


def insert(mysql: Mysql, number: int, domain: int | None = 0) -> None:
    with mysql.transaction(domain=domain) as txn:
        txn.insert("shop.item", (number,))


def ids(feed: LiveFeed) -> list[object]:
    return [row.after_dict()["id"] for row in feed.rows]


def test_a_group_takes_numbers_from_blocks_and_fills_its_holes() -> None:
    gtids = IntervalGtids()
    for server in (1, 1, 2, 1, 2):
        gtids.add(gtids.next(server, 0))
    assert str(gtids) == f"{GROUP}:1-3:1000001-1000002"
    assert gtids.has_all(IntervalGtids(f"{GROUP}:2:1000002"))
    assert not gtids.has_all(IntervalGtids(f"{GROUP}:2-4"))
    assert str(IntervalGtids.decode(gtids.encode())) == str(gtids) == str(IntervalGtids(str(gtids)))
    assert gtids.count == 5


def test_a_domain_has_the_ids_up_to_its_last_one() -> None:
    gtids = DomainGtids("0-1-5,7-2-3")
    assert Gtid(7, 1, 3) in gtids
    assert Gtid(7, 1, 4) not in gtids
    assert Gtid(1, 1, 1) not in gtids
    assert gtids.next(1, 7) == Gtid(7, 1, 4)
    assert gtids.next(1, 1) == Gtid(1, 1, 1)
    assert gtids.count == 8


def test_a_set_that_is_cut_off_is_refused() -> None:
    with pytest.raises(ValueError, match="a set of GTIDs can't be read"):
        IntervalGtids.decode(b"\1" + bytes(7))


def test_a_feed_goes_on_after_ids_with_a_hole(tidemill_feed: Callable[..., LiveFeed]) -> None:
    with (
        Mysql(vendor="MySQL") as first,
        Mysql(server_id=2, log_name="other", replica_of=first, vendor="MySQL") as second,
    ):
        create(first)
        insert(second, 1)
        options = QUICK | {"failover": [f"127.0.0.1:{second.port}"]}
        feed = tidemill_feed(first, ["shop.*"], source_options=options)
        feed.caught_up()
        feed.until(lambda: first.followers)
        with first.down():
            insert(second, 2)
            feed.until(lambda: ids(feed) == [1, 2])
        with second.down():
            insert(first, 3)
            insert(second, 4)
            feed.until(lambda: ids(feed) == [1, 2, 3, 4])
        wanted = f"gtid={GROUP}:1-3:1000001-1000003 "
        feed.until(lambda: wanted in feed.status().sinks[0].position)


def test_a_feed_goes_on_after_the_ids_of_several_domains(tidemill_feed: Callable[..., LiveFeed]) -> None:
    with Mysql() as first, Mysql(server_id=2, log_name="other", replica_of=first) as second:
        create(first)
        insert(first, 1, domain=4)
        feed = tidemill_feed(
            first, ["shop.*"], source_options=QUICK | {"failover": [f"127.0.0.1:{second.port}"]}
        )
        feed.caught_up()
        feed.until(lambda: first.followers)
        with first.down():
            feed.until(lambda: second.followers)
            insert(second, 2)
            feed.until(lambda: ids(feed) == [1, 2])
            feed.until(lambda: "gtid=0-2-3,4-1-1 " in feed.status().sinks[0].position)


def test_a_position_has_no_ids_after_a_transaction_without_one(
    tidemill_feed: Callable[..., LiveFeed],
) -> None:
    with Mysql(vendor="MySQL") as mysql:
        create(mysql)
        feed = tidemill_feed(mysql, ["shop.*"], source_options=QUICK)
        feed.caught_up()
        insert(mysql, 1, domain=None)
        insert(mysql, 2)
        feed.caught_up()
        assert ids(feed) == [1, 2]
        assert feed.status().sinks[0].position == mysql.position
        feed.restart()
        insert(mysql, 3)
        feed.until(lambda: ids(feed) == [1, 2, 3])
