"""A store's change feed: cdcpb.ChangeData, with the answers of TiKV's cdc component.

Emulated: its checks and their order; its states of a subscription (no changes until the snapshot is taken,
then live changes beside the scan, resolved ts only after INITIALIZED); its errors on split, merge, leader
change and deregistration; its answer to a slow reader (congested). Like TiKV it accepts a checkpoint below
the GC safe point: the scan then lacks the collected versions. Checking with PD is up to the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import grpc
from grpc import aio

from ..codec.proto import CHANGE_DATA, cdcpb
from ..events import Ts
from .connection import Connection
from .event_bytes import error_event, rows_event
from .faults import region_errors
from .keyspace import Keyspace
from .options import Options
from .percolator import Row
from .region import Region
from .scans import Scans
from .server import RpcMethodHandler, stream
from .subscription import Subscription, SubscriptionState

FEATURES = {"stream-multiplexing"}
CHECKS_CLUSTER_ID = (5, 3, 0)
"""First client version that sends the cluster's id."""


class ChangeData:
    """Streams and subscriptions of a store. To be used in the loop's thread only."""

    def __init__(
        self,
        store_id: int,
        keyspace: Keyspace,
        options: Options,
        injected: Callable[[str, Region | None], str | None],
        delay: Callable[[], Awaitable[None]],
    ) -> None:
        self._store_id = store_id
        self._keyspace = keyspace
        self._options = options
        self._injected = injected
        self._delay = delay
        self.connections: list[Connection] = []
        self.scans = Scans(options)

    def handlers(self) -> dict[str, RpcMethodHandler]:
        first, second = CHANGE_DATA["EventFeed"], CHANGE_DATA["EventFeedV2"]
        return {
            first.path: stream(first, self._event_feed, raw=True),
            second.path: stream(second, self._event_feed_v2, raw=True),
        }

    # --- streams

    async def _event_feed(
        self,
        requests: AsyncIterator[cdcpb.ChangeDataRequest],
        context: aio.ServicerContext[cdcpb.ChangeDataRequest, bytes],
    ) -> None:
        await self._serve(requests, context, multiplexing=False)

    async def _event_feed_v2(
        self,
        requests: AsyncIterator[cdcpb.ChangeDataRequest],
        context: aio.ServicerContext[cdcpb.ChangeDataRequest, bytes],
    ) -> None:
        asked: set[str] = set()
        for key, value in context.invocation_metadata() or ():
            if key == "features" and isinstance(value, str):
                asked |= {name.strip() for name in value.split(",")}
        unknown = sorted(asked - FEATURES)
        if unknown:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, ",".join(unknown))
        await self._serve(requests, context, multiplexing="stream-multiplexing" in asked)

    async def _serve(
        self,
        requests: AsyncIterator[cdcpb.ChangeDataRequest],
        context: aio.ServicerContext[cdcpb.ChangeDataRequest, bytes],
        *,
        multiplexing: bool,
    ) -> None:
        connection = Connection(
            self._store_id, quota_bytes=self._options.quota_bytes, multiplexing=multiplexing
        )
        self.connections.append(connection)
        reader = asyncio.ensure_future(self._read(requests, connection))
        sender = asyncio.ensure_future(connection.send(context, self._delay))
        try:
            await asyncio.wait({reader, sender}, return_when=asyncio.FIRST_COMPLETED)
            if sender.done():
                await sender  # abort() raises
        finally:
            for task in (reader, sender):
                task.cancel()
            await asyncio.gather(reader, sender, return_exceptions=True)
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        self.connections.remove(connection)
        connection.gone()
        for subscription in list(connection.subscriptions.values()):
            self._stop(subscription)

    async def _read(self, requests: AsyncIterator[cdcpb.ChangeDataRequest], connection: Connection) -> None:
        async for request in requests:
            if connection.version is None:
                connection.version = parse_version(request.header.ticdc_version)
            if request.WhichOneof("request") == "deregister":
                self._deregister(connection, request.request_id, request.region_id)
            else:
                self._register(connection, request)

    # --- registration

    def _register(self, connection: Connection, request: cdcpb.ChangeDataRequest) -> None:
        region = self._keyspace.by_id.get(request.region_id)
        error = self._refusal(connection, request, region)
        if error is not None or region is None:
            connection.put(error_event(request.region_id, error), request.request_id)
            return
        subscription = Subscription(
            connection,
            region,
            request.request_id,
            request.checkpoint_ts,
            (request.start_key, request.end_key),
            bool(request.extra_op),
        )
        connection.add(subscription)
        if region.feed is None:
            region.feed = []
        region.feed.append(subscription)
        self.scans.add(subscription)

    def _refusal(
        self, connection: Connection, request: cdcpb.ChangeDataRequest, region: Region | None
    ) -> cdcpb.Error | None:
        """Return the cdcpb.Error with which TiKV would refuse the request; None if it would accept it."""
        injected = self._injected("feed", region)
        if injected is not None:
            return region_errors.for_feed(injected, region, request, self._store_id)
        version = connection.version or (0, 0, 0)
        if version >= CHECKS_CLUSTER_ID and request.header.cluster_id != self._options.cluster_id:
            mismatch = {"current": self._options.cluster_id, "request": request.header.cluster_id}
            return cdcpb.Error(cluster_id_mismatch=mismatch)
        required = "6.2.0" if request.kv_api else self._options.required_version
        if request.kv_api or version < parse_version(required):
            return cdcpb.Error(compatibility={"required_version": required})
        if len(self.scans) >= self._options.scans_waiting:
            return cdcpb.Error(server_is_busy={"reason": "too many pending incremental scans"})
        if region is None or self._store_id not in region.stores:
            return cdcpb.Error(region_not_found={"region_id": request.region_id})
        if connection.find(request.request_id, region.id) is not None:
            return cdcpb.Error(duplicate_request={"region_id": region.id})
        if region.leader != self._store_id:
            return cdcpb.Error(not_leader=region_errors.not_leader(region))
        if request.region_epoch.version != region.version:
            return cdcpb.Error(epoch_not_match=region_errors.epoch_not_match([region]))
        return None

    def _deregister(self, connection: Connection, request_id: int, region_id: int) -> None:
        """Deregister one region, or all of a request id; each is answered with region_not_found, as by
        TiKV."""
        for subscription in list(connection.subscriptions.values()):
            mine = subscription.request_id == request_id
            if mine and region_id in (0, subscription.region.id):
                gone = cdcpb.Error(region_not_found={"region_id": subscription.region.id})
                self.fail(subscription, gone)

    def fail(self, subscription: Subscription, error: cdcpb.Error) -> None:
        """End a subscription with a cdcpb.Error."""
        self._stop(subscription)
        subscription.connection.put(error_event(subscription.region.id, error), subscription.request_id)

    def _stop(self, subscription: Subscription) -> None:
        subscription.state = SubscriptionState.STOPPED
        subscription.connection.leave(subscription)
        feed = subscription.region.feed
        if feed is not None and subscription in feed:
            feed.remove(subscription)
            subscription.region.feed = feed or None

    # --- changes

    def publish(self, region: Region, rows: Sequence[Row]) -> None:
        """Send rows to the region's subscriptions; one without room is ended as congested."""
        events: dict[bool, bytes] = {}
        for subscription in list(region.feed or ()):
            connection, old_values = subscription.connection, subscription.old_value
            if subscription.state not in (SubscriptionState.SCANNING, SubscriptionState.NORMAL):
                continue
            if connection.full:
                self.fail(subscription, cdcpb.Error(congested={"region_id": region.id}))
                continue
            wanted = subscription.wanted if self._options.filter_span else None
            if wanted is not None:
                mine = [row for row in rows if wanted(row.key)]
                if mine:
                    connection.put(
                        rows_event(region.id, mine, old_values=old_values), subscription.request_id
                    )
                continue
            if old_values not in events:
                events[old_values] = rows_event(region.id, rows, old_values=old_values)
            connection.put(events[old_values], subscription.request_id)

    def resolve(self, now: Ts, held: dict[int, Ts]) -> None:
        """Send every ready region its resolved ts: `now`, or its entry in `held`."""
        for connection in self.connections:
            connection.resolve(now, held, coarse=self._options.coarse_resolved)


def parse_version(text: str) -> tuple[int, int, int]:
    """Parse a version such as "v8.1.0-alpha"; (0, 0, 0) for anything else."""
    numbers = text.removeprefix("v").partition("-")[0].split(".")
    if len(numbers) != 3 or not all(number.isdigit() for number in numbers):
        return (0, 0, 0)
    major, minor, patch = map(int, numbers)
    return major, minor, patch
