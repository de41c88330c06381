"""Each failure is reported in one sentence that names the pump; after its repair the feed goes on."""

from __future__ import annotations

import re

import pytest

from tidemill.codec.proto import binlog
from tidemill.codec.tidb import meta
from tidemill.emulator import Tls
from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.preflight import check_feed
from tidemill.engine.sentences import sentence
from tidemill.testing.certificates import Authority
from tidemill.testing.progress import eventually

from .place import PumpPlace, ended


@pytest.fixture
def place(tmp_path, tidb) -> PumpPlace:
    return PumpPlace(tmp_path, tidb)


def payload(tidb: Tidb, **fields) -> bytes:
    ts = tidb.tso()
    return binlog.Binlog(**{"start_ts": ts, "commit_ts": ts + 1, **fields}).SerializeToString()


def records(tidb: Tidb) -> list:
    """Return all binlogs by commit ts."""
    found = [entry for pump in tidb.pumps.by_id.values() for entry in pump.log]
    return [binlog.Binlog.FromString(data) for _, data in sorted(found)]


def test_pumps_are_followed_into_sqlite_after_a_snapshot(place):
    place.continues()
    place.insert(4, 5)
    place.continues()


def test_a_pump_of_another_cluster(place, tidb):
    place.continues()
    tidb.pump_cluster("pump-2", 4711)
    place.insert(4)
    said = place.run().sentence
    address = tidb.pumps.by_id["pump-2"].server.address
    assert said.startswith(f"the pump at {address} belongs to another cluster than PD (cluster ID are")
    tidb.pump_cluster("pump-2", tidb.options.cluster_id)
    place.continues()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xff\xff", "can't be read: .*: ffffff"),
        (b"\x1f\x8b\x08\x00", r"it is compressed \(gzip\)"),
        (b"\x28\xb5\x2f\xfd\x04", r"it is compressed \(zstd\)"),
        (b"", "it has no commit ts"),
    ],
    ids=["garbage", "gzip", "zstd", "empty"],
)
def test_a_binlog_that_cannot_be_parsed_names_pump_and_position(place, tidb, data, reason):
    place.continues()
    for pump in tidb.pumps.by_id:
        tidb.pump_payload(pump, data)
    place.insert(4)
    said = place.run().sentence
    assert re.match(r"pump 127\.0\.0\.1:\d+: a binlog at position 0:\d{15,}, after commit ts \d+, ", said)
    assert re.search(reason, said)
    for pump in tidb.pumps.by_id:
        tidb.pump_payload(pump, None)
    place.continues()


def test_a_binlog_with_neither_rows_nor_a_job(place, tidb):
    place.continues()
    tidb.pump_payload("pump-1", payload(tidb, tp=binlog.BinlogType.Commit))
    assert "without rows and without a DDL job" in place.run().sentence
    place.continues()


def test_rows_that_cannot_be_decoded_name_pump_table_and_ts(place, tidb):
    place.continues()
    table = binlog.TableMutation(
        table_id=place.info().id, inserted_rows=[b"\x08"], sequence=[binlog.MutationType.Insert]
    )
    value = binlog.PrewriteValue(schema_version=tidb.schema.version, mutations=[table])
    data = payload(tidb, tp=binlog.BinlogType.Commit, prewrite_value=value.SerializeToString())
    tidb.pump_payload("pump-1", data)
    said = place.run().sentence
    assert re.match(
        r"pump 127\.0\.0\.1:\d+: the binlog of commit ts \d+ can't be read: rows of shop\.item", said
    )
    place.continues()


def test_rows_of_an_unknown_table(place, tidb):
    place.continues()
    table = binlog.TableMutation(table_id=4711)
    value = binlog.PrewriteValue(schema_version=tidb.schema.version, mutations=[table])
    data = payload(tidb, tp=binlog.BinlogType.Commit, prewrite_value=value.SerializeToString())
    tidb.pump_payload("pump-1", data)
    assert "table id 4711 isn't in the schema at that ts" in place.run().sentence
    place.continues()


