"""One region: a range of keys, its epoch, its peers, its rows and subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from ..codec.proto import metapb
from ..codec.tidb.key import decode_bytes, encode_bytes
from .shard import Shard

if TYPE_CHECKING:
    from .subscription import Subscription

T = TypeVar("T")

STORES_PER_REGION_ID = 1_000
"""A peer's id is region id * this + store id, so that no id is stored per peer."""
ADDED_SHIFT = 40
"""The id of a peer that was added later has, above this bit, the region's conf_ver at that time."""


class Region:
    """A region with the keys [start, end), encoded; b"" is open. There may be 270,000: rarely used parts are
    created on demand."""

    __slots__ = ("_added", "_shard", "conf_ver", "end", "feed", "id", "leader", "start", "stores", "version")

    def __init__(self, id: int, start: bytes, end: bytes, stores: tuple[int, ...], leader: int) -> None:  # noqa: A002
        self.id = id
        self.start = start
        self.end = end
        self.stores = stores
        """Stores that have a peer."""
        self.leader = leader
        """Store of the leading peer."""
        self.version = 1
        self.conf_ver = 1
        self._added: dict[int, int] | None = None
        self._shard: Shard | None = None
        self.feed: list[Subscription] | None = None
        """Subscriptions on the leader's store that get its changes."""

    @property
    def shard(self) -> Shard:
        """The region's rows and locks."""
        if self._shard is None:
            self._shard = Shard()
        return self._shard

    @shard.setter
    def shard(self, shard: Shard) -> None:
        self._shard = shard

    @property
    def empty(self) -> bool:
        """True if nothing was ever written."""
        return self._shard is None

    @property
    def raw_span(self) -> tuple[bytes, bytes]:
        """The raw bounds [start, end); b"" is open."""
        return (
            decode_bytes(self.start)[0] if self.start else b"",
            decode_bytes(self.end)[0] if self.end else b"",
        )

    def holds(self, encoded: bytes) -> bool:
        return self.start <= encoded and (not self.end or encoded < self.end)

    def holds_raw(self, key: bytes) -> bool:
        return self.holds(encode_bytes(key))

    def peer_id(self, store: int) -> int:
        """Return the id of the peer on a store; a peer that returns to a store has a new id."""
        added = 0 if self._added is None else self._added.get(store, 0)
        return (added << ADDED_SHIFT) + self.id * STORES_PER_REGION_ID + store

    def peer(self, store: int) -> metapb.Peer:
        """Return the metapb.Peer on a store."""
        return metapb.Peer(id=self.peer_id(store), store_id=store)

    def add_peer(self, store: int) -> None:
        """Add a peer on a store that has none."""
        self.stores = (*self.stores, store)
        self.conf_ver += 1
        self._added = {**(self._added or {}), store: self.conf_ver}

    def to_proto(self) -> metapb.Region:
        """Return the present metapb.Region."""
        return metapb.Region(
            id=self.id,
            start_key=self.start,
            end_key=self.end,
            region_epoch=metapb.RegionEpoch(conf_ver=self.conf_ver, version=self.version),
            peers=[self.peer(store) for store in self.stores],
        )


class Apply(Protocol):
    """Runs a step of Percolator on the shard of a region, and publishes the rows that it changes."""

    def __call__(self, region: Region, step: Callable[..., T], *arguments: object) -> T: ...
