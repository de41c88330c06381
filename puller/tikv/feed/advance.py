"""Resolved ts from the region workers to the SpanPullers, at a pace that bounds the cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from threading import Lock
from typing import Final, TypeAlias, assert_never, cast

from msgspec import Struct

from ....actors import PooledActor, PooledRef
from ....codec.blocks import NOTHING
from ....events import Ts
from ..span import Span
from .options import EventFeedOptions
from .request import Subscription
from .span_puller import Pulled, SpanProgress, SpanPuller

STEP_SUBSCRIPTIONS: Final = 1024
"""Subscriptions advanced in one turn: about 2 ms."""
LATE_SECONDS: Final = 1.0
"""Maximum wait for a region worker that is delayed by a slow table."""
REST: Final = 10
"""Length of the pause after a round, as a multiple of the round's length."""
SHARED_TICK_SECONDS: Final = 0.002
"""Minimum pause for each feed of the process: all of them together make up to 500 rounds a second."""


class Tick(Struct, frozen=True):
    """To a pending region worker: process the resolved ts received, and answer with Noted."""


class Pending(Struct, frozen=True):
    """From a region worker, once before each Tick: it has received resolved ts."""

    worker: PooledRef[Tick]


class Noted(Struct, frozen=True):
    worker: PooledRef[Tick]


class Moved(Struct, frozen=True):
    """To the Advancer: the dirty set is no longer empty."""


class _Begin(Struct, frozen=True):
    """To itself: the pause is over."""


class _Late(Struct, frozen=True):
    """To itself: stop waiting for the region workers."""

    round: int


class _Step(Struct, frozen=True):
    """To itself: continue advancing subscriptions."""


class _Rest(Struct, frozen=True):
    """To itself, after all messages of the round."""


Advance: TypeAlias = Callable[[Mapping[SpanProgress, Ts]], None]
Message: TypeAlias = Pending | Noted | Moved | _Begin | _Late | _Step | _Rest


class DirtySet:
    """Subscriptions with regions that have advanced, in this order. Thread-safe.

    A request's resolved ts changes only when all its changes at or below it are in its SpanPuller's mailbox.
    So code that finds the subscription here may send the SpanPuller the ts that the requests then have.
    """

    def __init__(self) -> None:
        self.reader: PooledRef[Pending | Noted | Moved] | None = None
        self._lock = Lock()
        self._moved: dict[Subscription, None] = {}

    def put(self, moved: dict[Subscription, None]) -> None:
        with self._lock:
            first = not self._moved
            self._moved |= moved
        if first and moved and self.reader is not None:
            self.reader.post(Moved())

    def take(self) -> dict[Subscription, None]:
        with self._lock:
            moved, self._moved = self._moved, {}
        return moved


class Advancer(PooledActor[Message]):
    """Advances the resolved ts of all tables of a feed, in rounds that bound the cost for 100,000 tables.

    A round asks the region workers to process the resolved ts they received, sends each SpanPuller the
    resolved ts of its regions once, and is followed by a pause ten times as long as it took.

    An idle SpanPuller has sent all its changes, so its table's resolved ts may be passed to the sorter
    directly, in one call with those of all other idle tables.
    """

    def __init__(
        self,
        dirty: DirtySet,
        options: EventFeedOptions,
        advance: Advance | None = None,
        feeds: Callable[[], int] = lambda: 1,
    ) -> None:
        """`advance` passes on the resolved ts of many tables, after everything that was sent to their
        writers. `feeds` returns the number of feeds that share the threads."""
        self._feeds = feeds
        self._dirty = dirty
        self._advance = advance
        self._options = options
        self._pending: dict[PooledRef[Tick], None] = {}
        self._asked: dict[PooledRef[Tick], None] = {}
        self._round = 0
        self._busy = False
        self._left: Iterator[Subscription] = iter(())
        self._full: dict[Subscription, None] = {}
        """Backlogged subscriptions, oldest first; served first in the next round to prevent starvation if
        there is room for only some of a table's subscriptions."""
        self._advanced: dict[SpanProgress, Ts] = {}
        self._moved = False
        self._began = self._ended = self.clock.now()
        self.pause = options.least_tick_seconds

    def on_receive(self, message: Message) -> None:
        match message:
            case Pending(worker):
                self._pending[worker] = None
                self._wake()
            case Moved():
                self._moved = True
                self._wake()
            case _Begin():
                self._begin()
            case Noted(worker):
                self._noted(worker)
            case _Late(number):
                if number == self._round and self._asked:
                    self._asked.clear()
                    self._tell()
            case _Step():
                self._step()
            case _Rest():
                self._rest()
            case _:
                assert_never(message)

    def _wake(self) -> None:
        if not self._busy:
            self._busy = True
            self.after(max(0.0, self._ended + self.pause - self.clock.now()), _Begin())

    def _begin(self) -> None:
        self._began = self.clock.now()
        self._round += 1
        self._moved = False
        self._asked, self._pending = self._pending, {}
        for worker in self._asked:
            worker.post(Tick())
        if self._asked:
            self.after(LATE_SECONDS, _Late(self._round))
        else:
            self._tell()

    def _noted(self, worker: PooledRef[Tick]) -> None:
        if self._asked.pop(worker, self) is None and not self._asked:
            self._tell()

    def _tell(self) -> None:
        late, self._full = {each: None for each in self._full if not each.stopped}, {}
        self._left = iter(late | self._dirty.take())
        self._step()

    def _step(self) -> None:
        told = 0
        for subscription in islice(self._left, STEP_SUBSCRIPTIONS):
            told += 1
            resolved = [
                (request.id, request.span, request.resolved_ts)
                for request in subscription.requests.copy()
                if request.initialised
            ]
            if not resolved:
                continue
            if self._passes(subscription, resolved):
                continue
            # Not send(): one delayed table must not delay the others. It is advanced in the next round.
            if not subscription.ref.offer(Pulled(NOTHING, resolved)):
                self._full[subscription] = None
        if told == STEP_SUBSCRIPTIONS:
            self.post(_Step())
            return
        advanced, self._advanced = self._advanced, {}
        if advanced and self._advance is not None:
            self._advance(advanced)
        self.post(_Rest())

    def _passes(self, subscription: Subscription, resolved: list[tuple[int, Span, Ts]]) -> bool:
        """Advance an idle SpanPuller directly; False if it isn't idle, or `advance` isn't used for it."""
        inbox = subscription.ref.actor_inbox
        if self._advance is None or not inbox.claim():
            return False
        try:
            puller = cast("SpanPuller", inbox.actor)
            if not puller.progress.table_id:
                return False
            if ts := puller.advance(resolved):
                self._advanced[puller.progress] = ts
        finally:
            inbox.release()
        return True

    def _rest(self) -> None:
        self._ended = self.clock.now()
        options = self._options
        took = self._ended - self._began
        longest = options.most_tick_seconds - took  # on a machine that is busy with other work too
        least = max(options.least_tick_seconds, SHARED_TICK_SECONDS * self._feeds())
        self.pause = max(least, min(REST * took, longest))
        self._busy = False
        if self._pending or self._moved or self._full:
            self._wake()
