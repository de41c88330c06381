"""A client of raw gRPC calls, as plain as can be: what it sees is what is on the wire."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import grpc

from tidemill.codec.proto import CHANGE_DATA, PD, TIKV, cdcpb
from tidemill.codec.tidb.key import encode_bytes
from tidemill.emulator import Cluster
from tidemill.testing.progress import STALL_SECONDS

"""Nothing here takes a second; past this the test fails instead of hanging."""
OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1))


class Client:
    """Calls of one cluster; close it."""

    def __init__(self, cluster: Cluster, credentials: Any = None) -> None:
        self.cluster = cluster
        self._credentials = credentials
        self._channels: dict[str, grpc.Channel] = {}
        self.feeds: dict[Any, Feed] = {}
        self.header = {"cluster_id": cluster.options.cluster_id}

    def channel(self, address: str) -> grpc.Channel:
        if address not in self._channels:
            if self._credentials is None:
                self._channels[address] = grpc.insecure_channel(address, OPTIONS)
            else:
                self._channels[address] = grpc.secure_channel(address, self._credentials, OPTIONS)
        return self._channels[address]

    def _unary(self, address: str, method: Any, fields: dict[str, Any]) -> Any:
        call = self.channel(address).unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        return call(method.request(**fields), timeout=STALL_SECONDS)

    def pd(self, name: str, member: int = 0, **fields: Any) -> Any:
        """Call a PD member, with the right cluster id unless a header is given."""
        address = self.cluster.pd_address.split(",")[member]
        return self._unary(address, PD[name], {"header": self.header, **fields})

    def tso(self, count: int = 1, member: int = 0) -> Any:
        method = PD["Tso"]
        call = self.channel(self.cluster.pd_address.split(",")[member]).stream_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        request = method.request(header=self.header, count=count)
        return next(call(iter([request]), timeout=STALL_SECONDS))

    def address(self, store: int) -> str:
        return str(self.pd("GetStore", store_id=store).store.address)

    def context(self, raw: bytes) -> dict[str, Any]:
        """A kvrpcpb.Context for a raw key, fresh from PD."""
        found = self.pd("GetRegion", region_key=encode_bytes(raw))
        return {"region_id": found.region.id, "region_epoch": found.region.region_epoch, "peer": found.leader}

    def kv(self, name: str, context: dict[str, Any], **fields: Any) -> Any:
        """Call the store that the context names."""
        address = self.address(context["peer"].store_id)
        return self._unary(address, TIKV[name], {"context": context, **fields})

    def feed(self, store: int, *, version: str = "8.1.0", name: str = "", multiplexing: bool = True) -> Feed:
        """The change feed stream of that name to a store; opened if there is none."""
        key = (store, name)
        if key not in self.feeds:
            self.feeds[key] = Feed(self.channel(self.address(store)), self.header, version, multiplexing)
        return self.feeds[key]

    def close(self) -> None:
        for feed in self.feeds.values():
            feed.close()
        for channel in self._channels.values():
            channel.close()


class Feed:
    """One EventFeed stream."""

    def __init__(self, channel: grpc.Channel, header: Any, version: str, multiplexing: bool) -> None:
        method = CHANGE_DATA["EventFeedV2" if multiplexing else "EventFeed"]
        self._header = header | {"ticdc_version": version}
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._fences = 1 << 40
        features = [("features", "stream-multiplexing")] if multiplexing else []
        self.call = channel.stream_stream(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )(iter(self._requests.get, None), metadata=features, timeout=STALL_SECONDS)

    def send(self, region: Any, **fields: Any) -> None:
        """Register a region (metapb.Region) or whatever `fields` say instead."""
        self._requests.put(
            cdcpb.ChangeDataRequest(
                **{
                    "header": self._header,
                    "region_id": region.id,
                    "region_epoch": region.region_epoch,
                    "start_key": region.start_key,
                    "end_key": region.end_key,
                    "register": {},
                    **fields,
                }
            )
        )

    def read(self) -> Any:
        """The next cdcpb.ChangeDataEvent; grpc.RpcError or StopIteration at the stream's end."""
        return next(self.call)

    def fence(self) -> Iterator[Any]:
        """Everything that was queued before now; the answer to a request that is always refused ends it."""
        self._fences += 1
        self._requests.put(cdcpb.ChangeDataRequest(header=self._header, region_id=self._fences, register={}))
        fenced = False
        while not fenced:
            message = self.read()
            for event in [each for each in message.events if each.region_id == self._fences]:
                message.events.remove(event)
                fenced = True
            yield message

    def close(self) -> None:
        self._requests.put(None)
        self.call.cancel()
