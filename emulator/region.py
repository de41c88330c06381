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


class Region:
    """Keys [start, end), encoded; b"" is open. 270,000 of them are common: what few need is made late."""

    __slots__ = ("_shard", "conf_ver", "end", "feed", "id", "leader", "start", "stores", "version")

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

    def peer(self, store: int) -> Any:
        """metapb.Peer on that store."""
        return metapb.Peer(id=self.id * STORES_PER_REGION_ID + store, store_id=store)

    def to_proto(self) -> Any:
        """metapb.Region, as of now."""
        return metapb.Region(
            id=self.id,
            start_key=self.start,
            end_key=self.end,
            region_epoch=metapb.RegionEpoch(conf_ver=self.conf_ver, version=self.version),
            peers=[self.peer(store) for store in self.stores],
        )
