"""A cluster whose change feed is a recording: each registration is answered with prepared bytes.

For benchmarks of a reader at full speed: nothing is scanned or serialized while it runs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from grpc import aio
from msgspec import Struct

from ..codec.proto import cdcpb
from ..events import Ts
from .change_data import ChangeData
from .cluster import Cluster
from .event_bytes import framed, resolved_message, rows_event
from .percolator import INITIALIZED, Row
from .scan import chunks
from .store import TikvStore


class Recording(Struct, frozen=True):
    """The messages of one region in order, then its resolved ts."""

    messages: list[list[bytes]]
    """The serialized Events of each ChangeDataEvent, without a request id."""
    resolved_ts: Ts


def record(
    region: int,
    rows: Iterable[Row],
    *,
    resolved_ts: Ts,
    rows_per_event: int = 128,
    events_per_message: int = 1,
    old_values: bool = True,
) -> Recording:
    """Record rows as a region would send them after an empty scan."""
    parts = chunks(iter(rows), rows_per_event, 6 << 20)
    events = [rows_event(region, [Row(INITIALIZED, b"", 0)], old_values=False)]
    events += [rows_event(region, part, old_values=old_values) for part in parts if part]
    step = events_per_message
    messages = [events[at : at + step] for at in range(0, len(events), step)]
    return Recording(messages, resolved_ts)


class RecordedFeed(ChangeData):
    """Plays recordings, with those of several regions interleaved; a region without one stays silent."""

    def __init__(self, recordings: Mapping[int, Recording], *arguments: Any) -> None:
        super().__init__(*arguments)
        self._recordings = recordings

    def resolve(self, now: Ts, held: dict[int, Ts]) -> None:
        """Do nothing: recordings contain their resolved ts."""

    async def _serve(
        self,
        requests: AsyncIterator[cdcpb.ChangeDataRequest],
        context: aio.ServicerContext[cdcpb.ChangeDataRequest, bytes],
        *,
        multiplexing: bool,
    ) -> None:
        playing: deque[Iterator[bytes]] = deque()
        wake = asyncio.Event()
        reader = asyncio.ensure_future(self._listen(requests, playing, wake, multiplexing))
        try:
            while True:
                if not playing:
                    wake.clear()
                    await wake.wait()
                message = next(playing[0], None)
                if message is None:
                    playing.popleft()
                    continue
                playing.rotate(-1)
                await context.write(message)
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _listen(
        self,
        requests: AsyncIterator[cdcpb.ChangeDataRequest],
        playing: deque[Iterator[bytes]],
        wake: asyncio.Event,
        multiplexing: bool,
    ) -> None:
        async for request in requests:
            recording = self._recordings.get(request.region_id)
            if recording is not None and request.WhichOneof("request") != "deregister":
                playing.append(_played(recording, request, multiplexing))
                wake.set()


def _played(recording: Recording, request: cdcpb.ChangeDataRequest, multiplexing: bool) -> Iterator[bytes]:
    for events in recording.messages:
        yield b"".join([framed(event, request.request_id) for event in events])
    stream = request.request_id if multiplexing else 0
    yield resolved_message([request.region_id], recording.resolved_ts, stream)


class RecordedCluster(Cluster):
    """A cluster with ordinary PD, stores and regions; only the change feed is played back.

    `recordings`, by region id, may be filled until the first registration.
    """

    def __init__(self, stores: int = 3, **options: Any) -> None:
        self.recordings: dict[int, Recording] = {}
        super().__init__(stores, **options)

    def _store(self, number: int) -> TikvStore:
        feed = partial(RecordedFeed, self.recordings)
        return TikvStore(
            number,
            self.keyspace,
            self.options,
            self._apply,
            self.resolved,
            self.injected.take,
            feed=feed,
        )
