"""The cache of regions and their leaders."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ....actors import Backoff, Clock
from ....codec.proto import metapb
from ....errors import Retryable
from ..pd.pd import PdClient
from ..span import Span
from ..topology import Peer, RegionInfo, StoreInfo, region_info
from .region_map import RegionMap, older

FIRST_PAUSE_SECONDS: Final = 0.01
LONGEST_PAUSE_SECONDS: Final = 0.5
"""Maximum pause between two requests to PD for a span's regions (TiCDC puller)."""


class RpcContext(Struct, frozen=True, gc=False):
    """The region, peer, store and address of a request."""

    region: RegionInfo
    peer: Peer
    store_id: int
    address: str


class RegionCache:
    """The regions as reported by PD and the stores. To be used in the loop's thread only."""

    def __init__(self, pd: PdClient, clock: Clock, random: Random, *, retry_seconds: float = 60.0) -> None:
        self._pd = pd
        self._clock = clock
        self._random = random
        self._retry_seconds = retry_seconds
        self._map = RegionMap()
        self._stores: dict[int, StoreInfo] = {}
        self._failures = 0
        """Total number of send failures; regions loaded before a store's last failure are doubtful."""
        self._failed: dict[int, int] = {}
        """Value of the total at the last failure, by store."""

    def __len__(self) -> int:
        return len(self._map)

    def __iter__(self) -> Iterator[RegionInfo]:
        """Iterate in key order."""
        return iter(self._map)

    def cached(self, region_id: int) -> RegionInfo | None:
        """Return the cached region, without a request."""
        return self._map.get(region_id)

    async def load(self, span: Span, limit: int = 20) -> list[RegionInfo]:
        """Return the span's first regions from PD, at most `limit`: they cover it from its start without a
        gap.

        More may follow after the last one's end. Raises Retryable if PD has no such regions for
        `retry_seconds`.
        """
        backoff = self._backoff()
        while True:
            regions = await self._pd.scan_regions(span.start, span.end, limit)
            gap = _gap(span, regions)
            if gap is None:
                return self._take([region for region in regions if region is not None])
            pause = backoff.next()
            if pause is None:
                raise Retryable(f"PD's regions don't cover {span}: {gap}")
            await asyncio.sleep(pause)

    async def locate(self, key: bytes) -> RegionInfo:
        """Return the region that holds an encoded key, from PD if it isn't cached.

        Raises Retryable if PD knows none for `retry_seconds`.
        """
        if (known := self._map.at(key)) is not None:
            return known
        backoff = self._backoff()
        while True:
            region = await self._pd.region_by_key(key)
            if region is not None and region.start <= key < region.end:
                return self._take([region])[0]
            pause = backoff.next()
            if pause is None:
                raise Retryable(f"PD knows no region for the key {key.hex()}")
            await asyncio.sleep(pause)

    async def rpc_context(self, region: RegionInfo | int) -> RpcContext | None:
        """Return how to reach the region's leader; None if the region has changed, or has no store.

        After None, locate the keys again.
        """
        known = await self._fresh(region)
        if known is None:
            return None
        peer = known.leader or next(iter(known.voters), None)
        store = await self.store(peer.store_id) if peer is not None else None
        if peer is None or store is None or store.tombstone:
            self.invalidate(known.id)
            return None
        return RpcContext(known, peer, store.id, store.address)

    async def store(self, store_id: int) -> StoreInfo | None:
        """Return a store; None if PD doesn't know it."""
        store = self._stores.get(store_id)
        if store is None:
            store = await self._pd.store(store_id)
            if store is not None:
                self._stores[store_id] = store
        return store

    def forget_store(self, store_id: int) -> None:
        """Drop a store from the cache: its address or state may have changed."""
        self._stores.pop(store_id, None)

    def update_leader(self, region_id: int, leader: metapb.Peer | None = None) -> None:
        """Handle a store's answer that it doesn't lead the region.

        `leader` is the peer that it named (a Peer or metapb.Peer); without one the next voter is used. If it
        isn't one of the cached peers, the cached region is outdated.
        """
        region = self._map.get(region_id)
        if region is None:
            return
        if leader is None or not leader.id:
            self._map.put(region.led_by(_next_voter(region)))
            return
        for peer in region.peers:
            if peer.id == leader.id:
                # an answer of a living store: newer than what is cached of the leader's store
                self._map.put(region.led_by(peer, loaded=self._failures))
                return
        self.invalidate(region_id)

    def on_send_fail(self, context: RpcContext) -> None:
        """Handle a store that didn't answer: try this region at its next voter whose store hasn't failed.

        The store's other regions and its address are requested from PD again when they are needed next.
        """
        self._failures += 1
        self._failed[context.store_id] = self._failures
        self.forget_store(context.store_id)
        region = self._map.get(context.region.id)
        if region is None or region.version != context.region.version:
            return
        others = [peer for peer in region.voters if not self._doubtful(region, peer)]
        if others:
            self._map.put(region.led_by(others[0]))
        else:
            self.invalidate(region.id)

    def on_epoch_not_match(self, region_id: int, current: Iterable[metapb.Region], store_id: int = 0) -> None:
        """Handle a store's answer that a region has changed, into `current` (metapb.Region) if it knows.

        `store_id`, which answered, is assumed to lead these.
        """
        regions = [info for each in current if (info := region_info(each)) is not None]
        known = self._map.get(region_id)
        if known is not None and any(r.id == region_id and older(r, known) for r in regions):
            return  # the store's regions are older than the cached ones
        self.invalidate(region_id)
        for region in regions:
            leader = next((p for p in region.voters if p.store_id == store_id), None)
            self._map.add(region.led_by(leader, loaded=self._failures))

    def invalidate(self, region_id: int) -> None:
        self._map.remove(region_id)

    async def _fresh(self, region: RegionInfo | int) -> RegionInfo | None:
        """Return the cached region, from PD again if its leader's store has failed since."""
        if isinstance(region, RegionInfo):
            known = self._map.get(region.id)
            if known is None or known.version != region.version:
                return None
        else:
            known = self._map.get(region)
        if known is None or known.leader is None or not self._doubtful(known, known.leader):
            return known
        fresh = await self._pd.region_by_id(known.id)
        if fresh is None or fresh.version != known.version:
            self.invalidate(known.id)
            return None
        return self._take([fresh])[0]

    def _doubtful(self, region: RegionInfo, peer: Peer) -> bool:
        return self._failed.get(peer.store_id, 0) > region.loaded

    def _take(self, regions: list[RegionInfo]) -> list[RegionInfo]:
        """Cache adjacent regions from PD; return them, or those that the stores reported if PD's are
        older."""
        taken = regions if not self._failures else [replace(r, loaded=self._failures) for r in regions]
        if self._map.add_all(taken):
            return taken
        known = self._map.over(taken[0].start, taken[-1].end)
        span = Span(taken[0].start, taken[-1].end)
        whole = known and known[-1].end >= span.end and _gap(span, known) is None
        return known if whole else taken

    def _backoff(self) -> Backoff:
        return Backoff(
            self._clock,
            self._random,
            first=FIRST_PAUSE_SECONDS,
            longest=LONGEST_PAUSE_SECONDS,
            total=self._retry_seconds,
        )


def _gap(span: Span, regions: Sequence[RegionInfo | None]) -> str | None:
    """Describe why these regions don't cover the span from its start; None if they do."""
    at = span.start
    for region in regions:
        if region is None:
            return f"a region without metadata at {at.hex() or 'the start'}"
        if region.start > at or region.end <= at:
            return f"a gap from {at.hex() or 'the start'} to region {region.id} at {region.start.hex()}"
        at = region.end
    return None if regions else "no regions"


def _next_voter(region: RegionInfo) -> Peer | None:
    voters = region.voters
    if not voters:
        return None
    at = voters.index(region.leader) + 1 if region.leader in voters else 0
    return voters[at % len(voters)]
