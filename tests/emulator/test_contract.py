"""The emulator's own contract: whatever happens to regions and streams, the change feed loses nothing.

A follower as simple as can be keeps a ts per cell of the key space, registers whatever region it does not
follow, and checks every message: nothing at or below a resolved ts comes after it.
"""

from __future__ import annotations

from itertools import pairwise

import grpc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidemill.actors.clock import ManualClock
from tidemill.codec.proto import cdcpb
from tidemill.codec.tidb.key import encode_bytes
from tidemill.emulator import Cluster, Rejected

from .client import Client

CUTS = [b"b", b"c", b"d", b"e"]
CELLS = list(pairwise([b"", *map(encode_bytes, CUTS), b"\xff" * 9]))
KEYS = [b"a", b"b", b"c", b"ca", b"d", b"e", b"f"]
TYPES = cdcpb.Event.LogType
STEPS = [
    "write", "write", "async_commit", "one_pc", "prewrite", "calculating", "commit", "rollback",
    "tick", "tick", "listen", "listen",
    "stamp", "stamp", "split", "merge", "transfer", "drop", "cut", "fail", "hold", "free",
    "midscan", "midscan",
]  # fmt: skip
ERRORS = ["not_leader", "epoch_not_match", "region_not_found", "server_is_busy", "congested"]


class Following:
    """One subscription, as the follower sees it."""

    def __init__(self, region, checkpoint):
        self.region = region
        self.cells = [c for c in CELLS if region.start_key <= c[0] < (region.end_key or b"\xff" * 9)]
        self.checkpoint = checkpoint
        self.resolved = 0
        self.initialized = False
        self.prewrites = {}
        self.seen = set()


class Follower:
    def __init__(self, client):
        self.client = client
        self.ts = dict.fromkeys(CELLS, 0)
        self.following = {}
        self.commits = set()
        self.requests = iter(range(1, 1 << 30))

    def listen(self):
        """Register what is not followed, then read all that was said."""
        for found in self.client.pd("ScanRegions", limit=100).regions:
            if found.region.id not in {f.region.id for f in self.following.values()}:
                self.register(found.region, found.leader.store_id)
        for key, feed in list(self.client.feeds.items()):
            try:
                for message in feed.fence():
                    self.take(key, message)
            except grpc.RpcError:
                del self.client.feeds[key]
                for request in [r for r in self.following if r[0] == key]:
                    del self.following[request]

    def register(self, region, store):
        request = next(self.requests)
        following = Following(region, 0)
        following.checkpoint = min(self.ts[cell] for cell in following.cells)
        self.following[(store, ""), request] = following
        self.client.feed(store).send(region, request_id=request, checkpoint_ts=following.checkpoint)

    def take(self, stream, message):
        for event in message.events:
            following = self.following.get((stream, event.request_id))
            if event.WhichOneof("event") == "error":
                self.following.pop((stream, event.request_id), None)
            elif following is not None:
                for row in event.entries.entries:
                    self.row(following, row)
        if message.HasField("resolved_ts"):
            following = self.following.get((stream, message.resolved_ts.request_id))
            if following is not None:
                self.resolve(following, message.resolved_ts.ts)

    def row(self, following, row):
        if row.type == TYPES.INITIALIZED:
            following.initialized = True
        elif row.type == TYPES.PREWRITE:
            following.prewrites[row.key, row.start_ts] = row.value
        elif row.type == TYPES.ROLLBACK:
            following.prewrites.pop((row.key, row.start_ts), None)
        elif row.type in (TYPES.COMMIT, TYPES.COMMITTED):
            assert row.commit_ts > max(following.resolved, following.checkpoint)
            value = row.value
            if row.type == TYPES.COMMIT:
                found = following.prewrites.pop((row.key, row.start_ts), None)
                assert found is not None or not following.initialized
                value = row.value if found is None else found
            assert (row.key, row.commit_ts) not in following.seen
            following.seen.add((row.key, row.commit_ts))
            self.commits.add((row.key, row.commit_ts, value))

    def resolve(self, following, ts):
        assert following.initialized
        assert ts >= following.resolved
        following.resolved = ts
        for cell in following.cells:
            self.ts[cell] = max(self.ts[cell], ts)


