"""Each failure is reported in one sentence; after its repair the same feed continues without loss."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from msgspec.structs import replace

from tidemill.codec.tidb.action import Action
from tidemill.codec.tidb.column_type import ColumnFlag
from tidemill.codec.tidb.datum import Flag
from tidemill.codec.tidb.job import DONE, Job, make_args, make_outcome
from tidemill.codec.tidb.job_entry import JOB_COLUMN, JOB_TABLE_ID
from tidemill.codec.tidb.key import record_key
from tidemill.codec.tidb.old_row import join_row
from tidemill.codec.tidb.table_info import encode_table_info
from tidemill.emulator import Tls
from tidemill.emulator.sql.sql import Tidb
from tidemill.testing.certificates import Authority
from tidemill.testing.disk import hidden_disk
from tidemill.testing.feeds import Running
from tidemill.testing.progress import eventually

from .place import TidbPlace

mounts = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    with Tidb(stores=2, tick_seconds=0.05) as made:
        yield made


@pytest.fixture
def place(tmp_path, tidb) -> TidbPlace:
    return TidbPlace(tmp_path, tidb)


# --- reaching the cluster --------------------------------------------------------------------------


def test_a_placement_driver_that_is_away_is_tried_again_until_it_is_there(place, tidb):
    tidb.pd_down()
    with place.start() as running:
        status = running.until(lambda status: status.state == "warning")
        assert re.search(
            rf"^source: no answer from PD \({tidb.pd_address}\): .*; trying again in \d+\.\d s$",
            status.detail,
        )
        tidb.pd_up()
        running.until(lambda status: status.state == "normal" and status.sinks[0].position)
        assert running.stop(signal.SIGTERM).status == 0
    place.continues()


def test_a_placement_driver_that_goes_away_meanwhile_is_said_and_stops_nothing(place, tidb):
    with place.start() as running:
        running.until(lambda status: status.state == "normal" and not status.sinks[0].loading)
        tidb.pd_down()
        status = running.until(lambda status: any("PD" in wait.on for wait in status.waits))
        assert any(wait.stage == "source" and tidb.pd_address in wait.on for wait in status.waits)
        tidb.pd_up()
        place.insert(4)
        eventually(lambda: place.copied_ids() == [1, 2, 3, 4])
        running.until(lambda status: not any("PD" in wait.on for wait in status.waits))
        assert running.stop(signal.SIGTERM).status == 0


def test_another_cluster_than_the_one_wanted(place, tidb):
    place.configure(source="cluster_id = 4711")
    found = tidb.options.cluster_id
    assert place.run().sentence == (
        f"PD at {tidb.pd_address} belongs to cluster {found}, not 4711: "
        "check the addresses of PD and cluster_id"
    )
    place.configure(source=f"cluster_id = {tidb.options.cluster_id}")
    place.continues()


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls") / "ca")


@pytest.fixture
def locked(tmp_path, authority) -> Iterator[TidbPlace]:
    """At a cluster with TLS."""
    certificate, key = authority.issue("server")
    tls = Tls(ca_path=authority.ca, cert_path=certificate, key_path=key)
    with Tidb(stores=1, tick_seconds=0.05, tls=tls) as tidb:
        yield TidbPlace(tmp_path, tidb)


def tls_lines(authority: Authority, **other) -> list[str]:
    certificate, key = authority.issue("tidemill")
    paths = {"ca_path": authority.ca, "cert_path": certificate, "key_path": key} | other
    return [f'{name} = "{path}"' for name, path in paths.items()]


def test_a_cluster_whose_certificate_another_authority_signed(locked, authority, tmp_path):
    stranger = Authority(tmp_path / "stranger")
    locked.configure(source=tls_lines(authority, ca_path=stranger.ca))
    sentence = locked.run().sentence
    assert (
        f"{locked.server.pd_address}: GetMembers: no TLS connection: its certificate is not signed"
        in sentence
    )
    assert "ca_path" in sentence
    locked.configure(source=tls_lines(authority))
    locked.continues()


def test_a_cluster_with_tls_that_is_asked_without(locked, authority):
    with locked.start() as running:
        status = running.until(lambda status: status.state == "warning")
        assert "if the cluster requires TLS, set ca_path" in status.detail
    locked.configure(source=tls_lines(authority))
    locked.continues()


def test_a_key_that_is_not_there(locked, authority, tmp_path):
    locked.configure(source=tls_lines(authority, key_path=tmp_path / "nothing.key"))
    ended = locked.run()
    assert (
        ended.sentence
        == f"source.key_path = '{tmp_path}/nothing.key' can't be read: No such file or directory"
    )
    assert ended.status == 2
    locked.configure(source=tls_lines(authority))
    locked.continues()


def test_a_cluster_that_is_too_old(place, tidb):
    for store in tidb.pd.stores.values():
        store.version = "4.0.9"
    assert re.fullmatch(
        r"TiKV 4\.0\.9 at 127\.0\.0\.1:\d+ is too old: 5\.1\.0-alpha or later is needed", place.run().sentence
    )
    for store in tidb.pd.stores.values():
        store.version = "5.4.3"
    place.continues()


# --- where it begins -------------------------------------------------------------------------------


def test_a_beginning_that_is_yet_to_come(place, tidb):
    start_ts = tidb.tso() + (60_000 << 18)
    place.configure(source=f"start_ts = {start_ts}")
    assert f"source.start_ts: {start_ts} is yet to come, tikv cluster" in place.run().sentence


def test_a_start_below_the_gc_safe_point(place, tidb):
    start_ts = tidb.tso()
    place.insert(4)
    tidb.gc()
    place.configure(source=f"start_ts = {start_ts}")
    assert f"start ts {start_ts} (20" in (sentence := place.run().sentence)
    assert "is below the GC safe point" in sentence
    assert "start again from a later ts, with a snapshot" in sentence
    place.configure()
    place.continues()


def test_a_checkpoint_that_the_garbage_collection_has_passed(place, tidb):
    place.continues()
    place.insert(4)
    del tidb.pd.safe_points.holds[b"tidemill-copy"]  # as once gc_ttl_seconds are over
    tidb.gc()
    sentence = place.run().sentence
    assert "is below the GC safe point" in sentence
    assert place.copied_ids() == [1, 2, 3]
    place.begins_again()


def test_a_safe_point_that_is_lost_while_the_feed_runs(place, tidb):
    with place.start() as running:
        running.until(lambda status: status.sinks[0].position)
        tidb.pd.safe_points.gc = tidb.tso() + (60_000 << 18)
        assert "the changes in between may be gone" in running.ended().sentence


def test_a_checkpoint_that_the_cluster_has_not_come_to(place, tidb):
    tidb.jump_clock(86_400)
    place.insert(4)
    place.continues()
    pd_port = int(tidb.pd_address.rpartition(":")[2])
    tidb.close()
    with Tidb(stores=2, tick_seconds=0.05, pd_port=pd_port) as restored:
        place.server, place.rows = restored, {}
        place.execute("create table shop.item (id int primary key, name varchar(40))")
        place.insert(1, 2, 3, 4)
        sentence = place.run().sentence
        assert re.match(
            r"sink a is at ts \d+, and tikv cluster \d+ has only come to \d+: its clock was", sentence
        )
        assert "name another target to begin with a new snapshot" in sentence
        assert place.copied_ids() == [1, 2, 3, 4]
        place.begins_again()


def test_a_checkpoint_of_another_cluster(place, tidb):
    place.continues()
    with Tidb(stores=1, tick_seconds=0.05, cluster_id=99) as other:
        place.configure(url=f"tikv://{other.pd_address}")
        other.execute("create database shop")
        other.execute("create table shop.item (id int primary key, name varchar(40))")
        assert (
            place.run().sentence == f"sink a has what came from tikv cluster {tidb.options.cluster_id}, and"
            f" {other.pd_address} is tikv cluster 99: connect to that server, or name another target"
        )
    place.configure()
    place.insert(4)
    place.continues()


@pytest.mark.parametrize("others", [[], ["shop.*"]], ids=["alone", "among_others"])
def test_a_pattern_that_matches_nothing(place, others):
    place.configure(tables=[*others, "shopp.*"])
    assert "no table matches 'shopp.*'" in place.run().sentence
    place.configure()
    place.continues()


def test_tables_that_are_all_excluded(place):
    place.configure(tables=["shop.*", "!shop.item"])
    assert "no table matches" in place.run().sentence
    place.configure()
    place.continues()


def test_a_position_that_is_none(place):
    place.continues()
    ended = place.call("run", str(place.config), "--until", "binlog.000001:4")
    assert "'binlog.000001:4' is not a position of TiKV: a TSO is a number" in ended.sentence
    place.insert(4)
    place.continues()


# --- rows and schema that can't be read ------------------------------------------------------------


@pytest.mark.parametrize("value", [b"\x7fnothing", b"\x80\x40", b""], ids=["format", "flags", "empty"])
def test_a_row_of_an_unknown_format(place, value):
    place.continues()
    place.insert(4)
    place.write_row(5, value)
    for _ in range(2):
        sentence = place.run().sentence
        assert (
            f"the row of shop.item with the key {record_key(place.info().id, 5).hex()} can't be read"
            in sentence
        )
        assert "check that row in the source; correct it there, then begin with an empty target" in sentence
        assert place.copied_ids() == [1, 2, 3]
    place.server.write([("delete", record_key(place.info().id, 5), b"")])
    place.begins_again()


def test_a_row_of_an_unknown_format_among_those_that_are_there(place):
    place.write_row(5, b"\x7fnothing")
    assert "the row of shop.item with the key" in place.run().sentence
    place.server.write([("delete", record_key(place.info().id, 5), b"")])
    place.begins_again()


def test_a_column_of_an_unknown_type(place):
    place.execute("create table shop.site (id int primary key, spot int)")
    info = place.info("site")
    vector = replace(info.columns[1], type=225, flags=ColumnFlag(0))  # TiDB's VECTOR, since v8.4
    place.write_info(replace(info, columns=(info.columns[0], vector)), "site")
    sentence = place.run().sentence
    assert "column spot of shop.site can't be read: columns of type number 225 aren't known" in sentence
    assert "Leave the table out of the feed" in sentence
    place.configure(tables=["shop.*", "!shop.site"])
    place.continues()


def test_a_table_that_a_newer_tidb_has_described(place):
    info = place.info()
    place.continues()
    place.write_info(encode_table_info(info).replace(b'"cols":[', b'"cols":[7,', 1))
    place.insert(4)
    sentence = place.run().sentence
    where = f"table id {info.id} of database id {place.server.schema.database('shop').id}"
    assert re.match(rf"the schema at ts \d+ can't be read: {where}: Expected `object`, got `int`", sentence)
    assert "a TiDB newer than tidemill knows" in sentence
    place.write_info(info)
    place.continues()


def test_a_job_that_can_not_be_read(place):
    place.continues()
    place.insert(4)
    row = join_row({JOB_COLUMN: (Flag.COMPACT_BYTES, b'{"id": 4711, "type": "mystery"}')})
    ts = place.write(record_key(JOB_TABLE_ID, 4711), row)
    place.insert(5)
    for _ in range(2):
        sentence = place.run().sentence
        assert sentence.startswith(f"DDL job 4711 at ts {ts} can't be read: ")
        assert "ADMIN SHOW DDL JOBS" in sentence
        assert set(place.copied_ids()) <= {1, 2, 3, 4}
    place.begins_again()


# --- statements ------------------------------------------------------------------------------------


def test_a_database_that_comes_back(place):
    """A feed of other databases goes on; one of this database stops."""
    place.continues()
    database = place.server.schema.database("shop")
    for job_id, name in ((4711, "depot"), (4712, "shop")):
        info = replace(database, id=4000, name=name)
        table = {"TableInfo": json.loads(encode_table_info(replace(place.info(), id=4001)))}
        job = Job(
            id=job_id,
            type=Action.RECOVER_SCHEMA,
            schema_id=4000,
            state=DONE,
            query=f"flashback database lost to {name}",
            raw_args=make_args([{"id": 4000, "RecoverTabsInfo": [table]}, 1]),
            outcome=make_outcome(583, db=info),
        )
        place.write_job(job)
        place.insert(4 if name == "depot" else 5)
        if name == "depot":
            place.continues()
    assert re.search(
        r"schema shop: DDL job 4712 at ts \d+ can't be followed \(FLASHBACK DATABASE: rows come back without"
        r" events\): flashback database lost to shop; to go on,",
        place.run().sentence,
    )
    place.begins_again()


def test_a_statement_that_is_not_followed(place):
    place.continues()
    place.insert(4)
    statement = "flashback cluster to timestamp '2026-01-01'"
    place.write_job(Job(id=4711, type=Action.FLASHBACK_CLUSTER, state=DONE, query=statement))
    for _ in range(2):
        sentence = place.run().sentence
        assert re.search(
            r"the cluster: DDL job \d+ at ts \d+ can't be followed \(FLASHBACK CLUSTER", sentence
        )
        assert sentence.count(statement) == 1
        assert (
            "to go on, leave the table out of the feed's tables, or give the feed an empty target" in sentence
        )
        assert place.copied_ids() == [1, 2, 3, 4]
    place.begins_again()


# --- here ------------------------------------------------------------------------------------------


def test_two_feeds_in_one_directory(place):
    with place.start() as running:
        running.until(lambda status: status.state == "normal")
        sentence = place.run().sentence
        assert f"a feed is running in {place.directory}/state already" in sentence
        status = place.status()
        assert status is not None
        assert (status.pid, status.state) == (running.process.pid, "normal")
        assert running.stop(signal.SIGTERM).status == 0
    place.continues()


def held_back(place: TidbPlace, running: Running, megabytes: int) -> sqlite3.Connection:
    """Keep the feed's sink from writing, and give the feed so much to hold."""
    running.until(lambda status: status.sinks[0].position and not status.sinks[0].loading)
    other = sqlite3.connect(place.copy, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for number in range(megabytes):
        place.insert(100 + number, text="x" * 1_000_000)
    return other


@mounts
def test_a_full_disk_under_the_sorter(place):
    place.execute("alter table shop.item modify name longtext")
    with hidden_disk(place.directory / "disk", "8m") as inside:
        place.inside = inside
        place.configure(sorter=f'memory_bytes = 0\ndirectory = "{place.directory}/disk"')
        with place.start() as running, closing(held_back(place, running, 60)) as other:
            sentence = running.ended().sentence
            other.execute("ROLLBACK")
    assert re.search(rf"^store {place.directory}/disk/\S+ has no space left on its disk", sentence)
    ids = place.copied_ids()
    assert ids == [row[0] for row in place.present()][: len(ids)]
    place.inside = []
    place.configure()
    place.continues()
