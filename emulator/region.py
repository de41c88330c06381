"""One region: a range of keys, its epoch, its peers, and what hangs on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..codec.proto import metapb
from ..codec.tidb.key import decode_bytes, encode_bytes
from .shard import Shard

if TYPE_CHECKING:
    from .subscription import Subscription

STORES_PER_REGION_ID = 1_000
"""A peer's id is region id * this + store id: nothing to keep per peer."""
ADDED_SHIFT = 40
"""Of a peer that was added later its id has, above this bit, the region's conf_ver of then."""


class Region:
    """Keys [start, end), encoded; b"" is open. 270,000 of them are common: what few need is made late."""

    __slots__ = ("_added", "_shard", "conf_ver", "end", "feed", "id", "leader", "start", "stores", "version")

    def __init__(self, id: int, start: bytes, end: bytes, stores: tuple[int, ...], leader: int) -> None:  # noqa: A002
        self.id = id
        self.start = start
        self.end = end
        self.stores = stores
        """The stores that hold a peer."""
        self.leader = leader
        """The store of the leading peer."""
        self.version = 1
        self.conf_ver = 1
        self._added: dict[int, int] | None = None
        self._shard: Shard | None = None
        self.feed: list[Subscription] | None = None
        """Who is told of its changes, on the leader's store."""

    @property
    def shard(self) -> Shard:
        """Its rows and locks."""
        if self._shard is None:
            self._shard = Shard()
        return self._shard

    @shard.setter
    def shard(self, shard: Shard) -> None:
        self._shard = shard

    @property
    def empty(self) -> bool:
        """Whether nothing was ever written."""
        return self._shard is None

    @property
    def raw_span(self) -> tuple[bytes, bytes]:
        """Its raw keys, [start, end); b"" is open."""
        return (
            decode_bytes(self.start)[0] if self.start else b"",
            decode_bytes(self.end)[0] if self.end else b"",
        )

    def holds(self, encoded: bytes) -> bool:
        return self.start <= encoded and (not self.end or encoded < self.end)

    def holds_raw(self, key: bytes) -> bool:
        return self.holds(encode_bytes(key))

    def peer_id(self, store: int) -> int:
        """The id of the peer on that store; one that comes back to a store has another."""
        added = 0 if self._added is None else self._added.get(store, 0)
        return (added << ADDED_SHIFT) + self.id * STORES_PER_REGION_ID + store

    def peer(self, store: int) -> Any:
        """metapb.Peer on that store."""
        return metapb.Peer(id=self.peer_id(store), store_id=store)

    def add_peer(self, store: int) -> None:
        """Put a new peer on a store that has none."""
        self.stores = (*self.stores, store)
        self.conf_ver += 1
        self._added = {**(self._added or {}), store: self.conf_ver}

    def to_proto(self) -> Any:
        """metapb.Region, as of now."""
        return metapb.Region(
            id=self.id,
            start_key=self.start,
            end_key=self.end,
            region_epoch=metapb.RegionEpoch(conf_ver=self.conf_ver, version=self.version),
            peers=[self.peer(store) for store in self.stores],
        )
