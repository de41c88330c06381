"""gRPC servers that answer as a test tells them, for what the emulator never says."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from grpc import aio

from tidemill.codec.proto import PD, Method, pdpb
from tidemill.puller.grpc.loop import LoopThread


class Scripted(grpc.GenericRpcHandler):
    """A gRPC server whose calls are functions of the request; what they raise as Abort is the status."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[Any], Any]] = {}
        self.requests: list[Any] = []
        self.metadata: list[tuple[str, str]] = []
        """Metadata of the last call."""
        self.address = ""
        self._methods: dict[str, Method] = {}

    def on(self, method: Method, answer: Callable[[Any], Any]) -> None:
        self._methods[method.path] = method
        self.answers[method.path] = answer

    def service(self, details: Any) -> Any:
        method = self._methods.get(details.method)
        self.metadata = [tuple(pair) for pair in details.invocation_metadata or ()]
        if method is None:
            return None
        codec = (method.request.FromString, method.response.SerializeToString)
        if method.client_streaming:
            return grpc.stream_stream_rpc_method_handler(self._streamed(method), *codec)
        return grpc.unary_unary_rpc_method_handler(self._called(method), *codec)

    def _called(self, method: Method) -> Any:
        async def called(request: Any, context: Any) -> Any:
            return await self._answer(method, request, context)

        return called

    def _streamed(self, method: Method) -> Any:
        async def streamed(requests: Any, context: Any) -> Any:
            async for request in requests:
                answer = await self._answer(method, request, context)
                if answer is None:
                    return
                await context.write(answer)

        return streamed

    async def _answer(self, method: Method, request: Any, context: Any) -> Any:
        self.requests.append(request)
        try:
            answer = self.answers[method.path](request)
            return await answer if inspect.isawaitable(answer) else answer
        except Abort as abort:
            return await context.abort(abort.code, abort.message)


class Abort(Exception):
    def __init__(self, code: grpc.StatusCode, message: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@contextmanager
def served(*servers: Scripted, credentials: Any = None) -> Iterator[asyncio.AbstractEventLoop]:
    """Each on a free port of loopback; their loop."""
    loop = LoopThread("scripted servers")
    loop.start()
    running: list[Any] = []

    async def start() -> None:
        for scripted in servers:
            server = aio.server()
            server.add_generic_rpc_handlers((scripted,))
            if credentials is None:
                port = server.add_insecure_port("127.0.0.1:0")
            else:
                port = server.add_secure_port("127.0.0.1:0", credentials)
            scripted.address = f"127.0.0.1:{port}"
            await server.start()
            running.append(server)

    async def stop() -> None:
        for server in running:
            await server.stop(None)

    try:
        loop.run(start(), 30)
        yield loop.loop
    finally:
        loop.run(stop(), 30)
        loop.stop()


class ScriptedPd(Scripted):
    """A PD with one member, itself, until a test says otherwise."""

    def __init__(self, cluster_id: int = 7) -> None:
        super().__init__()
        self.cluster_id = cluster_id
        self.members = lambda: [self]
        self.leader = lambda: self
        self.on(PD["GetMembers"], self._get_members)

    def header(self, **error):
        header = pdpb.ResponseHeader(cluster_id=self.cluster_id)
        if error:
            header.error.CopyFrom(pdpb.Error(**error))
        return header

    def _get_members(self, request):
        leader = self.leader()
        return pdpb.GetMembersResponse(
            header=self.header(),
            members=[pdpb.Member(client_urls=[f"http://{member.address}"]) for member in self.members()],
            leader=leader and pdpb.Member(client_urls=[f"http://{leader.address}"]),
        )


def silent_address() -> str:
    """Return the address of a server that has just stopped."""
    gone = Scripted()
    with served(gone):
        pass
    return gone.address