class History:
    """The operations on the cluster, and the expected output."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.open = {}
        self.stamps = {}
        self.committed = set()

    def do(self, step, key, n):
        cluster = self.cluster
        value = f"{step}{n}".encode()
        match step:
            case "write" | "async_commit" | "one_pc":
                mutations = [("put", key, value), ("put", KEYS[n % len(KEYS)], value)]
                commit_ts = cluster.write(mutations, mode="two_phase" if step == "write" else step)
                self.committed |= {(k, commit_ts, value) for _, k, _ in mutations}
            case "prewrite":
                start = cluster.tso()
                cluster.prewrite(start, [("put", key, value)])
                self.open[start] = (key, value)
            case "calculating":
                start = cluster.tso()
                self.stamps[start] = cluster.prewrite(start, [("put", key, value)], secondaries=[])
                self.open[start] = (key, value)
            case "commit" | "rollback" if self.open:
                start = sorted(self.open)[n % len(self.open)]
                key, value = self.open.pop(start)
                if step == "commit":
                    commit_ts = cluster.commit(start, [key], self.stamps.get(start, 0))
                    self.committed.add((key, commit_ts, value))
                else:
                    cluster.rollback(start, [key])
            case "stamp" if self.open:
                start = sorted(self.open)[n % len(self.open)]
                self.stamps.setdefault(start, cluster.tso())
            case "hold":
                cluster.hold_scans(n % 4, pieces=n % 3)
            case "midscan":
                cluster.hold_scans(pieces=1 + n % 3)
                cluster.fail_feed(cluster.region_of(key), "server_is_busy")
            case "free":
                cluster.free_scans()
            case "tick":
                cluster.tick()
            case "split":
                cluster.split(CUTS[n % len(CUTS)])
            case "merge":
                cluster.merge(cluster.region_of(key))
            case "transfer":
                cluster.transfer_leader(cluster.region_of(key))
            case "drop":
                cluster.drop_streams(n % 4)
            case "cut":
                cluster.cut_streams(n % 4)
            case "fail":
                cluster.fail_feed(cluster.region_of(key), ERRORS[n % len(ERRORS)])
                cluster.fail_next(cluster.region_of(key), ERRORS[n % len(ERRORS)], kind="feed")


steps = st.tuples(st.sampled_from(STEPS), st.sampled_from(KEYS), st.integers(0, 19))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, min_size=20, max_size=80))
def test_nothing_comes_at_or_below_a_resolved_ts_and_nothing_is_lost(history):
    with Cluster(tick_seconds=None, scan_rows=1, clock=ManualClock(epoch=0.0)) as cluster:
        client = Client(cluster)
        try:
            follower, done = Follower(client), History(cluster)
            for step, key, n in history:
                try:
                    done.do(step, key, n)
                    if step in ("listen", "midscan"):
                        follower.listen()
                except (Rejected, ValueError):
                    pass  # a key that is locked, a region that is the last one: the draw didn't fit
                assert_resolved_below_locks(follower, done)
            for start, (key, _) in done.open.items():
                cluster.rollback(start, [key])
            cluster.free_scans()
            last = cluster.tso()
            for _ in range(12):
                follower.listen()
                cluster.tick()
                follower.listen()
                if min(follower.ts.values()) > last:
                    break
            assert min(follower.ts.values()) > last
            assert follower.commits == done.committed
        finally:
            client.close()


def assert_resolved_below_locks(follower, done):
    """Where a lock is open no resolved ts is above its start, except one sent before it came."""
    for start, (key, _) in done.open.items():
        for following in follower.following.values():
            region = following.region
            inside = region.start_key <= encode_bytes(key) < (region.end_key or b"\xff" * 99)
            if inside and following.resolved > start:
                lock = done.cluster.keyspace.locate_raw(key).shard.locks[key]
                assert following.resolved <= lock.attempt.floor
