"""Regions that split, merge and move, and requests for them that fail."""

from __future__ import annotations

from collections.abc import Iterable

from ...codec.proto import cdcpb
from ..parts import Parts
from . import region_errors


class RegionFaults(Parts):
    """Faults of regions, which are named by id. Thread-safe."""

    def region_of(self, raw: bytes) -> int:
        """Return the id of the region that holds a raw key."""
        return self._call(lambda: self.keyspace.locate_raw(raw).id)

    def split(self, raw: bytes) -> tuple[int, int]:
        """Split a region at a raw key; return the ids of the left (new) and the right one."""
        left, right = self._call(self.topology.split, raw)
        return left.id, right.id

    def pave(self, raws: Iterable[bytes]) -> list[int]:
        """Split at many raw keys at once, before anything is written there; return the new regions' ids."""
        return self._call(self.topology.pave, raws)

    def merge(self, region: int) -> int:
        """Merge the right neighbour, which vanishes, into a region."""
        return self._call(self.topology.merge, region).id

    def transfer_leader(self, region: int, store: int = 0) -> int:
        """Make another store lead a region, the given one or the next; return its id."""
        return self._call(self.topology.transfer_leader, region, store)

    def add_peer(self, region: int, store: int) -> None:
        self._call(self.topology.add_peer, region, store)

    def remove_peer(self, region: int, store: int) -> None:
        self._call(self.topology.remove_peer, region, store)

    def fail_next(self, region: int, error: str, times: int = 1, kind: str = "") -> None:
        """Make the next requests for a region fail with a word (`region_errors`).

        `kind` is "kv", "feed" (registrations), or "" for whichever comes first.
        """
        self._call(self.injected.fail_next, region, error, times, kind)

    def fail_feed(self, region: int, error: str) -> int:
        """End the region's running subscriptions with that word; return their number."""

        def fail() -> int:
            held = self.topology.region(region)
            request = cdcpb.ChangeDataRequest(region_id=region)
            return self.topology.tell(held, region_errors.for_feed(error, held, request, held.leader))

        return self._call(fail)
