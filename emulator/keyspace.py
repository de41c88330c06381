"""The key space, divided into regions without gaps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from ..codec.tidb.key import encode_bytes
from .region import Region


class Keyspace:
    """The map of regions; begins with one region. It changes only the map: the Cluster notifies
    subscriptions."""

    def __init__(self, stores: Iterable[int], replicas: int = 3) -> None:
        self._stores = tuple(stores)
        self._replicas = min(replicas, len(self._stores))
        self._next_id = 1
        region = Region(self._id(), b"", b"", self._placement(0), self._stores[0])
        self.by_id: dict[int, Region] = {region.id: region}
        self.locked: dict[int, Region] = {}
        """Regions with locks that hold back their resolved ts."""
        self._starts = [b""]
        self._regions = [region]

    def __iter__(self) -> Iterator[Region]:
        """Iterate in key order; the map may change during the iteration."""
        return iter(self._regions[:])

    def __len__(self) -> int:
        return len(self._regions)

    def locate(self, encoded: bytes) -> Region:
        """Return the region that holds an encoded key."""
        return self._regions[bisect_right(self._starts, encoded) - 1]

    def locate_raw(self, key: bytes) -> Region:
        return self.locate(encode_bytes(key))

    def before(self, encoded: bytes) -> Region | None:
        """Return the region left of the one that holds the key; None if there is none."""
        index = bisect_right(self._starts, encoded) - 2
        return self._regions[index] if index >= 0 else None

    def after(self, region: Region) -> Region | None:
        """Return the region right of this one."""
        return self.locate(region.end) if region.end else None

    def scan(self, start: bytes, end: bytes, limit: int) -> list[Region]:
        """Return the regions that overlap [start, end), encoded; an empty end and a limit below 1 are
        open."""
        first = bisect_right(self._starts, start) - 1
        last = len(self._regions) if limit < 1 else first + limit
        return [region for region in self._regions[first:last] if not end or region.start < end]

    def note_locks(self, region: Region) -> None:
        """Update `locked` after the region's locks changed."""
        if region.shard.open:
            self.locked[region.id] = region
        else:
            self.locked.pop(region.id, None)

    def split(self, raw: bytes) -> list[Region]:
        """Split at a raw key; return [left, right]. The right one keeps the id, as in TiKV by default."""
        border = encode_bytes(raw)
        right = self.locate(border)
        if right.start == border:
            raise ValueError(f"split: a region begins at {raw.hex()} already")
        left = Region(self._id(), right.start, border, right.stores, right.leader)
        left.conf_ver = right.conf_ver
        if not right.empty:
            left.shard = right.shard.split(raw)
            self.note_locks(left)
            self.note_locks(right)
        right.start = border
        left.version = right.version = right.version + 1
        index = bisect_right(self._starts, left.start) - 1
        self._starts.insert(index + 1, border)
        self._regions.insert(index, left)
        self.by_id[left.id] = left
        return [left, right]

    def pave(self, raws: Iterable[bytes]) -> list[Region]:
        """Split at many raw keys at once, with leaders on each store in turn: 100,000 tables in a second.

        Only for regions without rows; returns the new regions, each right of its key.
        """
        made = []
        for raw in raws:
            border = encode_bytes(raw)
            left = self.locate(border)
            if left.start == border:
                continue
            if not left.empty:
                raise ValueError(f"pave: the region of {raw.hex()} has rows; split it")
            turn = len(self.by_id)
            stores = self._placement(turn)
            right = Region(self._id(), border, left.end, stores, stores[0])
            left.end = border
            left.version += 1
            right.version = left.version
            index = bisect_right(self._starts, border)
            self._starts.insert(index, border)
            self._regions.insert(index, right)
            self.by_id[right.id] = right
            made.append(right)
        return made

    def merge(self, region: Region) -> Region:
        """Merge the right neighbour, which vanishes, into a region; return the region."""
        right = self.after(region)
        if right is None:
            raise ValueError(f"merge: region {region.id} is the last one")
        if not right.empty:
            region.shard.absorb(right.shard)
            self.locked.pop(right.id, None)
            self.note_locks(region)
        region.end = right.end
        region.version = max(region.version, right.version) + 1
        index = bisect_right(self._starts, right.start) - 1
        del self._starts[index], self._regions[index], self.by_id[right.id]
        return region

    def add_peer(self, region: Region, store: int) -> None:
        if store in region.stores:
            raise ValueError(f"add_peer: region {region.id} has a peer on store {store}")
        region.add_peer(store)

    def remove_peer(self, region: Region, store: int) -> None:
        if store not in region.stores or store == region.leader:
            raise ValueError(f"remove_peer: store {store} has no peer of region {region.id}, or its leader")
        region.stores = tuple(s for s in region.stores if s != store)
        region.conf_ver += 1

    def _id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _placement(self, turn: int) -> tuple[int, ...]:
        """Return the stores of a new region: as many as there are replicas, the leading one first."""
        first = turn % len(self._stores)
        rotated = self._stores[first:] + self._stores[:first]
        return _interned(rotated[: self._replicas])


_tuples: dict[tuple[int, ...], tuple[int, ...]] = {}


def _interned(stores: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shared copy: regions share their few placements."""
    return _tuples.setdefault(stores, stores)
