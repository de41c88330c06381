"""Server-sent events: the latest status of feeds, for any number of slow or fast readers.

One task makes each event about once a second, for all streams. A stream has no queue: a reader that is slow
misses events in between, and one that doesn't read for SEND_SECONDS is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import msgspec
from starlette.types import Message, Receive, Scope, Send

from .model.feeds import EventsQuery, FeedEvent, FeedList
from .operation import EVENTS, operation
from .problem import Problem
from .registry import Registry

TICK_SECONDS: Final = 1.0
"""Interval of events, ..."""
MAX_BYTES_PER_SECOND: Final = 20e6
"""... longer if all streams together would get more bytes."""
COMMENT_SECONDS: Final = 15.0
"""Time without an event after which a comment is sent, so that nothing on the way closes the stream."""
SEND_SECONDS: Final = 30.0
"""Time for which a reader may leave an event unread."""
MAX_STREAMS: Final = 256
"""Maximum number of open streams."""


class _Latest:
    """The latest event of one subject, and its number."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0
        self.event = b""
        self._data = b""

    def set(self, data: bytes) -> bool:
        """Return True if this differs from the last event."""
        if data == self._data:
            return False
        self._data = data
        self.event = b"event: %s\ndata: %s\n\n" % (self.name.encode(), data)
        self.number += 1
        return True


class Broadcast:
    """The events of one application. Used in one event loop, but for `events`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._feeds = _Latest("feeds")
        self._each: dict[str, tuple[_Latest, int]] = {}  # with the number of its streams
        self.streams = 0
        """Number of open streams."""
        self._ticked: asyncio.Event = asyncio.Event()
        self._seconds = TICK_SECONDS  # until the next tick
        self._task: asyncio.Task[None] | None = None
        self.is_closed = False

    def close(self) -> None:
        """End all streams."""
        self.is_closed = True
        self._ticked.set()

    @operation("GET", "/events", media=EVENTS)
    def events(self, query: EventsQuery) -> EventStream:
        """Send the list of feeds about once a second while it changes, as the event `feeds`.

        Of the feed that the query names, its summary and status are sent too, as the event `feed`.
        """
        if query.feed:
            self._registry.feed(query.feed)
        if self.streams >= MAX_STREAMS:
            raise Problem(503, f"there are {MAX_STREAMS} open event streams already")
        return EventStream(self, query.feed)

    async def each(self, feed: str) -> AsyncIterator[bytes]:
        """Yield events for one reader until the end; an empty one after each COMMENT_SECONDS without."""
        subjects = [self._feeds, *([self._join(feed)] if feed else [])]
        self.streams += 1
        try:
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._run())
            seen = [0 for _ in subjects]
            quiet = 0.0
            while not self.is_closed:
                fresh = [one for one, number in zip(subjects, seen, strict=True) if one.number != number]
                seen = [one.number for one in subjects]
                if fresh:
                    quiet = 0.0
                    yield b"".join([one.event for one in fresh])
                elif quiet >= COMMENT_SECONDS:
                    quiet = 0.0
                    yield b": \n\n"
                await self._ticked.wait()
                quiet += self._seconds
        finally:
            self.streams -= 1
            if feed:
                self._leave(feed)

    def _join(self, feed: str) -> _Latest:
        latest, streams = self._each.get(feed, (_Latest("feed"), 0))
        self._each[feed] = latest, streams + 1
        return latest

    def _leave(self, feed: str) -> None:
        latest, streams = self._each.pop(feed)
        if streams > 1:
            self._each[feed] = latest, streams - 1

    async def _run(self) -> None:
        """Make the events while there are streams."""
        while self.streams and not self.is_closed:
            loop = asyncio.get_running_loop()
            feeds, each = await loop.run_in_executor(None, self._look, list(self._each))
            self._feeds.set(feeds)
            for name, data in each.items():
                if name in self._each:
                    self._each[name][0].set(data)
            ticked, self._ticked = self._ticked, asyncio.Event()
            ticked.set()
            self._seconds = max(TICK_SECONDS, len(feeds) * self.streams / MAX_BYTES_PER_SECOND)
            await asyncio.sleep(self._seconds)
        if self.is_closed:
            self._ticked.set()  # the streams end

    def _look(self, names: list[str]) -> tuple[bytes, dict[str, bytes]]:
        summaries = {feed.name: feed.summary() for feed in self._registry.feeds()}
        each = {}
        for name in names:
            if name in summaries:
                with suppress(Problem):
                    status = self._registry.feed(name).status()
                    each[name] = msgspec.json.encode(FeedEvent(summaries[name], status))
        return msgspec.json.encode(FeedList([*summaries.values()])), each


class EventStream:
    """The response to one reader."""

    def __init__(self, broadcast: Broadcast, feed: str) -> None:
        self._broadcast = broadcast
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),  # nginx passes events on at once
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_left(receive))
        await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        events = self._broadcast.each(self._feed)
        try:
            async for event in events:
                message: Message = {"type": "http.response.body", "body": event, "more_body": True}
                async with asyncio.timeout(SEND_SECONDS):
                    await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await events.aclose()  # type: ignore[attr-defined] # an async generator


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
