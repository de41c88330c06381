"""Timestamps of PD's oracle."""

from __future__ import annotations

import asyncio
from typing import Final

import grpc
from grpc import aio

from ....codec.proto import PD, pdpb
from ....errors import Retryable, SourceError, TidemillError
from ....events import LOGICAL_BITS, Ts
from ...grpc.channel import CallFailed, Channels
from .members import Members

MAX_BATCH: Final = 10_000
"""Maximum number of timestamps per request, as in PD's own client."""


class TimestampOracle:
    """Batches timestamp requests on one stream to PD's leader: calls made during a request go into the next
    one."""

    def __init__(self, members: Members, channels: Channels, timeout_seconds: float) -> None:
        self._members = members
        self._channels = channels
        self._timeout_seconds = timeout_seconds
        self._waiting: list[asyncio.Future[Ts]] = []
        self._server: asyncio.Task[None] | None = None
        self._stream: aio.StreamStreamCall[pdpb.TsoRequest, pdpb.TsoResponse] | None = None
        self._address = ""
        self._last: Ts = 0

    async def get(self) -> Ts:
        """Return a timestamp above every one returned before.

        Raises Retryable if PD doesn't answer; SourceError if its clock has gone back.
        """
        future: asyncio.Future[Ts] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        if self._server is None:
            self._server = asyncio.create_task(self._serve(), name="timestamps")
        return await future

    async def close(self) -> None:
        """Close the stream and cancel waiting calls."""
        if self._server is not None:
            self._server.cancel()
            await asyncio.wait([self._server])
        self._drop()

    async def _serve(self) -> None:
        batch: list[asyncio.Future[Ts]] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
                await self._answer([future for future in batch if not future.done()])
        finally:
            self._server = None
            for future in [*batch, *self._waiting]:
                future.cancel()  # none is left unless this task was cancelled
            self._waiting = []

    async def _answer(self, batch: list[asyncio.Future[Ts]]) -> None:
        if not batch:
            return
        try:
            stamps = await self._members.at_leader(lambda address: self._ask(address, len(batch)))
        except TidemillError as error:
            for future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for future, ts in zip(batch, stamps, strict=True):
            if not future.done():
                future.set_result(ts)

    async def _ask(self, address: str, count: int) -> range:
        if self._stream is None or self._address != address:
            self._drop()
            self._stream, self._address = self._channels.stream(address, PD["Tso"]), address
        try:
            answer = await self._exchange(self._stream, count)
            self._members.check_cluster(address, answer.header)
            return self._stamps(address, count, answer)
        except BaseException:  # a stream with an unanswered request can't be used again
            self._drop()
            raise

    async def _exchange(
        self, stream: aio.StreamStreamCall[pdpb.TsoRequest, pdpb.TsoResponse], count: int
    ) -> pdpb.TsoResponse:
        request = pdpb.TsoRequest(header=self._members.header(), count=count)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await stream.write(request)
                answer = await stream.read()
        except aio.AioRpcError as error:
            raise self._channels.failure(self._address, PD["Tso"], error) from error
        except (TimeoutError, asyncio.InvalidStateError) as error:
            raise self._silent("no answer in time") from error
        if not isinstance(answer, pdpb.TsoResponse):  # the end of the stream
            raise self._silent("the stream was closed")
        return answer

    def _stamps(self, address: str, count: int, answer: pdpb.TsoResponse) -> range:
        """Return the timestamps of an answer, which contains the last of them."""
        if answer.header.error.type != pdpb.ErrorType.OK:
            raise Retryable(f"{address}: Tso: {answer.header.error.message}")
        stamp = answer.timestamp
        if answer.count != count:
            raise Retryable(f"{address}: Tso: {answer.count} timestamps instead of {count}")
        last = (stamp.physical << LOGICAL_BITS) + stamp.logical
        step = 1 << stamp.suffix_bits
        first = last - (count - 1) * step
        if first <= self._last:
            raise SourceError(
                f"PD at {address} gave timestamp {first} after {self._last}: its clock went back"
            )
        self._last = last
        return range(first, last + 1, step)

    def _silent(self, what: str) -> CallFailed:
        return CallFailed(f"{self._address}: Tso: {what}", self._address, grpc.StatusCode.UNAVAILABLE)

    def _drop(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None