def test_an_obsolete_kind_of_mutation(place, tidb):
    place.continues()
    table = binlog.TableMutation(
        table_id=place.info().id, deleted_ids=[1], sequence=[binlog.MutationType.DeleteID]
    )
    value = binlog.PrewriteValue(schema_version=tidb.schema.version, mutations=[table])
    data = payload(tidb, tp=binlog.BinlogType.Commit, prewrite_value=value.SerializeToString())
    tidb.pump_payload("pump-1", data)
    assert "a deletion without its row (kind 2)" in place.run().sentence
    place.continues()


def test_a_ddl_job_that_no_pump_sent(place, tidb):
    place.continues()
    for pump in tidb.pumps.by_id:
        tidb.pump_state(pump, "paused")
    tidb.execute("alter table shop.item add column lost int")
    for pump in tidb.pumps.by_id:
        tidb.pump_state(pump, "online")
    with tidb.transaction() as txn:
        txn.insert("shop.item", {"id": 4, "name": "a"})
    said = place.run().sentence
    assert re.search(
        r"before the binlog of commit ts \d+: no pump has sent the DDL job \d+ \(schema version \d+\): alter"
        r" table shop\.item add column lost int\. A pump is missing",
        said,
    )


def test_ddl_jobs_that_no_pump_gets(place, tidb):
    place.continues()
    for number, what in enumerate(("cache", "nocache"), 4):
        tidb.execute(f"alter table shop.item {what}")
        place.insert(number)
        place.continues()


def passed(running, tidb: Tidb) -> None:
    """Wait until everything up to now is in the copy."""
    ts = tidb.tso()
    running.until(lambda status: int(status.sinks[0].position or 0) > ts)


def test_a_pump_that_goes_back_in_time(place, tidb):
    with place.start() as running:
        passed(running, tidb)
        old = payload(tidb, tp=binlog.BinlogType.Commit, prewrite_value=b"\x08\x01")
        passed(running, tidb)
        tidb.pump_payload("pump-1", old)
        status = running.until(lambda status: status.state == "failed")
    assert re.search(
        r"pump .* sent the binlog of commit ts \d+ after everything up to \d+ was", status.detail
    )
    assert "it went back in time" in status.detail


def test_a_binlog_that_comes_too_late_is_dropped_and_shown_if_that_is_wanted(place, tidb):
    place.configure(source='on_disorder = "drop"')
    with place.start() as running:
        passed(running, tidb)
        old = payload(tidb, tp=binlog.BinlogType.Commit, prewrite_value=b"\x08\x01")
        passed(running, tidb)
        tidb.pump_payload("pump-1", old)
        passed(running, tidb)
        tidb.pump_silent("pump-1")
        status = running.until(lambda status: any(wait.kind == "source" for wait in status.waits))
        address = tidb.pumps.by_id["pump-1"].server.address
        assert [wait.on for wait in status.waits] == [f"pump {address}: 1 unsorted, 1 out of order"]
        tidb.pump_speaks("pump-1")
        place.insert(4)
        eventually(lambda: place.copied_ids() == [1, 2, 3, 4])


def test_the_pump_that_everybody_waits_for_is_named(place, tidb):
    with place.start() as running:
        passed(running, tidb)
        tidb.pump_silent("pump-3")
        address = tidb.pumps.by_id["pump-3"].server.address
        status = running.until(lambda status: any(wait.kind == "source" for wait in status.waits))
        (wait,) = [wait for wait in status.waits if wait.kind == "source"]
        assert wait.on == f"pump {address}"
        assert f"for pump {address}, which is read the least far" in sentence(wait)
        tidb.pump_speaks("pump-3")
        place.insert(4)
        eventually(lambda: place.copied_ids() == [1, 2, 3, 4])


def test_a_pump_that_is_away_is_tried_again_until_it_is_there(place, tidb):
    with place.start() as running:
        passed(running, tidb)
        tidb.pump_down("pump-2")
        address = tidb.pumps.by_id["pump-2"].server.address
        status = running.until(lambda status: status.state == "warning")
        assert status.detail.startswith(f"pump {address}: {address}: PullBinlogs: UNAVAILABLE")
        tidb.pump_up("pump-2")
        place.insert(4)
        eventually(lambda: place.copied_ids() == [1, 2, 3, 4])
        running.until(lambda status: status.state == "normal")


def test_an_idle_cluster_moves_the_checkpoint_by_fake_binlogs(place, tidb):
    with place.start() as running:
        passed(running, tidb)
        passed(running, tidb)


