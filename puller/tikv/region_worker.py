"""The actor through which everything of one store goes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice, repeat
from typing import Any, Final

from google.protobuf.message import DecodeError
from msgspec import Struct

from ...actors import PooledActor, PooledRef
from ...codec.proto.columns import ChangeData, Resolved
from ...errors import SourceError
from ...events import Ts
from .feed_options import FeedOptions
from .handles import Arrive, Barrier, Handle, Shared, spread
from .lane import Lane
from .messages import Ended, Forget, Received, Registered
from .region_events import RegionEvents, forget, forget_all
from .reports import Lost, Reports
from .spill import Shared as Spill
from .store_stream import StoreStream

STEP_REGIONS: Final = 2048
"""Looked at in one turn when resolved ts are passed on: about a millisecond."""


class _Tick(Struct, frozen=True):
    """To itself: pass resolved ts on."""


class _Step(Struct, frozen=True):
    """To itself: go on passing them on."""


class _Ticked(Struct, frozen=True):
    """To itself, behind all that was passed on."""


class Counts:
    """Of a region worker; written in its turns only, read anywhere."""

    __slots__ = ("shared", "stale")

    def __init__(self) -> None:
        self.stale = 0
        """Events dropped: of regions that aren't asked for, or of a former request."""
        self.shared = 0
        """How often it began to share its work with its handles."""


