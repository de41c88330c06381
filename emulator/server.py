"""One gRPC server that can stop and restart on its port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import grpc
from grpc import aio

from ..codec.proto import Message, Method

OPTIONS = (
    ("grpc.so_reuseport", 0),  # a port in use must fail, not be shared
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.http2.max_ping_strikes", 0),  # as in TiKV: clients may send keepalive pings at any rate
)


RpcMethodHandler: TypeAlias = "grpc.RpcMethodHandler[Message, Message]"
Context: TypeAlias = "aio.ServicerContext[Message, Message]"
Behaviour: TypeAlias = Callable[[Any, Context], Awaitable[Message]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """PEM files. Clients must have a certificate that the CA signed, as in a real cluster."""

    ca_path: Path
    cert_path: Path
    key_path: Path

    def credentials(self) -> grpc.ServerCredentials:
        pair = (self.key_path.read_bytes(), self.cert_path.read_bytes())
        return grpc.ssl_server_credentials([pair], self.ca_path.read_bytes(), require_client_auth=True)


class Server:
    """A server with handlers by call path; the port is chosen at the first start and then kept."""

    def __init__(
        self, handlers: Mapping[str, RpcMethodHandler], *, host: str, port: int = 0, tls: Tls | None = None
    ) -> None:
        self._handlers = handlers
        self._host = host
        self._port = port
        self._tls = tls
        self._server: aio.Server | None = None

    @property
    def address(self) -> str:
        """The server's host:port, also while it is stopped."""
        return f"{self._host}:{self._port}"

    @property
    def up(self) -> bool:
        return self._server is not None

    async def start(self) -> None:
        server = aio.server(options=OPTIONS)
        server.add_generic_rpc_handlers((_Handlers(self._handlers),))
        if self._tls is None:
            self._port = server.add_insecure_port(self.address)
        else:
            self._port = server.add_secure_port(self.address, self._tls.credentials())
        await server.start()
        self._server = server

    async def stop(self) -> None:
        """Close the port and end every call."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(None)


Serve: TypeAlias = Callable[..., Server]
"""Makes a Server from its arguments."""


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    def __init__(self, handlers: Mapping[str, RpcMethodHandler]) -> None:
        self._handlers = handlers

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> RpcMethodHandler | None:
        return self._handlers.get(handler_call_details.method)


def unary(method: Method, behaviour: Behaviour) -> RpcMethodHandler:
    """Return a handler of `async behaviour(request, context) -> response`."""
    return grpc.unary_unary_rpc_method_handler(
        behaviour, method.request.FromString, method.response.SerializeToString
    )


def stream(
    method: Method, behaviour: Callable[[AsyncIterator[Any], Any], Awaitable[None]], *, raw: bool = False
) -> RpcMethodHandler:
    """Return a handler of `async behaviour(requests, context)`, which writes; messages are bytes if `raw`."""
    serialize = None if raw else method.response.SerializeToString
    return grpc.stream_stream_rpc_method_handler(behaviour, method.request.FromString, serialize)


def unary_stream(
    method: Method, behaviour: Callable[[Any, Any], Awaitable[None]], *, raw: bool = False
) -> RpcMethodHandler:
    """Return a handler of `async behaviour(request, context)`, which writes; messages are bytes if `raw`."""
    serialize = None if raw else method.response.SerializeToString
    return grpc.unary_stream_rpc_method_handler(behaviour, method.request.FromString, serialize)
