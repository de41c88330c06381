"""Regions that split, merge and move, with notifications of their change feeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..codec.proto import cdcpb
from .faults import region_errors
from .keyspace import Keyspace
from .region import Region
from .store import TikvStore


class Topology:
    """Changes regions. To be used in the loop's thread only. A region is named by its id; ValueError if there
    is none."""

    def __init__(self, keyspace: Keyspace, stores: Mapping[int, TikvStore]) -> None:
        self._keyspace = keyspace
        self._stores = stores

    def region(self, id: int) -> Region:  # noqa: A002
        region = self._keyspace.by_id.get(id)
        if region is None:
            raise ValueError(f"region: there is none with id {id}")
        return region

    def split(self, raw: bytes) -> list[Region]:
        """Split at a raw key; return [left, right]. The feed gets epoch_not_match with both."""
        regions = self._keyspace.split(raw)
        self.tell(regions[1], cdcpb.Error(epoch_not_match=region_errors.epoch_not_match(regions)))
        return regions

    def merge(self, id: int) -> Region:  # noqa: A002
        """Merge the right neighbour into a region; both feeds get epoch_not_match without regions."""
        region = self.region(id)
        gone = self._keyspace.after(region)
        self._keyspace.merge(region)
        for each in (region, gone):
            if each is not None:
                self.tell(each, cdcpb.Error(epoch_not_match=region_errors.epoch_not_match([])))
        return region

    def transfer_leader(self, id: int, store: int = 0) -> int:  # noqa: A002
        """Make the peer on another running store the leader, by default the next one; return that store."""
        region = self.region(id)
        able = [each for each in region.stores if self._stores[each].server.up and each != region.leader]
        store = store or next((each for each in able if each > region.leader), able[0] if able else 0)
        if store not in able:
            raise ValueError(f"transfer_leader: no other peer of region {id} is on a store that is up")
        region.leader = store
        self.tell(region, cdcpb.Error(not_leader=region_errors.not_leader(region)))
        return store

    def add_peer(self, id: int, store: int) -> None:  # noqa: A002
        if store not in self._stores:
            raise ValueError(f"add_peer: there is no store {store}")
        self._keyspace.add_peer(self.region(id), store)

    def remove_peer(self, id: int, store: int) -> None:  # noqa: A002
        """Remove a peer that doesn't lead; change feeds aren't notified."""
        self._keyspace.remove_peer(self.region(id), store)

    def abandon(self, store: int) -> None:
        """Move the leaderships of a stopped store to others, where possible."""
        for region in self._keyspace:
            able = [each for each in region.stores if self._stores[each].server.up]
            if region.leader == store and able:
                region.leader = able[region.id % len(able)]

    def tell(self, region: Region, error: cdcpb.Error) -> int:
        """End a region's subscriptions with a cdcpb.Error; return their number."""
        heard = list(region.feed or ())
        for subscription in heard:
            self._stores[subscription.connection.store_id].change_data.fail(subscription, error)
        return len(heard)

    def pave(self, raws: Iterable[bytes]) -> list[int]:
        """Split at many raw keys before there are subscriptions; return the ids of the new regions, right of
        each."""
        return [region.id for region in self._keyspace.pave(raws)]
