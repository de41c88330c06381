"""The pump's side of the notify protocol, by the facts of the wire.

A newly registered pump calls every online drainer before it serves: 10 s in all, 3 tries to connect and 3 to
call, 1 s and then 2 s apart. If one doesn't answer, it registers as offline and ends.
"""

from __future__ import annotations

from collections.abc import Callable

import grpc
from msgspec.structs import replace

from tidemill.codec.proto import CISTERN
from tidemill.puller.grpc.security import Security
from tidemill.puller.pump.registry.node import DRAINERS, PUMPS, NodeStatus, encode, key
from tidemill.puller.pump.registry.registry import NodeRegistry, nodes

TOTAL_SECONDS = 10.0
TRIES = 3
PLAIN = Security()


class NotNotified(Exception):
    pass


def join(
    registry: NodeRegistry, pump: NodeStatus, pause: Callable[[float], None], security: Security = PLAIN
) -> None:
    """Register a pump and notify all drainers. `pause` waits between tries. Raises NotNotified."""
    revision = registry.put(key(PUMPS, pump.node_id), encode(pump), 0)
    assert revision is not None
    for drainer in nodes(registry, DRAINERS):
        if drainer.state == "online":
            try:
                notify(drainer.host, pause, security)
            except grpc.RpcError as error:
                registry.put(key(PUMPS, pump.node_id), encode(replace(pump, state="offline")), revision)
                raise NotNotified(f"{drainer.node_id}: {error.code().name}: {error.details()}") from error


def _channel(address: str, security: Security) -> grpc.Channel:
    options = [("grpc.enable_http_proxy", 0)]
    credentials = security.credentials()
    if credentials is None:
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(address, credentials, options)


def notify(address: str, pause: Callable[[float], None], security: Security = PLAIN) -> None:
    """Call Notify. Raises the last error."""
    method = CISTERN["Notify"]
    with _channel(address, security) as channel:
        call = channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        for tried in range(TRIES):
            try:
                call(method.request(), timeout=TOTAL_SECONDS)
            except grpc.RpcError:
                if tried == TRIES - 1:
                    raise
                pause(2.0**tried)
            else:
                return
