"""Faults of other sources and targets than databases: Kafka, S3, files, Python, emulated TiDB, shards."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

from ...codec.tidb.key import record_key
from ...embedded import OpenFeed
from ...embedded.embedded import open_feed
from ...emulator.sql.sql import Tidb
from ...puller.mysql.options import MysqlOptions
from ..disk import small_disk
from ..kafka import Kafka, missing
from ..mariadb import PASSWORD, MariaDb
from ..progress import eventually
from .fault import SINK, SOURCE, fault
from .place import ROWS, Place, is_healthy

TIDB = r"sink \w+ (is slow|has waited)|slowest"


def to_kafka(place: Place) -> Kafka:
    if reason := missing():
        pytest.skip(f"NO FAULTS OF KAFKA ARE TESTED: {reason}")
    kafka = place.stack.enter_context(Kafka(place.directory / "kafka"))
    kafka.create_topic("events")
    place.start(sink=f"kafka://{kafka.brokers}/events", sinks={"format": "canal-json"})
    return kafka


@fault("brok|connect|answer", "reached|runs", stage=SINK)
def the_broker_is_away(place: Place) -> None:
    to_kafka(place).kill()
    place.write()


@fault("[Ll]arge|size", "max.message.bytes", stage=SINK)
def a_message_is_too_large(place: Place) -> None:
    to_kafka(place)
    place.write(1, 3_000_000)


@fault("denied|Forbidden|FORBIDDEN|403|forbidden", "right", stage=SINK)
def the_object_store_denies_writing(place: Place) -> None:
    from ..s3 import LOGIN, S3Store

    os.environ.update(LOGIN)
    store = place.stack.enter_context(S3Store())
    place.start(sink=store.url(f"{store.bucket('copy')}/copy", flush_seconds=0.1))
    store.denies = True
    place.write()


@fault("No space", "free space", stage="relay")
def the_disk_of_the_relay_is_full(place: Place) -> None:
    disk = place.stack.enter_context(small_disk(place.directory / "disk", 4))
    place.start(sinks={"relay": {"directory": str(disk / "relay"), "keep_bytes": "1GiB"}})
    for _ in range(10):
        place.write(10, 100_000)


def followed(place: Place, consume: Callable[[OpenFeed[Any]], None]) -> None:
    """Follow the source by a program."""
    source = MysqlOptions(port=place.from_.port, password=PASSWORD, user="feeder")
    feed = place.stack.enter_context(open_feed(source, ["shop.*"], data_dir=place.directory / "state"))
    place.feed = feed.feed
    thread = Thread(target=consume, args=(feed,), daemon=True)
    thread.start()
    eventually(lambda: is_healthy(feed.status()))


@fault("ack", "ack", stage="checkpoint", quick=True)
def a_program_acknowledges_nothing(place: Place) -> None:
    taken = Event()

    def consume(feed: OpenFeed[Any]) -> None:
        for txn in feed:
            if not taken.is_set():
                feed.ack(txn)

    followed(place, consume)
    taken.set()
    place.write()


@fault("reset|not one|other server", "snapshot|connect|another target", stage="")
def the_position_is_not_in_the_servers_history(place: Place) -> None:
    place.start()
    place.feed.stop()
    place.feed.wait()
    place.at_source("RESET MASTER")
    place.start_again(healthy=False)


@fault("not in the master's binlog", "diverged", "resnapshot", stage=SOURCE)
def a_replica_lacks_gtids_that_the_feed_has(place: Place) -> None:
    """The primary dies with changes that only the feed has, and the replica goes on with others."""
    options = "--log-slave-updates", "--gtid-strict-mode=ON"
    place.source(*options)
    replica = place.stack.enter_context(
        MariaDb(place.directory / "replica", *options, template=place.template)
    )
    replica.execute(
        f"CHANGE MASTER TO master_host = '127.0.0.1', master_port = {place.from_.port}, "
        f"master_user = 'root', master_password = '{PASSWORD}', master_use_gtid = slave_pos",
        "START SLAVE",
    )
    place.start(section={"failover": [f"127.0.0.1:{replica.port}"]})
    place.write()
    eventually(lambda: count_of(replica) == count_of(place.from_))
    replica.execute("STOP SLAVE")
    place.write(3)
    eventually(lambda: count_of(place.to) == count_of(place.from_))
    place.from_.kill()
    replica.execute(*[ROWS.format(size=10, count=1)] * 9)


def count_of(server: MariaDb) -> int:
    return int(server.execute("SELECT COUNT(*) FROM shop.item")[0][0])


def of_shards(place: Place) -> None:
    place.at_source("CREATE TABLE shop.item_2 (id INT AUTO_INCREMENT PRIMARY KEY, name LONGTEXT)")
    place.at_source("INSERT INTO shop.item_2 VALUES (1001, 'second')")
    place.start(route=[{"tables": ["shop.item*"], "target": "whole.item"}])


@fault("shop.item", "schema change", "other shards", stage=SINK)
def a_shard_waits_for_the_schema_change_of_another(place: Place) -> None:
    of_shards(place)
    place.at_source("ALTER TABLE shop.item ADD COLUMN more INT", "INSERT INTO shop.item (name) VALUES ('x')")


# --- an emulated TiDB ----------------------------------------------------------------------------


def of_tidb(place: Place, **section: Any) -> Tidb:
    tidb: Tidb = place.stack.enter_context(Tidb(stores=2, tick_seconds=0.02))
    tidb.execute("create database shop")
    tidb.execute("create table shop.item (id int primary key, name varchar(40))")
    tidb.split(key_of(tidb))
    copy = f"sqlite:///{place.directory}/copy.db"
    options = {"pd_retry_seconds": 0.2, **section}
    place.start(source=section.pop("url", f"tikv://{tidb.pd_address}"), sink=copy, section=options)
    insert(tidb, 1)
    eventually(lambda: place.feed.status().rows)
    return tidb


def key_of(tidb: Tidb, row: int = 1) -> bytes:
    return record_key(tidb.schema.table("shop.item").info.id, row)


def insert(tidb: Tidb, row: int) -> None:
    with tidb.transaction() as txn:
        txn.insert("shop.item", (row, "x"))


@fault("region", "NotLeader", "PD", stage="shop.item", innocent=TIDB)
def a_region_has_lost_its_leader(place: Place) -> None:
    tidb = of_tidb(place)
    region = tidb.region_of(key_of(tidb))
    tidb.fail_next(region, "not_leader", 10**6, "feed")
    tidb.fail_feed(region, "not_leader")


@fault("transaction", "lock is on row", "end that transaction", stage="region", innocent=TIDB)
def a_lock_of_tikv_stays(place: Place) -> None:
    tidb = of_tidb(place)
    tidb.leave_lock(key_of(tidb, 47), ttl_ms=7_200_000, primary=key_of(tidb, 46))
    tidb.jump_clock(60)


@fault("PD", "runs|reached", stage=SOURCE, innocent=TIDB)
def pd_is_away(place: Place) -> None:
    of_tidb(place).pd_down()


@fault("region", "behind", "store", stage="table", innocent=TIDB)
def a_table_resolves_nothing(place: Place) -> None:
    tidb = of_tidb(place)
    tidb.pause_resolved()
    tidb.jump_clock(60)


@fault("region to be found|connect|answer|region", "PD|store|runs", stage="", innocent=TIDB)
def all_stores_are_away(place: Place) -> None:
    tidb = of_tidb(place)
    for store in (1, 2):
        tidb.store_down(store)


@fault("pump", "runs|reached|go on", stage="pump", innocent=TIDB)
def a_pump_is_away(place: Place) -> None:
    tidb: Tidb = place.stack.enter_context(Tidb(stores=1, tick_seconds=0.02))
    pump = tidb.add_pump()
    tidb.execute("create database shop")
    tidb.execute("create table shop.item (id int primary key, name varchar(40))")
    copy = f"sqlite:///{place.directory}/copy.db"
    section = {"pd": [tidb.pd_address], "retry_seconds": 0.05}
    place.start(source=f"pump://{tidb.pumps.address}", sink=copy, section=section)
    insert(tidb, 1)
    eventually(lambda: place.feed.status().rows)
    tidb.pump_down(pump.node_id)


# --- nobody's fault ------------------------------------------------------------------------------


@fault("normal$", stage="feed", innocent="waited|slow|behind", quick=True)
def the_source_stamps_its_changes_an_hour_ago(place: Place) -> None:
    place.start()
    eventually(lambda: place.feed.status().idle)  # else it has never seen the source's end
    place.at_source("SET @@timestamp = UNIX_TIMESTAMP() - 3600", "INSERT INTO shop.item VALUES (7, 'early')")
    eventually(lambda: place.feed.status().sinks[0].rows >= 2)


@fault("normal$", stage="feed", innocent="waited|slow|behind")
def the_source_stamps_its_changes_in_an_hour(place: Place) -> None:
    place.start()
    place.at_source("SET @@timestamp = UNIX_TIMESTAMP() + 3600", "INSERT INTO shop.item VALUES (7, 'late')")
    eventually(lambda: place.feed.status().sinks[0].rows >= 2)


@fault("slow|target to take", "connections|PROCESSLIST", stage=SINK)
def one_table_is_hot(place: Place) -> None:
    place.start()
    place.at_target(
        "CREATE TRIGGER shop.slow BEFORE UPDATE ON shop.item FOR EACH ROW SET @slept = SLEEP(0.2)"
    )
    place.at_source(*[f"UPDATE shop.item SET name = 'n{number}' WHERE id = 1" for number in range(200)])
