"""Unary calls to the store that leads a key's region."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, Final

from ....actors import Backoff, Clock
from ....codec.proto import TIKV, kvrpcpb, metapb
from ....errors import Retryable
from ...grpc.channel import CallFailed, Channels
from ..options import TikvOptions
from ..pd.pd import PdClient
from ..topology import RegionInfo
from .region_cache import RegionCache, RpcContext

_PASSING: Final = {
    "stale_command",
    "max_timestamp_not_synced",
    "read_index_not_ready",
    "proposal_in_merging_mode",
    "data_is_not_ready",
    "region_not_initialized",
    "disk_full",
}
"""Errors that say nothing against the region as it is known: the same again, later."""


_ORIGIN: Final = kvrpcpb.RequestOrigin.RequestOriginUnknown
"""Not a TiDB server: TiKV allows such a request no timestamp that PD has yet to give."""


class RegionCalls:
    """Sends a request to a region and follows it: other leaders, splits and merges, stores that are away."""

    def __init__(
        self,
        options: TikvOptions,
        pd: PdClient,
        cache: RegionCache,
        channels: Channels,
        clock: Clock,
        random: Random,
    ) -> None:
        self._options = options
        self._pd = pd
        self._cache = cache
        self._channels = channels
        self._clock = clock
        self._random = random

    async def send(self, key: bytes, name: str, make: Callable[[RegionInfo], Any]) -> tuple[RegionInfo, Any]:
        """The region that holds the encoded `key`, and its leader's answer to what `make` asks of it.

        `make` is called once for each try; the request's context is filled in here. Raises Retryable
        with the last trouble once `store_retry_seconds` are over.
        """
        backoff = self.backoff()
        while True:
            context = await self._cache.rpc_context(await self._cache.locate(key))
            if context is None:
                trouble, least = f"the region of {key.hex()} has no leader that can be reached", 0.0
            else:
                answer, trouble, least = await self._try(context, name, make(context.region))
                if not trouble:
                    return context.region, answer
            pause = backoff.next(least)
            if pause is None:
                raise Retryable(f"{name}: {trouble}")
            await asyncio.sleep(pause)

    def backoff(self) -> Backoff:
        total = self._options.store_retry_seconds
        return Backoff(self._clock, self._random, first=0.002, longest=0.5, total=total)

    async def _try(self, context: RpcContext, name: str, request: Any) -> tuple[Any, str, float]:
        """The answer, or what is wrong and the seconds to wait at least."""
        address_to(request.context, context, self._pd.cluster_id)
        try:
            answer = await self._channels.call(
                context.address, TIKV[name], request, self._options.timeout_seconds
            )
        except CallFailed as error:
            self._cache.on_send_fail(context)
            return None, str(error), 0.0
        if answer.HasField("region_error"):
            least = follow(self._cache, context, answer.region_error)
            return None, f"{context.address}: {_summary(answer.region_error)}", least
        return answer, "", 0.0


def address_to(header: Any, context: RpcContext, cluster_id: int) -> None:
    """Write into a request's kvrpcpb.Context which cluster, region and peer it is for."""
    region, peer = context.region, context.peer
    header.cluster_id = cluster_id
    header.request_origin = _ORIGIN
    header.region_id = region.id
    header.region_epoch.CopyFrom(metapb.RegionEpoch(conf_ver=region.conf_ver, version=region.version))
    header.peer.CopyFrom(metapb.Peer(id=peer.id, store_id=peer.store_id, role=peer.role))


def follow(cache: RegionCache, context: RpcContext, error: Any) -> float:
    """Tell the cache what a store's errorpb.Error teaches; returns the least seconds until the next try."""
    region_id = context.region.id
    match _kind(error):
        case "not_leader":
            cache.update_leader(region_id, error.not_leader.leader)
        case "epoch_not_match":
            cache.on_epoch_not_match(region_id, error.epoch_not_match.current_regions, context.store_id)
        case "store_not_match":
            cache.forget_store(context.store_id)
            cache.invalidate(region_id)
        case "server_is_busy":
            return float(error.server_is_busy.backoff_ms) / 1000
        case kind if kind not in _PASSING:
            cache.invalidate(region_id)
    return 0.0


def _kind(error: Any) -> str:
    """The name of the field that says what the error is; "" for one that isn't declared."""
    return next((field.name for field, _ in error.ListFields() if field.name != "message"), "")


def _summary(error: Any) -> str:
    return f"{_kind(error) or 'region error'}: {error.message}"
