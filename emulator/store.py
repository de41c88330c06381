"""A TiKV store: its transactional calls, with TiKV's checks of region, peer, leader and epoch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import grpc

from ..codec.proto import TIKV, Message, errorpb, kvrpcpb
from . import percolator, snapshot_read, txn_status
from .change_data import ChangeData
from .faults import region_errors
from .keyspace import Keyspace
from .options import Options
from .percolator import Rejected
from .region import Apply, Region
from .resolved import Resolved
from .server import Behaviour, Context, RpcMethodHandler, Serve, Server, unary
from .shard import Attempt

Stepped = TypeVar(
    "Stepped", kvrpcpb.CommitResponse, kvrpcpb.BatchRollbackResponse, kvrpcpb.ResolveLockResponse
)


class TikvStore:
    """A store. To be used in the loop's thread only. `apply(region, step, …)` runs a step of Percolator and
    publishes its changes."""

    def __init__(
        self,
        id: int,  # noqa: A002
        keyspace: Keyspace,
        options: Options,
        apply: Apply,
        resolved: Resolved,
        injected: Callable[[str, Region | None], str | None],
        *,
        feed: Callable[..., ChangeData] = ChangeData,
        serve: Serve = Server,
    ) -> None:
        self.id = id
        self.slow_seconds = 0.0
        """Delay before each answer and each message."""
        self._keyspace = keyspace
        self._cluster_id = options.cluster_id
        self._apply = apply
        self._resolved = resolved
        self._injected = injected
        self.change_data = feed(id, keyspace, options, injected, self.delay)
        self.server = serve(self._handlers(), host="127.0.0.1", tls=options.tls)

    async def delay(self) -> None:
        if self.slow_seconds:
            await asyncio.sleep(self.slow_seconds)

    def _handlers(self) -> dict[str, RpcMethodHandler]:
        calls: dict[str, Callable[[Region, Any], Message]] = {
            "KvGet": self._get,
            "KvScan": self._scan,
            "KvPrewrite": self._prewrite,
            "KvCommit": self._commit,
            "KvBatchRollback": self._rollback,
            "KvScanLock": self._scan_lock,
            "KvCheckTxnStatus": self._check_txn_status,
            "KvCheckSecondaryLocks": self._check_secondary_locks,
            "KvResolveLock": self._resolve_lock,
        }
        made = {TIKV[name].path: unary(TIKV[name], self._checked(name, call)) for name, call in calls.items()}
        return made | self.change_data.handlers()

    def _checked(self, name: str, call: Callable[[Region, Any], Message]) -> Behaviour:
        response = TIKV[name].response

        async def behaviour(request: Any, context: Context) -> Message:
            await self.delay()
            if request.context.cluster_id not in (0, self._cluster_id):
                message = "the cluster id of the request does not match the TiKV cluster"
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, message)
            error, region = self._check(request.context, _keys(request))
            if error is not None or region is None:
                return response(region_error=error)
            return call(region, request)

        return behaviour

    def _check(
        self, context: kvrpcpb.Context, keys: Iterable[bytes]
    ) -> tuple[errorpb.Error | None, Region | None]:
        """Return (errorpb.Error, None) or (None, the region)."""
        region = self._keyspace.by_id.get(context.region_id)
        word = self._injected("kv", region)
        key = b""
        if word is None:
            word, key = self._obstacle(context, region, keys)
        if word is not None:
            return region_errors.for_kv(word, region, context, self.id, key), None
        return None, region

    def _obstacle(
        self, context: kvrpcpb.Context, region: Region | None, keys: Iterable[bytes]
    ) -> tuple[str | None, bytes]:
        if context.peer.store_id != self.id:
            return "store_not_match", b""
        if region is None or self.id not in region.stores:
            return "region_not_found", b""
        if context.peer.id != region.peer_id(self.id):
            return "mismatch_peer_id", b""
        if region.leader != self.id:
            return "not_leader", b""
        if context.region_epoch.version != region.version:
            return "epoch_not_match", b""
        for key in keys:
            if not region.holds_raw(key):
                return "key_not_in_region", key
        return None, b""

    # --- reads

    def _get(self, region: Region, request: kvrpcpb.GetRequest) -> kvrpcpb.GetResponse:
        self._resolved.observe(request.version)
        return snapshot_read.get(region.shard, request)

    def _scan(self, region: Region, request: kvrpcpb.ScanRequest) -> kvrpcpb.ScanResponse:
        self._resolved.observe(request.version)
        start, end = request.start_key, request.end_key
        if request.reverse:
            start, end = end, start
        return snapshot_read.scan(region.shard, request, *self._within(region, start, end))

    def _scan_lock(self, region: Region, request: kvrpcpb.ScanLockRequest) -> kvrpcpb.ScanLockResponse:
        self._resolved.observe(request.max_version)
        span = self._within(region, request.start_key, request.end_key)
        return snapshot_read.scan_locks(region.shard, request, *span)

    @staticmethod
    def _within(region: Region, start: bytes, end: bytes) -> tuple[bytes, bytes]:
        """Return the part of [start, end), raw, that lies in the region."""
        first, last = region.raw_span
        ends = [key for key in (end, last) if key]
        return max(start, first), min(ends, default=b"")

    # --- writes

    def _prewrite(self, region: Region, request: kvrpcpb.PrewriteRequest) -> kvrpcpb.PrewriteResponse:
        attempt, one_pc = self._attempt(region, request)
        mutations = [(mutation.op, mutation.key, mutation.value) for mutation in request.mutations]
        try:
            if one_pc:
                commit_ts = self._apply(region, percolator.commit_at_once, attempt, mutations)
                return kvrpcpb.PrewriteResponse(min_commit_ts=commit_ts, one_pc_commit_ts=commit_ts)
            least = self._apply(region, percolator.prewrite, attempt, mutations, 0)
        except Rejected as refused:
            return kvrpcpb.PrewriteResponse(errors=refused.errors)
        return kvrpcpb.PrewriteResponse(min_commit_ts=least)

    def _attempt(self, region: Region, request: kvrpcpb.PrewriteRequest) -> tuple[Attempt, bool]:
        """Return a prewrite's attempt, and True if it commits at once (1PC).

        If its commit ts would be above its max_commit_ts, it falls back to two phases.
        """
        start_ts, for_update_ts = request.start_version, request.for_update_ts
        least, highest = request.min_commit_ts, request.max_commit_ts
        calculates = request.use_async_commit or request.try_one_pc
        if calculates:
            commit_ts = self._resolved.least_commit_ts(start_ts, for_update_ts, least)
            calculates = not highest or commit_ts <= highest
            least = commit_ts if calculates else least
        attempt = Attempt(
            start_ts,
            request.primary_lock,
            request.lock_ttl,
            request.txn_size,
            least,
            for_update_ts,
            self._resolved.floor(region),
            calculates,
            tuple(request.secondaries) if calculates else (),
        )
        return attempt, calculates and request.try_one_pc

    def _commit(self, region: Region, request: kvrpcpb.CommitRequest) -> kvrpcpb.CommitResponse:
        start, ts = request.start_version, request.commit_version
        response = kvrpcpb.CommitResponse(commit_version=ts)
        return self._step(region, response, percolator.commit, start, ts, request.keys)

    def _rollback(
        self, region: Region, request: kvrpcpb.BatchRollbackRequest
    ) -> kvrpcpb.BatchRollbackResponse:
        response = kvrpcpb.BatchRollbackResponse()
        return self._step(region, response, percolator.rollback, request.start_version, request.keys)

    def _check_txn_status(
        self, region: Region, request: kvrpcpb.CheckTxnStatusRequest
    ) -> kvrpcpb.CheckTxnStatusResponse:
        for ts in (request.lock_ts, request.current_ts, request.caller_start_ts):
            self._resolved.observe(ts)
        try:
            return self._apply(region, txn_status.check_txn_status, request)
        except Rejected as refused:
            return kvrpcpb.CheckTxnStatusResponse(error=refused.errors[0])

    def _check_secondary_locks(
        self, region: Region, request: kvrpcpb.CheckSecondaryLocksRequest
    ) -> kvrpcpb.CheckSecondaryLocksResponse:
        self._resolved.observe(request.start_version)
        return self._apply(region, txn_status.check_secondary_locks, request.keys, request.start_version)

    def _resolve_lock(
        self, region: Region, request: kvrpcpb.ResolveLockRequest
    ) -> kvrpcpb.ResolveLockResponse:
        fates = [(request.start_version, request.commit_version)] if request.start_version else []
        fates += [(info.txn, info.status) for info in request.txn_infos]
        return self._step(region, kvrpcpb.ResolveLockResponse(), percolator.resolve, fates, request.keys)

    def _step(
        self, region: Region, response: Stepped, step: Callable[..., object], *values: object
    ) -> Stepped:
        try:
            self._apply(region, step, *values)
        except Rejected as refused:
            response.Clear()
            response.error.CopyFrom(refused.errors[0])
        return response


def _keys(request: Message) -> list[bytes]:
    """Return the raw keys that must lie in the request's region."""
    match request:
        case kvrpcpb.GetRequest():
            return [request.key]
        case kvrpcpb.PrewriteRequest():
            return [mutation.key for mutation in request.mutations]
        case (
            kvrpcpb.CommitRequest()
            | kvrpcpb.BatchRollbackRequest()
            | kvrpcpb.ResolveLockRequest()
            | kvrpcpb.CheckSecondaryLocksRequest()
        ):
            return list(request.keys)
        case kvrpcpb.CheckTxnStatusRequest():
            return [request.primary_key]
        case kvrpcpb.ScanRequest() if not request.reverse:
            return [request.start_key] if request.start_key else []
    return []
