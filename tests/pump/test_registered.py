"""A feed that finds its pumps in the registry, and is a drainer of their cluster."""

from __future__ import annotations

import re
import signal
import sqlite3
from contextlib import closing

import pytest

from tidemill.emulator import Tls
from tidemill.emulator.sql.sql import Tidb
from tidemill.errors import Retryable
from tidemill.puller.grpc.security import Security
from tidemill.sources.pump import PumpSource
from tidemill.testing.certificates import Authority
from tidemill.testing.etcd import Etcd
from tidemill.testing.progress import eventually

from .cluster import Cluster, DrainerPlace, InnerDrainer, is_following


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/registry.db"


@pytest.fixture
def cluster(tidb, url):
    made = Cluster(tidb, url)
    yield made
    made.registry.close()


@pytest.fixture
def place(tmp_path, cluster):
    return DrainerPlace(tmp_path, cluster)


def test_pumps_join_and_leave_and_the_feed_and_etcd_are_killed_without_a_loss(tidb, tmp_path, private_etcd):
    cluster = Cluster(tidb, f"binlog://{private_etcd.address}")
    place = DrainerPlace(tmp_path, cluster)
    with place.start() as feed:
        place.insert(4)
        place.has_all(feed)
        joined = cluster.add_pump()
        place.insert(*range(10, 40))
        feed.wait_until(lambda: joined in place.get("/status")["PumpPos"])
        place.has_all(feed)
        private_etcd.kill()
        place.insert(*range(40, 60))
        place.has_all(feed)
        private_etcd.start()
        cluster.reconnect()
        last = cluster.drainer("d1").max_commit_ts
        feed.wait_until(lambda: cluster.drainer("d1").max_commit_ts > last)
        cluster.set_pump("pump-1", "closing")
        eventually(lambda: not tidb.pumps.by_id["pump-1"].is_open)
        place.insert(*range(60, 80))
        place.has_all(feed)
        cluster.set_pump("pump-1", "offline")
        feed.wait_until(lambda: "pump-1" not in place.get("/status")["PumpPos"])
        feed.kill()
    assert place.state == "online"
    late = cluster.add_unnoticed()
    place.insert(*range(80, 100))
    with place.start() as feed:
        place.has_all(feed)
        feed.wait_until(lambda: late in place.get("/status")["PumpPos"])
        place.insert(200)
        place.has_all(feed)
        assert feed.stop(signal.SIGTERM).status == 0
    assert place.state == "paused"
    cluster.registry.close()


def test_status_and_metrics_show_the_feed(place, tidb):
    with place.start() as feed:
        place.has_all(feed)
        feed.wait_until(lambda: len(place.get("/status")["PumpPos"]) == 3)
        place.insert(4, 5)
        ts = tidb.tso()
        place.has_all(feed)
        feed.wait_until(lambda: place.get("/status")["LastTS"] > ts)
        status = place.get("/status")
        assert sorted(status["PumpPos"]) == ["pump-1", "pump-2", "pump-3"]
        assert not status["Synced"]
        text = place.get("/metrics")
        assert 'binlog_drainer_event{type="Insert"} 2.0' in text
        assert 'binlog_drainer_pump_position{nodeID="pump-1"}' in text


@pytest.mark.parametrize(("action", "state"), [("pause", "paused"), ("close", "offline")])
def test_a_feed_that_is_paused_or_closed_ends_cleanly(place, action, state):
    with place.start() as feed:
        place.has_all(feed)
        listed = place.call("drainer", "list", str(place.config), "--json").out
        assert '"id": "d1", "state": "online"' in listed
        done = place.call("drainer", action, str(place.config))
        assert (done.status, done.out) == (0, f"apply action {action} success!\n")
        assert feed.ended().status == 0
    assert place.state == state
    assert place.status().state == "stopped"
    place.insert(4)
    place.continues()


def test_a_registry_that_gives_no_answer_is_a_warning_until_it_does(place, tmp_path):
    with place.start() as feed:
        place.has_all(feed)
        with closing(sqlite3.connect(tmp_path / "registry.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            feed.wait_until(lambda: place.status().state == "warning")
            assert re.match(r"list of pumps: registry .* is locked; trying again in", place.status().detail)
            other.execute("ROLLBACK")
        feed.wait_until(lambda: place.status().state == "normal")
        assert feed.stop(signal.SIGTERM).status == 0


def test_a_second_feed_of_one_id_is_refused(place, tmp_path, cluster):
    with place.start() as feed:
        place.has_all(feed)
        other = tmp_path / "other"
        other.mkdir()
        config = other / "feed.toml"
        config.write_text(place.config.read_text().replace(str(tmp_path / "state"), str(other / "state")))
        config.write_text(config.read_text().replace("copy.db", "other.db"))
        said = place.call("run", str(config)).sentence
        assert "a drainer with the id 'd1' runs at 127.0.0.1:" in said
        place.insert(4)
        place.has_all(feed)
        assert feed.stop(signal.SIGTERM).status == 0
    assert place.state == "paused"


def test_a_pump_that_joins_while_the_feed_pauses_after_an_error_is_pulled_from_the_checkpoint(
    tmp_path, cluster, monkeypatch
):
    opened: list[PumpSource] = []
    begin = PumpSource._begin
    monkeypatch.setattr(PumpSource, "_begin", lambda self, *at: (opened.append(self), begin(self, *at)))
    place = InnerDrainer(tmp_path, cluster)
    with place.start() as feed:
        feed.until(is_following)
        opened[0].lost(Retryable("PD gave no answer", wait=1.0))
        eventually(lambda: place.state == "paused")
        joined = cluster.add_pump()
        place.has(feed, *range(4, 30))
        assert (len(opened), place.state) == (2, "online")
        assert joined in place.get("/status")["PumpPos"]


def test_check_names_the_registered_pumps_and_registers_nothing(place, cluster):
    done = place.call("check", str(place.config))
    assert done.status == 0, done
    assert "pump pump-1 at 127.0.0.1:" in done.out
    assert cluster.drainer("d1") is None


def test_etcd_pd_pumps_and_the_drainer_itself_use_tls(tmp_path, needs_etcd):
    authority = Authority(tmp_path / "ca")
    certificate, key = authority.issue("server")
    tls = Tls(ca_path=authority.ca, cert_path=certificate, key_path=key)
    certificate, key = authority.issue("tidemill")
    security = Security(ca_path=authority.ca, cert_path=certificate, key_path=key)
    with Tidb(stores=1, tick_seconds=0.02, tls=tls) as tidb, Etcd(tmp_path / "etcd", tls) as etcd:
        tidb.add_pump()
        cluster = Cluster(tidb, f"binlog://{etcd.address}", security)
        place = DrainerPlace(tmp_path, cluster)
        with place.start() as feed:
            place.insert(4)
            place.has_all(feed)
            joined = cluster.add_pump()
            place.insert(*range(10, 40))
            feed.wait_until(lambda: joined in place.get("/status")["PumpPos"])
            place.has_all(feed)
            listed = place.call("drainer", "list", str(place.config), "--json").out
            assert '"id": "d1", "state": "online"' in listed
            assert place.call("drainer", "pause", str(place.config)).status == 0
            assert feed.ended().status == 0
        assert place.state == "paused"
        cluster.registry.close()
