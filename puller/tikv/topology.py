"""Regions and stores as reported by PD."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...codec.proto import metapb
from .span import UPPER_BOUND

_PEER: Final = Layout("<QQI")


class Peer(Struct, frozen=True, gc=False):
    """A region's replica on a store."""

    id: int
    store_id: int
    role: int = 0
    """metapb.PeerRole; learners (1) never lead."""


class RegionInfo(Struct, frozen=True, gc=False):
    """A region at an epoch, and its leader. Made by `region_info`; there may be 270,000."""

    id: int
    start: bytes
    """Start of the range, encoded; "" is -inf."""
    end: bytes
    """End of the range (exclusive), encoded; UPPER_BOUND is +inf."""
    conf_ver: int
    version: int
    packed_peers: bytes
    """The peers, packed: a third of the memory of objects."""
    leading: int = -1
    """Index of the leader among the peers; -1 if PD knows none."""
    loaded: int = 0
    """Number of failures counted by the region cache when it was loaded."""

    @property
    def peers(self) -> list[Peer]:
        return [Peer(*fields) for fields in _PEER.iter_unpack(self.packed_peers)]

    @property
    def leader(self) -> Peer | None:
        if self.leading < 0:
            return None
        return Peer(*_PEER.unpack_from(self.packed_peers, self.leading * _PEER.size))

    @property
    def voters(self) -> list[Peer]:
        """Return the peers that may lead."""
        return [peer for peer in self.peers if peer.role != metapb.PeerRole.Learner]

    def led_by(self, leader: Peer | None, **changes: object) -> RegionInfo:
        """Return the region with another leader, which is one of its peers."""
        return replace(self, leading=-1 if leader is None else self.peers.index(leader), **changes)


class StoreInfo(Struct, frozen=True, gc=False):
    """A store: TiKV, or TiFlash by its labels."""

    id: int
    address: str
    version: str
    """Version as reported, for instance "8.1.0" or "6.1.0-alpha"."""
    labels: tuple[tuple[str, str], ...]
    state: int
    """metapb.StoreState."""

    @property
    def tombstone(self) -> bool:
        """True if it was removed for good; an offline store still answers while its regions move away."""
        return bool(self.state == metapb.StoreState.Tombstone)

    @property
    def tiflash(self) -> bool:
        return ("engine", "tiflash") in self.labels or ("engine", "tiflash_compute") in self.labels


def region_info(region: metapb.Region, leader: metapb.Peer | None = None) -> RegionInfo | None:
    """Convert a metapb.Region and its leader's metapb.Peer, if known; None without metadata."""
    if not region.id:
        return None
    epoch = region.region_epoch
    peers = [(peer.id, peer.store_id, peer.role) for peer in region.peers]
    leading = -1
    if leader is not None and leader.id:
        led = (leader.id, leader.store_id, leader.role)
        if led not in peers:
            peers.append(led)
        leading = peers.index(led)
    return RegionInfo(
        region.id,
        region.start_key,
        region.end_key or UPPER_BOUND,
        epoch.conf_ver,
        epoch.version,
        b"".join([_PEER.pack(*peer) for peer in peers]),
        leading,
    )


def side_by_side(regions: Sequence[RegionInfo | None]) -> list[RegionInfo | None]:
    """Return the same regions, with one key object for the end of a region and the start of the next."""
    shared: list[RegionInfo | None] = []
    end = None
    for region in regions:
        if region is not None:
            if region.start == end:
                region = replace(region, start=end)
            end = region.end
        shared.append(region)
    return shared


def store_info(store: metapb.Store) -> StoreInfo:
    """Convert a metapb.Store; one that is removed by its `node_state` alone is a tombstone too."""
    labels = tuple((label.key, label.value) for label in store.labels)
    removed = store.node_state == metapb.NodeState.Removed
    state = metapb.StoreState.Tombstone if removed else store.state
    return StoreInfo(store.id, store.address, store.version, labels, state)
