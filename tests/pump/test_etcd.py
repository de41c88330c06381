"""A feed as a drainer in a real etcd that is paused, killed, or loses the drainer's record."""

from __future__ import annotations

import re

import pytest

from tidemill.puller.pump.registry.node import DRAINERS, key
from tidemill.testing.etcd import Etcd
from tidemill.testing.progress import eventually

from .cluster import InnerDrainer, is_following
from .place import ended

RECORD = key(DRAINERS, "d1")


@pytest.fixture
def place(tmp_path, cluster):
    return InnerDrainer(tmp_path, cluster)


def test_a_feed_goes_on_while_etcd_is_paused_and_is_online_after_it(place, cluster, private_etcd: Etcd):
    with place.start() as feed:
        feed.until(is_following)
        last = cluster.drainer("d1").update_ts
        private_etcd.pause()
        status = feed.until(lambda status: status.state == "warning")
        assert re.match(r"list of pumps: etcd at \S+: list: .*; trying again in", status.detail)
        place.has(feed, 4)
        private_etcd.resume()
        feed.until(is_following)
        eventually(lambda: cluster.drainer("d1").update_ts > last)
        joined = cluster.add_pump()
        place.has(feed, *range(5, 20))
        assert joined in place.get("/status")["PumpPos"]
        assert place.state == "online"
    assert place.state == "paused"


def test_a_record_that_was_removed_or_whose_lease_is_lost_is_written_again(place, cluster, tmp_path):
    client = cluster.registry._client
    with place.start() as feed:
        feed.until(is_following)
        client.delete(RECORD)
        feed.until(lambda _status: place.state == "online")
        lease = client.lease(60)
        client.put(RECORD, cluster.registry.get(RECORD).value, lease=lease)  # as a tool may do
        lease.revoke()
        feed.until(lambda _status: place.state == "online")
        other = place.feed(
            data_dir=str(tmp_path / "other"), sink=[{"url": f"sqlite:///{tmp_path / 'other.db'}"}]
        )
        other.start()
        host = cluster.drainer("d1").host
        assert f"a drainer with the id 'd1' runs at {host}: stop it" in ended(other).sentence
        joined = cluster.add_pump()
        place.has(feed, *range(4, 20))
        assert joined in place.get("/status")["PumpPos"]
        assert feed.feed.status().state == "normal"


def test_twenty_heartbeats_without_etcd_end_the_feed_which_goes_on_with_it(place, cluster, private_etcd):
    with place.start() as feed:
        feed.until(is_following)
        private_etcd.kill()
        status = feed.until(lambda status: status.state == "failed")
        assert re.match(
            r"20 heartbeats in a row have failed, the last one: etcd at \S+: put: .*; start the feed again",
            status.detail,
        )
    private_etcd.start()
    cluster.reconnect()
    assert place.state == "online", "nobody could write that it has ended"
    with place.start() as feed:
        place.has(feed, 4)
    assert place.state == "paused"