class RegionWorker(PooledActor):
    """Takes a store's messages apart and sends each subscription its changes (TiCDC puller document).

    How far regions are is only noted when it comes, at C speed for whole batches, and passed on by a tick
    that comes the more seldom the longer it takes: with 270,000 regions a store says so every second.

    Above the high water mark of its mailbox it leaves the regions' events to handles, down to the low
    one. A region's handle is always the same, so its events stay in order; when the worker takes over again
    it waits until the handles are done.
    """

    def __init__(
        self, store_id: int, reports: Reports, spill: Spill, options: FeedOptions, counts: Counts
    ) -> None:
        self._store_id = store_id
        self._reports = reports
        self._options = options
        self._events = RegionEvents(self, reports)
        self._quotas = [spill.quota() for _ in range(options.handles)]
        self._streams: dict[StoreStream, None] = {}
        self._handles: list[PooledRef[Handle]] = []
        self._barrier = Barrier(f"{self.name}: its handles")
        self.sharing = False
        """Whether the handles do the work."""
        self._counts = counts
        self._postponed: Any = None
        self._ticking = False
        self._pause = options.least_tick_seconds
        self._began = self._ended = self.clock.now()
        self._messages = 0
        self._weight = 1
        self._steps: Iterator[tuple[Lane, tuple[int, Ts]]] = iter(())

    def on_receive(self, message: Any) -> None:
        postponed, self._postponed = self._postponed, None
        if postponed is not None:
            self._handle(postponed)
        if message is not None:
            self._handle(message)
        self._events.flush()

    def on_stop(self) -> None:
        self._release()

    def on_failure(self, *_exc_info: Any) -> None:
        self._release()

    def _release(self) -> None:
        for handle in self._handles:
            handle.stop(block=False)
        for quota in self._quotas:
            quota.close()

    def _handle(self, message: Any) -> None:
        match message:
            case Received(stream, data):
                self._receive(stream, data)
            case Registered(stream, request):
                self._streams[stream] = None
                self._lane(stream, request.request_id).regions[request.id] = request
            case Ended() | Forget() if self.sharing:
                self._take_over(message)
            case Forget(stream, request):
                forget(self._lane(stream, request.request_id), request)
            case Ended(stream, action):
                self._streams.pop(stream, None)
                self._reports.put(Lost(stream, forget_all([*stream.lanes.values()]), action))
                stream.lanes.clear()
            case _Tick():
                self._tick()
            case _Step():
                self._step()
            case _Ticked():
                self._rest()

    # --- events ----------------------------------------------------------------------------------

    def _receive(self, stream: StoreStream, data: bytes) -> None:
        if self._mode_changes(Received(stream, data)):
            return
        try:
            message = ChangeData(data)
        except DecodeError as error:
            raise SourceError(f"store {self._store_id} sent what isn't a ChangeDataEvent") from error
        if self.sharing:
            self._share(stream, message)
        else:
            self._take(stream, message)
        resolved = message.resolved
        if resolved is not None:
            self._note(stream, resolved)

    def _take(self, stream: StoreStream, message: ChangeData) -> None:
        for region_id, request_id, payload in message.events():
            lane = self._lane(stream, request_id)
            request = lane.regions.get(region_id)
            if request is None or request.request_id != request_id:
                self._counts.stale += 1
                continue
            before = lane.pending.pop(region_id, None)
            if before is not None:
                self._events.advance([(request, before)], 1)
            self._events.take(lane, request, payload, self._quotas[region_id % len(self._quotas)])

    def _share(self, stream: StoreStream, message: ChangeData) -> None:
        parts: list[list[Any]] = [[] for _ in self._handles]
        for region_id, request_id, payload in message.events():
            lane = self._lane(stream, request_id)
            request = lane.regions.get(region_id)
            if request is None or request.request_id != request_id:
                self._counts.stale += 1
                continue
            parts[region_id % len(parts)].append((lane, request, payload))
        for handle, part in zip(self._handles, parts, strict=True):
            if part:
                self.send(handle, Shared(part))

    def _lane(self, stream: StoreStream, request_id: int) -> Lane:
        key = request_id if stream.multiplexing else 0
        lane = stream.lanes.get(key)
        if lane is None:
            lane = stream.lanes[key] = Lane()
        return lane

    # --- sharing the work ------------------------------------------------------------------------

    def _mode_changes(self, message: Received) -> bool:
        """Whether the message must wait until the handles are done."""
        depth = len(self.actor_inbox.messages)
        options = self._options
        if self.sharing:
            if depth <= options.low_water * options.mailbox:
                self._take_over(message)
                return True
        elif depth >= options.high_water * options.mailbox:
            self._begin_sharing()
        return False

    def _begin_sharing(self) -> None:
        self.sharing = True
        self._counts.shared += 1
        self._events.flush()  # before what the handles send
        if not self._handles:
            self._handles = [
                self.system.spawn(
                    Handle,
                    self._reports,
                    quota,
                    self._barrier,
                    capacity=self._options.mailbox,
                    name=f"{self.name}, handle {number}",
                    supervisor=self.actor_inbox.supervisor,
                )
                for number, quota in enumerate(self._quotas)
            ]

    def _take_over(self, message: Any) -> None:
        """Wait for the handles, and handle the message then."""
        self.sharing = False
        self._barrier.shut(len(self._handles))
        for handle in self._handles:
            self.send(handle, Arrive(self._barrier))
        self.send(self._barrier, None)
        self._postponed = message
        self.actor_inbox.post(None)

    # --- resolved ts -----------------------------------------------------------------------------

    def _note(self, stream: StoreStream, resolved: Resolved) -> None:
        lane = self._lane(stream, resolved.request_id)
        lane.pending.update(dict.fromkeys(resolved.regions, resolved.ts))
        self._messages += 1
        if not self._ticking:
            self._ticking = True
            self.after(max(0.0, self._ended + self._pause - self.clock.now()), _Tick())

    def _tick(self) -> None:
        self._began = self.clock.now()
        lanes = [lane for stream in self._streams for lane in stream.lanes.values() if lane.pending]
        parts = []
        for lane in lanes:
            pending, lane.pending = lane.pending, {}
            parts.append(zip(repeat(lane), list(pending.items())))
        self._steps = chain.from_iterable(parts)
        waited = int(self._began - self._ended)
        self._weight, self._messages = max(1, min(waited, self._messages)), 0
        self._step()

    def _step(self) -> None:
        pairs = []
        taken = 0
        for lane, (region_id, ts) in islice(self._steps, STEP_REGIONS):
            taken += 1
            request = lane.regions.get(region_id)
            if request is not None:
                pairs.append((request, ts))
        if self.sharing:
            for handle, part in zip(
                self._handles, spread(len(self._handles), pairs, self._weight), strict=True
            ):
                if part is not None:
                    self.send(handle, part)
        else:
            self._events.advance(pairs, self._weight)
        self.actor_inbox.post(_Step() if taken == STEP_REGIONS else _Ticked())

    def _rest(self) -> None:
        """The pause is ten times what it took until those who were told have had their turn."""
        self._ended = self.clock.now()
        options = self._options
        pause = 10 * (self._ended - self._began)
        self._pause = min(max(options.least_tick_seconds, pause), options.most_tick_seconds)
        self._ticking = any(lane.pending for stream in self._streams for lane in stream.lanes.values())
        if self._ticking:
            self.after(self._pause, _Tick())
