"""Histories of a region cache as text: what PD has, what stores say, and where requests go then.

A region is `1 a-m v2 1* 2 3`: id, keys (nothing before or after the dash is infinity), version, and its
stores, the leader's with a star. Whatever PD was asked on the way is in the output, after a question mark.
`--rewrite` writes down what happens now.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.codec.proto import PD, metapb, pdpb
from tidemill.errors import Retryable
from tidemill.puller.tikv.span import UPPER_BOUND, Span
from tidemill.puller.tikv.topology import RegionInfo
from tidemill.testing import cases

from .client import client
from .scripted import ScriptedPd, served

CASES = Path(__file__).with_name("region_cache.txt")


@pytest.mark.parametrize("case", cases.load(CASES), ids=cases.title)
def test_case(case, rewrite):
    case.expect(play_alone(case.commands), rewrite)


def play_alone(block: str) -> str:
    pd = MapPd()
    with served(pd), client(pd.address, pd_retry_seconds=0.0, region_retry_seconds=0.0) as c:
        return play(pd, c, block)


class MapPd(ScriptedPd):
    """A PD that tells of the regions and stores in two dicts, and notes what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.regions: dict[int, pdpb.Region] = {}
        self.removed: set[int] = set()
        self.asked: list[str] = []
        self.on(PD["ScanRegions"], self._scan)
        self.on(PD["GetRegion"], self._by_key)
        self.on(PD["GetRegionByID"], self._by_id)
        self.on(PD["GetStore"], self._store)

    def _scan(self, request):
        self.asked.append(f"scan {shown(request.start_key, request.end_key)}")
        found = [
            region
            for region in sorted(self.regions.values(), key=lambda r: r.region.start_key)
            if request.start_key < (region.region.end_key or UPPER_BOUND)
            and region.region.start_key < (request.end_key or UPPER_BOUND)
        ]
        return pdpb.ScanRegionsResponse(header=self.header(), regions=found[: request.limit])

    def _by_key(self, request):
        self.asked.append(f"key {request.region_key.decode()}")
        for found in self.regions.values():
            if found.region.start_key <= request.region_key < (found.region.end_key or UPPER_BOUND):
                return self._region(found)
        return self._region(None)

    def _by_id(self, request):
        self.asked.append(f"region {request.region_id}")
        return self._region(self.regions.get(request.region_id))

    def _region(self, found):
        return pdpb.GetRegionResponse(
            header=self.header(), region=found and found.region, leader=found and found.leader
        )

    def _store(self, request):
        self.asked.append(f"store {request.store_id}")
        state = metapb.StoreState.Tombstone if request.store_id in self.removed else metapb.StoreState.Up
        store = metapb.Store(id=request.store_id, address=f"tikv{request.store_id}:20160", state=state)
        return pdpb.GetStoreResponse(header=self.header(), store=store)


def region(text: str) -> pdpb.Region:
    number, keys, version, *stores = text.split()
    start, _, end = keys.partition("-")
    made = pdpb.Region()
    made.region.id = int(number)
    made.region.start_key, made.region.end_key = start.encode(), end.encode()
    made.region.region_epoch.CopyFrom(metapb.RegionEpoch(conf_ver=1, version=int(version[1:])))
    for store in stores:
        peer = metapb.Peer(store_id=int(store.strip("*l")), id=int(number) * 10 + int(store.strip("*l")))
        peer.role = metapb.PeerRole.Learner if store.endswith("l") else metapb.PeerRole.Voter
        made.region.peers.append(peer)
        if store.endswith("*"):
            made.leader.CopyFrom(peer)
    return made


def play(pd: MapPd, c, block: str) -> str:
    lines = []
    for line in block.splitlines():
        pd.asked.clear()
        verb, _, rest = line.partition(" ")
        out = VERBS[verb](pd, c, rest)
        lines += [f"{line.split()[0]}: {out}{''.join(f' ?{asked}' for asked in pd.asked)}"] if out else []
    return "\n".join(lines)


def pd_has(pd, c, rest):
    made = region(rest)
    pd.regions[made.region.id] = made


def pd_forgets(pd, c, rest):
    for number in rest.split():
        del pd.regions[int(number)]


def store_removed(pd, c, rest):
    pd.removed.add(int(rest))
    c.cache.forget_store(int(rest))


def load(pd, c, rest):
    start, _, end = rest.partition("-")
    try:
        found = c.run(c.cache.load(Span(start.encode(), end.encode() or UPPER_BOUND), 3))
    except Retryable as error:
        return str(error)
    return ", ".join(map(told, found))


def locate(pd, c, key):
    try:
        return told(c.run(c.cache.locate(key.encode())))
    except Retryable as error:
        return str(error)


def send(pd, c, number):
    context = c.run(c.cache.rpc_context(int(number)))
    return f"to peer {context.peer.id} at {context.address}" if context else "nowhere"


def failed(pd, c, number):
    c.cache.on_send_fail(c.run(c.cache.rpc_context(int(number))))
    pd.asked.clear()
    return cache(pd, c, "")


def not_leader(pd, c, rest):
    number, _, peer = rest.partition(" ")
    c.cache.update_leader(int(number), metapb.Peer(id=int(peer or 0)))
    return cache(pd, c, "")


def epoch(pd, c, rest):
    number, store, regions = rest.split(" ", 2)
    current = [region(text.strip()).region for text in regions.split(";") if text.strip(" -")]
    c.cache.on_epoch_not_match(int(number), current, int(store))
    return cache(pd, c, "")


def cache(pd, c, _):
    return ", ".join(map(told, c.cache)) or "empty"


VERBS = {
    "pd": pd_has,
    "pd-forgets": pd_forgets,
    "removed": store_removed,
    "load": load,
    "locate": locate,
    "send": send,
    "failed": failed,
    "not-leader": not_leader,
    "epoch": epoch,
    "cache": cache,
}


def shown(start: bytes, end: bytes) -> str:
    return f"{start.decode()}-{'' if end == UPPER_BOUND else end.decode()}"


def told(info: RegionInfo) -> str:
    leader = info.leader.store_id if info.leader else "?"
    return f"{info.id} {shown(info.start, info.end)} v{info.version} *{leader}"
