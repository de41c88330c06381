"""Loops and connections of gRPC clients, as an argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

import grpc
from grpc import aio

from .loop import LoopThread


class Transport(Protocol):
    """Where a client runs, and how it connects."""

    def loop(self, on_error: Callable[[BaseException], None]) -> LoopThread:
        """Return the client's loop, not started yet."""

    def random(self) -> Random:
        """Return the source of the client's pauses."""

    def dial(
        self, address: str, credentials: grpc.ChannelCredentials | None, options: Sequence[tuple[str, int]]
    ) -> aio.Channel:
        """Return a connection to "host:port", without TLS if there are no credentials. In the loop's
        thread."""


class Sockets:
    """gRPC over TCP; all clients share one loop."""

    def loop(self, on_error: Callable[[BaseException], None]) -> LoopThread:
        return LoopThread(on_error=on_error, is_shared=True)

    def random(self) -> Random:
        return Random()

    def dial(
        self, address: str, credentials: grpc.ChannelCredentials | None, options: Sequence[tuple[str, int]]
    ) -> aio.Channel:
        if credentials is None:
            return aio.insecure_channel(address, options)
        return aio.secure_channel(address, credentials, options)


SOCKETS = Sockets()
