"""PD: members, one of which leads, timestamps, regions, stores, safe points."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import grpc

from ..codec.proto import PD, Message, metapb, pdpb
from ..events import LOGICAL_BITS, MAX_LOGICAL
from .keyspace import Keyspace
from .options import Options
from .oracle import Oracle
from .region import Region
from .safe_points import SafePoints
from .server import Behaviour, Context, RpcMethodHandler, Serve, Server, stream, unary


class PlacementDriver:
    """The state that the members share. To be used in the loop's thread only."""

    def __init__(self, keyspace: Keyspace, options: Options, oracle: Oracle) -> None:
        self.keyspace = keyspace
        self.options = options
        self.oracle = oracle
        self.safe_points = SafePoints()
        self.stores: Mapping[int, metapb.Store] = {}
        """By id."""
        self.leader = 0
        self.members: list[Member] = []

    def member(self, index: int) -> pdpb.Member:
        """Return a member as a message."""
        scheme = "https" if self.options.tls else "http"
        url = f"{scheme}://{self.members[index].server.address}"
        return pdpb.Member(
            name=f"pd-{index}",
            member_id=index + 1,
            client_urls=[url],
            peer_urls=[url],
            binary_version=f"v{self.options.version}",
        )

    def header(self, error: str = "", kind: int = 0) -> pdpb.ResponseHeader:
        header = pdpb.ResponseHeader(cluster_id=self.options.cluster_id)
        if error:
            header.error.CopyFrom(pdpb.Error(type=kind or pdpb.ErrorType.UNKNOWN, message=error))
        return header

    def region(self, region: Region) -> pdpb.Region:
        return pdpb.Region(region=region.to_proto(), leader=region.peer(region.leader))


