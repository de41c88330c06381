"""The actor that processes everything a store sends."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain, islice, repeat
from typing import Any, Final, TypeAlias, assert_never

from msgspec import Struct

from ....actors import PooledActor, PooledRef
from ....codec.proto.change_data import ChangeData, DecodeError, read
from ....errors import SourceError
from ....events import Ts
from ....failpoint import reach
from ..match.spill import PrewriteMemory as Spill
from .advance import DirtySet, Noted, Pending, Tick
from .messages import EventReceived, Forget, Registered, StreamEnded
from .options import EventFeedOptions
from .region_events import Payload, RegionEvents, forget, forget_all
from .reports import Lost, RegionReports
from .request import Request
from .request_group import RequestGroup
from .shard_worker import Arrive, ShardBarrier, ShardEvents, ShardMessage, ShardWorker, spread
from .store_stream import StoreStream

STEP_REGIONS: Final = 2048
"""Regions whose resolved ts is processed in one turn: about 1 ms."""


class _Step(Struct, frozen=True):
    """To itself: continue processing resolved ts."""


class WorkerCounts:
    """Counts of a region worker; written in its turns only, read from any thread."""

    __slots__ = ("shared", "stale")

    def __init__(self) -> None:
        self.stale = 0
        """Events dropped because their region isn't requested, or their request is outdated."""
        self.shared = 0
        """Number of times it began to share its work with its shard workers."""


WorkerMessage: TypeAlias = EventReceived | Registered | StreamEnded | Forget | Tick | _Step


