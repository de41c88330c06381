"""The client of the placement driver: regions, stores, timestamps and safe points."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from ....actors import Clock
from ....codec.proto import PD, metapb, pdpb
from ....errors import Retryable, SourceError
from ....events import Ts
from ...grpc.channel import CallFailed, Channels
from ..options import TikvOptions
from ..topology import RegionInfo, StoreInfo, region_info, side_by_side, store_info
from .members import Members
from .tso import TimestampOracle

_FINAL: Final = (pdpb.ErrorType.INCOMPATIBLE_VERSION, pdpb.ErrorType.INVALID_VALUE)

_NO_STORE: Final = "invalid store ID"

_NEVER: Final = ("service id of service safepoint", "service safe point of gc_worker", "gc_worker's service")
"""Texts in PD's errors about a service safe point that it will never accept; the status doesn't tell them
apart."""


class PdClient:
    """Sends requests to PD's current leader. To be used in the loop's thread only, after `connect`.

    Every method raises Retryable, naming all members, if none answers for `pd_retry_seconds`; SourceError if
    another cluster answers or the call can't succeed.
    """

    def __init__(self, options: TikvOptions, channels: Channels, clock: Clock, random: Random) -> None:
        self._channels = channels
        self._timeout_seconds = options.timeout_seconds
        self.members = Members(options, channels, clock, random)
        self._tso = TimestampOracle(self.members, channels, options.timeout_seconds)

    @property
    def cluster_id(self) -> int:
        """Id of the cluster; 0 before `connect`, unless the options set it."""
        return self.members.cluster_id

    async def connect(self) -> None:
        """Find the leader and the cluster's id."""

        async def found(_address: str) -> None:
            return None

        await self.members.at_leader(found)

    async def close(self) -> None:
        await self._tso.close()
        await self.members.close()

    async def tso(self) -> Ts:
        """Return a new timestamp, above all earlier ones."""
        return await self._tso.get()

    async def scan_regions(self, start: bytes, end: bytes, limit: int) -> list[RegionInfo | None]:
        """Return at most `limit` regions in key order: from the one that holds `start` to the last one that
        begins before `end`.

        Keys are encoded; an empty `end` is +inf. None stands for a region without metadata.
        """
        answer = await self._ask(
            "ScanRegions", pdpb.ScanRegionsRequest(start_key=start, end_key=end, limit=limit)
        )
        if answer.regions:
            return side_by_side([region_info(each.region, each.leader) for each in answer.regions])
        # before PD 4.0: two lists, the second shorter or empty if leaders are unknown
        leaders = [*answer.leaders, *(metapb.Peer() for _ in answer.region_metas)]
        metas = zip(answer.region_metas, leaders, strict=False)
        return side_by_side([region_info(meta, leader) for meta, leader in metas])

    async def region_by_key(self, key: bytes) -> RegionInfo | None:
        """Return the region that holds an encoded key; None while PD knows none."""
        return _region(await self._ask("GetRegion", pdpb.GetRegionRequest(region_key=key)))

    async def region_by_id(self, region_id: int) -> RegionInfo | None:
        """Return a region by id; None if it was merged into another."""
        return _region(await self._ask("GetRegionByID", pdpb.GetRegionByIDRequest(region_id=region_id)))

    async def store(self, store_id: int) -> StoreInfo | None:
        """Return a store; None if PD doesn't know it. A removed store is a tombstone."""
        answer = await self._ask("GetStore", pdpb.GetStoreRequest(store_id=store_id))
        return store_info(answer.store) if answer.store.id else None

    async def stores(self, *, tombstones: bool = False) -> list[StoreInfo]:
        request = pdpb.GetAllStoresRequest(exclude_tombstone_stores=not tombstones)
        return [store_info(store) for store in (await self._ask("GetAllStores", request)).stores]

    async def gc_safe_point(self) -> Ts:
        """Return the GC safe point: versions overwritten before this ts may be gone."""
        return int((await self._ask("GetGCSafePoint", pdpb.GetGCSafePointRequest())).safe_point)

    async def update_service_gc_safe_point(self, service_id: str, ttl_seconds: int, safe_point: Ts) -> Ts:
        """Keep versions from `safe_point` on for `ttl_seconds`; 0 removes the service.

        Returns the minimum safe point of all services. If it is above `safe_point`, this safe point was too
        late and wasn't set.
        """
        request = pdpb.UpdateServiceGCSafePointRequest(
            service_id=service_id.encode(), TTL=ttl_seconds, safe_point=safe_point
        )
        return int((await self._ask("UpdateServiceGCSafePoint", request)).min_safe_point)

    async def _ask(self, name: str, request: Any) -> Any:
        async def ask(address: str) -> object:
            request.header.CopyFrom(self.members.header())
            try:
                answer = await self._channels.call(address, PD[name], request, self._timeout_seconds)
            except CallFailed as error:
                if any(words in str(error) for words in _NEVER):
                    raise SourceError(str(error)) from error
                if _NO_STORE not in str(error):
                    raise
                return PD[name].response()  # before PD 6 this is a status, without a header
            self.members.check_cluster(address, answer.header)
            _check(f"{address}: {name}", answer.header.error)
            return answer

        return await self.members.at_leader(ask)


def _check(what: str, error: pdpb.Error) -> None:
    """Raise for an error in an answer's header, except "no such store"."""
    if error.type == pdpb.ErrorType.OK or _NO_STORE in error.message:
        return
    sentence = f"{what}: {error.message or 'refused'} (error {error.type} of PD)"
    if error.type in _FINAL:
        raise SourceError(sentence)
    raise Retryable(sentence)


def _region(answer: pdpb.GetRegionResponse) -> RegionInfo | None:
    return region_info(answer.region, answer.leader)
