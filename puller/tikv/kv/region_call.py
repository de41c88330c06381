"""Unary calls to the leader of a key's region."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, Final

from ....actors import Backoff, Clock
from ....codec.proto import TIKV, Message, errorpb, kvrpcpb, metapb
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
"""Errors that don't invalidate the cached region: retry later."""


_ORIGIN: Final = kvrpcpb.RequestOrigin.RequestOriginUnknown
"""The origin of requests that don't come from a TiDB server: TiKV rejects timestamps of theirs that are above
PD's."""


class RegionCalls:
    """Sends requests to regions and follows leader changes, splits, merges and unavailable stores."""

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

    async def send(
        self, key: bytes, name: str, make: Callable[[RegionInfo], Message]
    ) -> tuple[RegionInfo, Any]:
        """Send a request made by `make`; return the region of the encoded `key` and its leader's answer.

        `make` is called once per attempt; the request's context is filled in here. Raises Retryable with the
        last error after `store_retry_seconds`.
        """
        backoff = self.backoff()
        while True:
            context = await self._cache.rpc_context(await self._cache.locate(key))
            if context is None:
                problem, least = f"the region of {key.hex()} has no reachable leader", 0.0
            else:
                answer, problem, least = await self._try(context, name, make(context.region))
                if not problem:
                    return context.region, answer
            pause = backoff.next(least)
            if pause is None:
                raise Retryable(f"{name}: {problem}")
            await asyncio.sleep(pause)

    def backoff(self) -> Backoff:
        total = self._options.store_retry_seconds
        return Backoff(self._clock, self._random, first=0.002, longest=0.5, total=total)

    async def _try(self, context: RpcContext, name: str, request: Any) -> tuple[Any, str, float]:
        """Return the answer, or the error and the minimum seconds to wait."""
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


def address_to(header: kvrpcpb.Context, context: RpcContext, cluster_id: int) -> None:
    """Fill in the cluster, region and peer of a request's kvrpcpb.Context."""
    region, peer = context.region, context.peer
    header.cluster_id = cluster_id
    header.request_origin = _ORIGIN
    header.region_id = region.id
    header.region_epoch.CopyFrom(metapb.RegionEpoch(conf_ver=region.conf_ver, version=region.version))
    header.peer.CopyFrom(metapb.Peer(id=peer.id, store_id=peer.store_id, role=peer.role))


def follow(cache: RegionCache, context: RpcContext, error: errorpb.Error) -> float:
    """Update the cache by a store's errorpb.Error; return the minimum seconds until the next attempt."""
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


def _kind(error: errorpb.Error) -> str:
    """Return the name of the field with the error's kind; "" for one that isn't declared."""
    return next((field.name for field, _ in error.ListFields() if field.name != "message"), "")


def _summary(error: errorpb.Error) -> str:
    return f"{_kind(error) or 'region error'}: {error.message}"
