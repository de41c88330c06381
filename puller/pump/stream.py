"""One stream of binlogs from a pump."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from grpc import aio
from msgspec import Struct

from ...actors import PooledRef
from ...codec.proto import PUMP, binlog
from ...errors import SourceError
from ...events import Ts
from ..grpc.channel import CallFailed, Channels
from ..tikv.feed.backlog import Backlog

_METHOD: Final = PUMP["PullBinlogs"]
_OTHER_CLUSTER: Final = "cluster ID are mismatch"
"""Words of a pump that belongs to another cluster."""


class BinlogsArrived(Struct, frozen=True):
    """To the PumpPuller: the stream has messages."""

    stream: PumpStream


class Ended(Struct, frozen=True):
    """To the PumpPuller: the stream has ended, after its last messages."""

    stream: PumpStream
    error: CallFailed | SourceError | None


class PumpStream:
    """Receives messages and keeps them, unparsed, until its PumpPuller takes them."""

    def __init__(
        self,
        channels: Channels,
        cluster_id: int,
        address: str,
        last: Ts,
        compression: str,
        puller: PooledRef[BinlogsArrived | Ended],
    ) -> None:
        """Everything above `last` is pulled."""
        self.address = address
        self.last = last
        self.failed = False
        """True once the PumpPuller has seen its end."""
        self._channels = channels
        self._cluster_id = cluster_id
        self._compression = compression
        self._puller = puller
        self._messages: deque[bytes] = deque()
        self._backlog: Backlog | None = None
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False

    def take(self) -> list[bytes]:
        """Return the messages that have arrived. Called in the PumpPuller's turns."""
        messages, taken = self._messages, []
        while messages:
            taken.append(messages.popleft())
        if taken and self._backlog is not None:
            self._backlog.done(sum(map(len, taken)))
        return taken

    def cancel(self) -> None:
        """End the stream. In the loop's thread."""
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """Receive until the stream ends. In the loop's thread."""
        if self._cancelled:
            return
        self._task = asyncio.current_task()
        self._backlog = Backlog()
        error = await self._receive(self._backlog)
        self._puller.post(Ended(self, error))

    async def _receive(self, backlog: Backlog) -> CallFailed | SourceError | None:
        request = binlog.PullBinlogReq(clusterID=self._cluster_id, startFrom=binlog.Pos(offset=self.last))
        try:
            call = self._channels.pull(self.address, _METHOD, request, compression=self._compression)
        except CallFailed as error:
            return error
        messages, arrived, inbox = self._messages, BinlogsArrived(self), self._puller.actor_inbox
        try:
            while isinstance(data := await call.read(), bytes):
                await backlog.add(len(data))
                messages.append(data)
                if len(messages) == 1:
                    inbox.post(arrived)
        except aio.AioRpcError as error:
            details = error.details() or ""
            if _OTHER_CLUSTER in details:
                return SourceError(
                    f"the pump at {self.address} belongs to another cluster than PD ({details}): check the"
                    " addresses of the pumps and of PD"
                )
            return self._channels.failure(self.address, _METHOD, error)
        finally:
            call.cancel()
        return None
