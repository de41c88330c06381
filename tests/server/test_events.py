"""Event streams: the latest status for every reader, slow and lost ones bounded."""

from __future__ import annotations

import asyncio
import socket
from itertools import islice

import pytest

from tidemill.client import Refused
from tidemill.server import events as module
from tidemill.server.events import Broadcast, EventsQuery
from tidemill.server.model.feeds import FeedEvent, FeedList
from tidemill.server.problem import Problem
from tidemill.testing.progress import eventually


def make_bad(served, name: str = "bad") -> None:
    """Create a feed that has an error, of a source that isn't there."""
    served.client.create(
        {
            "name": name,
            "source": {"url": "mysql://127.0.0.1:9", "tables": ["a.*"]},
            "sink": [{"url": "sqlite:///nowhere.db"}],
        }
    )


def test_a_stream_begins_with_all_feeds_and_goes_on_with_changes(served, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    stream = served.client.events()
    first = next(stream)
    assert first == FeedList([])
    make_bad(served)
    assert any(
        isinstance(one, FeedList) and [feed.name for feed in one.feeds] == ["bad"]
        for one in islice(stream, 5)
    )
    stream.close()


def test_a_stream_of_a_feed_has_its_status(served, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_bad(served)
    stream = served.client.events("bad")
    kinds = {type(one) for one in islice(stream, 2)}
    stream.close()
    assert kinds == {FeedList, FeedEvent}
    with pytest.raises(Refused, match="no feed"):
        next(served.client.events("other"))


def test_a_quiet_stream_has_comments(served, monkeypatch) -> None:
    monkeypatch.setattr(module, "COMMENT_SECONDS", 0.2)
    monkeypatch.setattr(module, "TICK_SECONDS", 0.1)
    host, port = served.url.partition("://")[2].split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = b""
        while b": \n\n" not in received:
            received += connection.recv(1 << 16)
    assert b"event: feeds\ndata: " in received


def test_a_lost_reader_is_forgotten(served) -> None:
    host, port = served.url.partition("://")[2].split(":")
    broadcast = served.broadcast
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(100)
        eventually(lambda: broadcast.streams == 1)
    eventually(lambda: broadcast.streams == 0)


def test_streams_are_bounded(serve, monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_STREAMS", 1)
    served = serve()
    stream = served.client.events()
    next(stream)
    eventually(lambda: served.broadcast.streams == 1)
    with pytest.raises(Refused, match="streams") as refused:
        next(served.client.events())
    assert refused.value.status == 503
    stream.close()
    eventually(lambda: served.broadcast.streams == 0)
    assert isinstance(next(served.client.events()), FeedList)


class Registry:
    """Has as many feeds as are asked for."""

    def feeds(self):
        return []

    def feed(self, name):
        raise Problem(404, name)


async def test_a_reader_that_reads_nothing_is_closed(monkeypatch) -> None:
    monkeypatch.setattr(module, "SEND_SECONDS", 0.05)
    broadcast = Broadcast(Registry())
    stream = broadcast.events(EventsQuery())
    started = []

    async def send(message) -> None:
        started.append(message["type"])
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()  # its buffers are full

    async def receive():
        await asyncio.Event().wait()

    await stream({}, receive, send)
    assert started == ["http.response.start", "http.response.body"]
    assert broadcast.streams == 0


async def test_a_slow_reader_gets_the_latest_only(monkeypatch) -> None:
    monkeypatch.setattr(module, "TICK_SECONDS", 0.001)
    looks = 0

    class Counting(Broadcast):
        def _look(self, names):
            nonlocal looks
            looks += 1
            return b"%d" % looks, {}

    broadcast = Counting(Registry())
    events = broadcast.each("")
    first = await anext(events)
    while looks < 20:
        await asyncio.sleep(0)
    second = await anext(events)
    number = int(second.split(b"data: ")[1])
    assert first == b"event: feeds\ndata: 1\n\n"
    assert number >= 19
    await events.aclose()
