"""From actors to asyncio, or to a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from threading import Lock
from typing import Any, Generic, Self, TypeVar

import pykka

from .future import wake
from .mailbox import Mailbox, Waiter
from .ref import BlockedThread
from .statistics import StreamStatistics

T = TypeVar("T")


class StreamMailbox(Mailbox):
    """The mailbox of a Stream. `scheduled` is set unless the reader sleeps."""

    __slots__ = ("_arrival", "_low_water", "_wake")

    def __init__(self, capacity: int, low_water: int, name: str) -> None:
        super().__init__(capacity, name)
        self.scheduled = True
        self._low_water = low_water
        self._arrival: asyncio.Future[None] | None = None
        self._wake: Callable[[], None]
        """Wakes the reader, once it sleeps."""

    def schedule(self) -> None:
        self._wake()

    def _admit(self) -> list[Waiter]:
        return super()._admit() if len(self.messages) <= self._low_water else []

    def _is_ready(self, wake: Callable[[], None]) -> bool | None:
        """Return True if something is here, False if it is closed and nothing will come; else None, and
        `wake` is called then."""
        with self.lock:
            if self.messages:
                return True
            if not self.limit:
                return False
            self._wake = wake
            self.scheduled = False
        return None

    async def arrival(self) -> bool:
        """Sleep until something is here or it is closed; False: closed, and nothing will come."""
        if self._arrival is not None and not self._arrival.done():
            raise RuntimeError(f"the stream {self.name} has a reader already")
        arrival = asyncio.get_running_loop().create_future()
        if (ready := self._is_ready(partial(wake, arrival))) is not None:
            return ready
        self._arrival = arrival
        await arrival
        return True

    def arrived(self) -> bool:
        """Wait as `arrival` does, in this thread."""
        asleep = Lock()
        asleep.acquire()
        if (ready := self._is_ready(asleep.release)) is None:
            asleep.acquire()
            return True
        return ready


class Stream(Generic[T]):
    """A bounded handover: actors `send` items to it, one coroutine reads them in batches.

        async for items in stream:  # a list: all that wait, at most `max_batch`
            ...

    Items come in the order accepted. The event loop is woken once for all that arrives while the
    reader sleeps. Actors that found it full go on once it has drained to `low_water` items. A thread reads
    it by `each`.
    """

    def __init__(
        self,
        capacity: int = 64,
        *,
        low_water: int | None = None,
        max_batch: int | None = None,
        name: str = "stream",
    ) -> None:
        if low_water is None:
            low_water = capacity // 2
        if not 0 <= low_water < capacity:
            raise ValueError(f"low_water of {name}: {low_water}; 0 to {capacity - 1}")
        if max_batch is None:
            max_batch = capacity
        if max_batch < 1:
            raise ValueError(f"max_batch of {name}: {max_batch}; at least 1")
        self.actor_inbox = StreamMailbox(capacity, low_water, name)
        self._max_batch = max_batch
        self._error: BaseException | None = None

    # --- for those who send; any thread ----------------------------------------------------------

    def offer(self, item: T) -> bool:
        """Put an item in from outside of an actor; False if there is no room or it is closed."""
        return self.actor_inbox.offer(item)

    def put(self, item: T) -> None:
        """Put an item in; this thread sleeps while there is no room. Not from an actor's turn in a
        system whose workers others need. Raises pykka.ActorDeadError once the stream is closed.
        """
        if self.actor_inbox.offer(item):
            return
        waiter = BlockedThread([item], 0, 0.0)
        if not self.actor_inbox.enter(waiter):
            waiter.asleep.acquire()
        if not waiter.done:
            raise pykka.ActorDeadError(f"the stream {self.actor_inbox.name} is closed")

    def finish(self, error: BaseException | None = None) -> None:
        """No more items: after those accepted the reader's loop ends, or raises `error`."""
        if self.actor_inbox.limit:
            self._error = error
        self.actor_inbox.close()

    def statistics(self) -> StreamStatistics:
        inbox = self.actor_inbox
        return StreamStatistics(inbox.name, len(inbox.messages), inbox.capacity, tuple(inbox.waiting()))

    # --- for the one who reads, in its event loop or its thread ----------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[T]:
        """The items that wait, at least one. A cancelled call has taken none."""
        handover = self.actor_inbox
        while True:
            items: list[Any] = handover.take(self._max_batch)
            if items:
                return items
            if not await handover.arrival():
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration

    def each(self) -> Iterator[T]:
        """Yield each item; this thread sleeps while none waits. At the end, raises the error of `finish`."""
        handover = self.actor_inbox
        while (items := handover.take(1)) or handover.arrived():
            yield from items
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Stop reading: what waits is dropped, and who waits to send goes on."""
        self.actor_inbox.close()
        while self.actor_inbox.take(self._max_batch):
            pass
