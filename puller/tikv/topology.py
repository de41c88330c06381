"""Regions and stores as PD tells of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msgspec import Struct

from ...codec.proto import metapb
from .span import UPPER_BOUND


class Epoch(Struct, frozen=True, gc=False):
    """A region's: `version` grows with each split and merge, `conf_ver` with each change of peers."""

    conf_ver: int
    version: int


class Peer(Struct, frozen=True, gc=False):
    """A region's replica on a store."""

    id: int
    store_id: int
    role: int = 0
    """metapb.PeerRole; learners (1) never lead."""


class RegionInfo(Struct, frozen=True, gc=False):
    """A region at an epoch, and who was its leader."""

    id: int
    start: bytes
    """Encoded; "" is -inf."""
    end: bytes
    """Encoded, not part of it; UPPER_BOUND is +inf."""
    epoch: Epoch
    peers: tuple[Peer, ...]
    leader: Peer | None
    """None while PD knows none."""
    loaded: int = 0
    """The region cache's count of failures when it was loaded."""

    @property
    def voters(self) -> list[Peer]:
        """The peers that may lead."""
        return [peer for peer in self.peers if peer.role != metapb.PeerRole.Learner]


class StoreInfo(Struct, frozen=True, gc=False):
    """A store: a TiKV, or a TiFlash by its labels."""

    id: int
    address: str
    version: str
    """As it says it, for instance "8.1.0" or "6.1.0-alpha"."""
    labels: tuple[tuple[str, str], ...]
    state: int
    """metapb.StoreState."""

    @property
    def tombstone(self) -> bool:
        """Removed for good; an offline one still answers while its regions move away."""
        return bool(self.state == metapb.StoreState.Tombstone)

    @property
    def tiflash(self) -> bool:
        return ("engine", "tiflash") in self.labels or ("engine", "tiflash_compute") in self.labels


def peer_info(peer: Any) -> Peer | None:
    """Of a metapb.Peer; None for one that isn't set."""
    return Peer(peer.id, peer.store_id, peer.role) if peer.id else None


def region_info(region: Any, leader: Any = None) -> RegionInfo | None:
    """Of a metapb.Region and its leader's metapb.Peer, if known; None without meta data."""
    if not region.id:
        return None
    epoch = _epoch(region.region_epoch.conf_ver, region.region_epoch.version)
    peers = tuple([Peer(peer.id, peer.store_id, peer.role) for peer in region.peers])
    end = region.end_key or UPPER_BOUND
    led = peer_info(leader) if leader is not None else None
    if led in peers:
        led = peers[peers.index(led)]
    return RegionInfo(region.id, region.start_key, end, epoch, peers, led)


@lru_cache(maxsize=1024)
def _epoch(conf_ver: int, version: int) -> Epoch:
    """Regions share the few that there are."""
    return Epoch(conf_ver, version)


def store_info(store: Any) -> StoreInfo:
    """Of a metapb.Store."""
    labels = tuple((label.key, label.value) for label in store.labels)
    return StoreInfo(store.id, store.address, store.version, labels, store.state)