def test_a_ddl_job_is_waited_for_until_it_is_in_the_history(place, tidb):
    place.continues()
    job_id = tidb.schema.new_id()
    with place.start() as running:
        passed(running, tidb)
        tidb.pumps.holds_fakes = True  # one after the step's ts would put it out of order
        tidb.pumps.tick()
        step = payload(tidb, ddl_job_id=job_id, ddl_query=b"alter", tp=binlog.BinlogType.Commit)
        tidb.pump_payload("pump-1", step)
        tidb.pumps.tick()
        tidb.pumps.holds_fakes = False
        place.insert(4)
        status = running.until(lambda status: any("no DDL job" in wait.on for wait in status.waits))
        assert f"DDL job {job_id}" in next(wait.on for wait in status.waits if wait.kind == "answer")
        cancelled = b'{"id": %d, "type": 5, "state": 5}' % job_id
        tidb.write([("put", meta.hash_key(meta.DDL_HISTORY, meta.history_field(job_id)), cancelled)])
        eventually(lambda: place.copied_ids() == [1, 2, 3, 4])


@pytest.fixture
def depot(tidb) -> Tidb:
    """With tables that no feed follows."""
    for statement in (
        "create database depot",
        "create database attic",
        "create table depot.a (id int primary key)",
        "create table depot.b (id int primary key)",
    ):
        tidb.execute(statement)
    return tidb


def rename(depot: Tidb) -> None:
    """Move several tables by one statement, and write to them."""
    depot.execute("rename table depot.a to attic.c, depot.b to depot.a")
    with depot.transaction() as txn:
        txn.insert("attic.c", (1,))
        txn.insert("depot.a", (1,))


def test_several_tables_are_renamed_beside_the_followed_ones(place, depot):
    place.continues()
    rename(depot)
    place.insert(4)
    place.continues()


def test_a_checkpoint_whose_schema_is_collected_garbage_goes_on_by_the_job_history(place, tidb, depot):
    rename(depot)
    place.continues()
    place.insert(4)
    tidb.execute("alter table shop.item add column more int default 3")
    for name in [name for name in tidb.pd.safe_points.holds if name.startswith(b"tidemill")]:
        del tidb.pd.safe_points.holds[name]  # as once gc_ttl_seconds are over
    tidb.gc()
    with tidb.transaction() as txn:
        txn.insert("shop.item", {"id": 5, "name": "e", "more": 8})
    done = place.run()
    assert done.status == 0, done
    assert place.copied() == [
        (1, "item 1", 3),
        (2, "item 2", 3),
        (3, "item 3", 3),
        (4, "item 4", 3),
        (5, "e", 8),
    ]


@pytest.mark.parametrize("after", ["delete only", "dropped"])
def test_a_restart_between_the_steps_of_a_dropped_column_drops_it_once(place, tidb, after):
    tidb.execute("alter table shop.item add column more int default 3")
    place.continues_with([(1, "item 1", 3), (2, "item 2", 3), (3, "item 3", 3)])
    tidb.execute("alter table shop.item drop column more")
    steps = [record.commit_ts for record in records(tidb) if b"drop column" in record.ddl_query]
    assert len(steps) == 2
    feed = place.feed(until=str(steps[after == "dropped"]))
    feed.start()
    assert ended(feed).status == 0
    place.insert(4)
    place.continues()


def test_pumps_with_tls(tmp_path):
    authority = Authority(tmp_path / "ca")
    certificate, key = authority.issue("server")
    tls = Tls(ca_path=authority.ca, cert_path=certificate, key_path=key)
    with Tidb(stores=1, tick_seconds=0.02, tls=tls) as tidb:
        tidb.add_pump()
        place = PumpPlace(tmp_path, tidb)
        certificate, key = authority.issue("tidemill")
        paths = {"ca_path": authority.ca, "cert_path": certificate, "key_path": key}
        place.configure(source=[f'{name} = "{path}"' for name, path in paths.items()])
        place.continues()
        place.insert(4)
        place.continues()


def test_check_names_the_pumps_and_tables(place):
    found = [(finding.level, finding.text) for finding in check_feed(place.options())]
    pumps = [
        text for level, text in found if level == "ok" and re.fullmatch(r"pump \S+ at \S+: online", text)
    ]
    assert len(pumps) == 3
    assert ("ok", "follows shop.item") in found