class RegionWorker(PooledActor[WorkerMessage | None]):
    """Parses a store's messages and sends each subscription its changes (TiCDC puller document).

    Resolved ts are only noted on arrival, at C speed for whole batches, and processed when the Advancer asks:
    270,000 regions send one every second.

    Above the high-water mark of its mailbox it passes the regions' events to shard workers, until the
    low-water mark. A region always has the same shard worker, so its events stay in order. Before the region
    worker takes over again it waits for the shard workers to finish.
    """

    def __init__(
        self,
        store_id: int,
        reports: RegionReports,
        dirty: DirtySet,
        spill: Spill,
        options: EventFeedOptions,
        counts: WorkerCounts,
    ) -> None:
        self._store_id = store_id
        self._reports = reports
        self._options = options
        self._dirty = dirty
        self._events = RegionEvents(self, reports, dirty)
        self._quotas = [spill.quota() for _ in range(options.shard_workers)]
        self._streams: dict[StoreStream, None] = {}
        self._shard_workers: list[PooledRef[ShardMessage]] = []
        self._barrier = ShardBarrier(f"{self.name}: its shard workers")
        self.sharing = False
        """True while the shard workers process the events."""
        self._counts = counts
        self._todo: deque[WorkerMessage] = deque()
        self._announced = False
        """True if the Advancer was told that resolved ts are pending."""
        self._looked = self.clock.now()
        self._messages = 0
        self._weight = 1
        self._steps: Iterator[tuple[RequestGroup, tuple[int, Ts]]] = iter(())

    def on_receive(self, message: WorkerMessage | None) -> None:
        """None resumes the work that was postponed while output was on its way: nothing is processed before
        it."""
        todo = self._todo
        if message is not None:
            todo.append(message)
        while todo:
            self._handle(todo.popleft())
            self._events.flush()
            if self.actor_inbox.outbox is not None:
                break
        if todo:
            self.post(None)

    def on_stop(self) -> None:
        self._release()

    def on_failure(self, *_exc_info: Any) -> None:
        self._release()

    def _release(self) -> None:
        for shard in self._shard_workers:
            shard.stop(block=False)
        for quota in self._quotas:
            quota.close()

    def _handle(self, message: WorkerMessage) -> None:
        match message:
            case EventReceived():
                self._receive(message)
            case Registered(stream, request):
                self._streams[stream] = None
                self._group(stream, request.request_id).regions[request.id] = request
            case StreamEnded() | Forget() if self.sharing:
                self._take_over(message)
            case Forget(stream, request):
                forget(self._group(stream, request.request_id), request)
            case StreamEnded(stream, action):
                self._streams.pop(stream, None)
                self._reports.put(Lost(stream, forget_all([*stream.groups.values()]), action))
                stream.groups.clear()
            case Tick():
                self._look()
            case _Step():
                self._step()
            case _:
                assert_never(message)

    # --- events ----------------------------------------------------------------------------------

    def _receive(self, received: EventReceived) -> None:
        if self._mode_changes(received):
            return
        stream, data = received.stream, received.data
        reach("tikv.batch_read")
        try:
            message = read(data)
        except DecodeError as error:
            raise SourceError(f"store {self._store_id} sent bytes that aren't a ChangeDataEvent") from error
        if self.sharing:
            self._share(received, message)
        else:
            self._take(stream, message)
            if received.backlog is not None:
                received.backlog.done(len(data))
        resolved = message.resolved
        if resolved is not None:
            self._group(stream, resolved.request_id).note(resolved)
            self._messages += 1
            self._announce()

    def _take(self, stream: StoreStream, message: ChangeData) -> None:
        for group, request, payload in self._current(stream, message):
            if request.id in group.pending:
                self._advance_first(group, request)
            self._events.take(group, request, payload, self._quotas[request.id % len(self._quotas)])

    def _current(
        self, stream: StoreStream, message: ChangeData
    ) -> Iterator[tuple[RequestGroup, Request, Payload]]:
        """Yield rows and errors of current requests; resolved ts are noted, the rest is counted and
        dropped."""
        for region_id, request_id, payload in message.events:
            group = self._group(stream, request_id)
            request = group.regions.get(region_id)
            if request is None or request.request_id != request_id:
                self._counts.stale += 1
                continue
            if isinstance(payload, int):
                self._note(group, region_id, payload)
                continue
            if not request.initialised:
                group.settle()
            yield group, request, payload

    def _advance_first(self, group: RequestGroup, request: Request) -> None:
        """Apply the region's noted resolved ts before its next event; but none that was received before the
        end of its scan."""
        self._events.flush()
        ts = group.pending.pop(request.id)
        if self.actor_inbox.outbox is None:
            self._events.advance([(request, ts)], 1)
        elif request.initialised:
            group.pending[request.id] = ts

    def _share(self, received: EventReceived, message: ChangeData) -> None:
        left = len(received.data)
        parts: list[list[Any]] = [[] for _ in self._shard_workers]
        for group, request, payload in self._current(received.stream, message):
            parts[request.id % len(parts)].append((group, request, payload))
        share = left // len(parts)
        for shard, part in zip(self._shard_workers, parts, strict=True):
            if part:
                left -= share
                self.send(shard, ShardEvents(part, share, received.backlog))
        if received.backlog is not None:
            received.backlog.done(left)

    def _group(self, stream: StoreStream, request_id: int) -> RequestGroup:
        key = request_id if stream.multiplexing else 0
        group = stream.groups.get(key)
        if group is None:
            group = stream.groups[key] = RequestGroup()
        return group

    # --- sharing the work ------------------------------------------------------------------------

    def _mode_changes(self, message: EventReceived) -> bool:
        """True if the message must wait until the shard workers are done."""
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
        self._events.flush()  # before the output of the shard workers
        if not self._shard_workers:
            self._shard_workers = [
                self.system.spawn(
                    ShardWorker,
                    self._reports,
                    self._dirty,
                    quota,
                    self._barrier,
                    capacity=self._options.mailbox,
                    name=f"{self.name}, shard worker {number}",
                    supervisor=self.actor_inbox.supervisor,
                )
                for number, quota in enumerate(self._quotas)
            ]

    def _take_over(self, message: WorkerMessage) -> None:
        """Wait for the shard workers, then process the message."""
        self.sharing = False
        self._barrier.shut(len(self._shard_workers))
        for shard in self._shard_workers:
            self.send(shard, Arrive(self._barrier))
        self.send(self._barrier, None)
        self._todo.appendleft(message)

    # --- resolved ts -----------------------------------------------------------------------------

    def _note(self, group: RequestGroup, region_id: int, ts: Ts) -> None:
        group.settle()
        group.pending[region_id] = ts
        self._announce()

    def _announce(self) -> None:
        if not self._announced and self._dirty.reader is not None:
            self._announced = True
            self._dirty.reader.post(Pending(self.actor_ref))

    def _look(self) -> None:
        self._announced = False
        groups = [group for stream in self._streams for group in stream.groups.values()]
        self._steps = chain.from_iterable(
            [zip(repeat(group), group.drain(), strict=False) for group in groups]
        )
        now = self.clock.now()
        self._weight = max(1, min(int(now - self._looked), self._messages))
        self._looked, self._messages = now, 0
        self._step()

    def _step(self) -> None:
        pairs = []
        taken = 0
        for group, (region_id, ts) in islice(self._steps, STEP_REGIONS):
            taken += 1
            request = group.regions.get(region_id)
            if request is not None:
                pairs.append((request, ts))
        if self.sharing:
            parts = spread(len(self._shard_workers), pairs, self._weight)
            for shard, part in zip(self._shard_workers, parts, strict=True):
                if part is not None:
                    self.send(shard, part)
        else:
            self._events.advance(pairs, self._weight)
        if taken == STEP_REGIONS:
            self.post(_Step())
        elif self._dirty.reader is not None:
            self._dirty.reader.post(Noted(self.actor_ref))