class Member:
    """One PD server. Only the leader answers calls other than GetMembers."""

    def __init__(self, pd: PlacementDriver, index: int, serve: Serve = Server) -> None:
        self._pd = pd
        self._index = index
        port = pd.options.pd_port if index == 0 else 0
        self.server = serve(self._handlers(), host="127.0.0.1", port=port, tls=pd.options.tls)

    def _handlers(self) -> dict[str, RpcMethodHandler]:
        calls: dict[str, Callable[[Any], Message]] = {
            "IsBootstrapped": lambda _: pdpb.IsBootstrappedResponse(
                header=self._pd.header(), bootstrapped=True
            ),
            "GetStore": self._get_store,
            "GetAllStores": self._get_all_stores,
            "GetRegion": self._get_region,
            "GetPrevRegion": self._get_prev_region,
            "GetRegionByID": self._get_region_by_id,
            "ScanRegions": self._scan_regions,
            "BatchScanRegions": self._batch_scan_regions,
            "GetClusterConfig": self._get_cluster_config,
            "GetGCSafePoint": self._get_gc_safe_point,
            "UpdateServiceGCSafePoint": self._update_service_gc_safe_point,
        }
        made = {PD[name].path: unary(PD[name], self._led(call)) for name, call in calls.items()}
        made[PD["GetMembers"].path] = unary(PD["GetMembers"], self._get_members)
        made[PD["Tso"].path] = stream(PD["Tso"], self._tso)
        return made

    def _led(self, call: Callable[[Any], Message]) -> Behaviour:
        async def behaviour(request: Any, context: Context) -> Message:
            if self._pd.leader != self._index:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "not leader")
            await self._check_cluster(request.header, context)
            try:
                return call(request)
            except ValueError as error:  # errors that PD doesn't return in a header
                return await context.abort(grpc.StatusCode.UNKNOWN, str(error))

        return behaviour

    async def _check_cluster(self, header: pdpb.RequestHeader, context: Context) -> None:
        mine, asked = self._pd.options.cluster_id, header.cluster_id
        if asked != mine:
            message = f"mismatch cluster id, need {mine} but got {asked}"
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, message)

    async def _get_members(
        self, _request: pdpb.GetMembersRequest, _context: Context
    ) -> pdpb.GetMembersResponse:
        """Answer for any cluster id, as any member does: clients learn the cluster id by this call."""
        pd = self._pd
        leader = pd.member(pd.leader)
        members = [pd.member(index) for index in range(len(pd.members))]
        return pdpb.GetMembersResponse(header=pd.header(), members=members, leader=leader, etcd_leader=leader)

    async def _tso(self, requests: AsyncIterator[pdpb.TsoRequest], context: Context) -> None:
        async for request in requests:
            if self._pd.leader != self._index:
                message = "generate timestamp failed, requested pd is not leader of cluster"
                await context.abort(grpc.StatusCode.UNKNOWN, message)
            await self._check_cluster(request.header, context)
            count = request.count
            if not count:
                message = "generate timestamp failed, tso count should be positive"
                await context.abort(grpc.StatusCode.UNKNOWN, message)
            last = self._pd.oracle.next(count)
            timestamp = pdpb.Timestamp(physical=last >> LOGICAL_BITS, logical=last & MAX_LOGICAL)
            await context.write(pdpb.TsoResponse(header=self._pd.header(), count=count, timestamp=timestamp))

    # --- stores

    def _get_store(self, request: pdpb.GetStoreRequest) -> pdpb.GetStoreResponse:
        store = self._pd.stores.get(request.store_id)
        if store is None:
            message = f"invalid store ID {request.store_id}, not found"
            return pdpb.GetStoreResponse(header=self._pd.header(message))
        return pdpb.GetStoreResponse(header=self._pd.header(), store=store)

    def _get_all_stores(self, request: pdpb.GetAllStoresRequest) -> pdpb.GetAllStoresResponse:
        stores = [
            store
            for store in self._pd.stores.values()
            if not (request.exclude_tombstone_stores and store.node_state == metapb.NodeState.Removed)
        ]
        return pdpb.GetAllStoresResponse(header=self._pd.header(), stores=stores)

    def _get_cluster_config(self, _request: pdpb.GetClusterConfigRequest) -> pdpb.GetClusterConfigResponse:
        options = self._pd.options
        cluster = metapb.Cluster(id=options.cluster_id, max_peer_count=options.replicas)
        return pdpb.GetClusterConfigResponse(header=self._pd.header(), cluster=cluster)

    # --- regions

    def _region_response(self, region: Region | None) -> pdpb.GetRegionResponse:
        """Return a response; without a region if there is none, which isn't an error in PD."""
        if region is None:
            return pdpb.GetRegionResponse(header=self._pd.header())
        return pdpb.GetRegionResponse(
            header=self._pd.header(), region=region.to_proto(), leader=region.peer(region.leader)
        )

    def _get_region(self, request: pdpb.GetRegionRequest) -> pdpb.GetRegionResponse:
        return self._region_response(self._pd.keyspace.locate(request.region_key))

    def _get_prev_region(self, request: pdpb.GetRegionRequest) -> pdpb.GetRegionResponse:
        return self._region_response(self._pd.keyspace.before(request.region_key))

    def _get_region_by_id(self, request: pdpb.GetRegionByIDRequest) -> pdpb.GetRegionResponse:
        return self._region_response(self._pd.keyspace.by_id.get(request.region_id))

    def _scan_regions(self, request: pdpb.ScanRegionsRequest) -> pdpb.ScanRegionsResponse:
        scanned = self._pd.keyspace.scan(request.start_key, request.end_key, request.limit)
        regions = [self._pd.region(region) for region in scanned]
        return pdpb.ScanRegionsResponse(
            header=self._pd.header(),
            regions=regions,
            region_metas=[region.region for region in regions],
            leaders=[region.leader for region in regions],
        )

    def _batch_scan_regions(self, request: pdpb.BatchScanRegionsRequest) -> pdpb.BatchScanRegionsResponse:
        response = pdpb.BatchScanRegionsResponse
        if wrong := _wrong(request.ranges):
            return response(header=self._pd.header(f"invalid key range, {wrong}"))
        by_id: dict[int, Region] = {}
        for span in request.ranges:
            if 0 < request.limit <= len(by_id):
                break
            limit = request.limit - len(by_id) if request.limit > 0 else 0
            scanned = self._pd.keyspace.scan(span.start_key, span.end_key, limit)
            by_id |= {region.id: region for region in scanned}
        regions = [self._pd.region(region) for region in by_id.values()]
        return response(header=self._pd.header(), regions=regions)

    # --- safe points

    def _get_gc_safe_point(self, _request: pdpb.GetGCSafePointRequest) -> pdpb.GetGCSafePointResponse:
        return pdpb.GetGCSafePointResponse(header=self._pd.header(), safe_point=self._pd.safe_points.gc)

    def _update_service_gc_safe_point(
        self, request: pdpb.UpdateServiceGCSafePointRequest
    ) -> pdpb.UpdateServiceGCSafePointResponse:
        now_s = self._pd.oracle.now_ms() / 1000
        service, hold = self._pd.safe_points.update(
            request.service_id, request.TTL, request.safe_point, now_s
        )
        ttl = min(hold.until_s - now_s, (1 << 63) - 1)
        ttl_s = int(ttl) if ttl < 1 << 62 else (1 << 63) - 1
        return pdpb.UpdateServiceGCSafePointResponse(
            header=self._pd.header(), service_id=service, TTL=ttl_s, min_safe_point=hold.safe_point
        )


def _wrong(ranges: Iterable[pdpb.KeyRange]) -> str:
    """Return PD's objection to these pdpb.KeyRanges; "" if there is none."""
    end = b""
    for span in ranges:
        if span.start_key < end:
            return "ranges overlapped"
        if span.end_key and span.start_key > span.end_key:
            return "start key > end key"
        end = span.end_key
    return ""
