"""Connections to PD and the stores, and calls over them."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from grpc import aio

from tidemill.actors import ManualClock
from tidemill.codec.proto import CHANGE_DATA, PD, TIKV, cdcpb, kvrpcpb, pdpb
from tidemill.errors import Retryable, SourceError
from tidemill.puller.grpc.channel import CallFailed, Channels
from tidemill.puller.grpc.loop import LoopThread
from tidemill.puller.tikv.options import TikvOptions

from .scripted import Abort, Scripted, served, silent_address

GET = TIKV["KvGet"]
FEED = CHANGE_DATA["EventFeed"]


@pytest.fixture
def server():
    server = Scripted()
    server.on(GET, lambda request: kvrpcpb.GetResponse(value=request.key))
    server.on(
        FEED, lambda request: cdcpb.ChangeDataEvent(resolved_ts=cdcpb.ResolvedTs(ts=request.request_id))
    )
    with served(server):
        yield server


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def connect(clock):
    """Makes the Channels of options, and runs coroutines on their loop."""
    loop = LoopThread()
    loop.start()
    made = []

    def connect(**options):
        async def make():
            made.append(Channels(TikvOptions(pd=("pd:1",), **options), clock))
            return made[-1]

        return loop.run(make())

    connect.run = loop.run
    yield connect
    for channels in made:
        loop.run(channels.close(), 30)
    loop.stop()


def get(channels, address, key=b"k", timeout_seconds=10):
    return channels.call(address, GET, kvrpcpb.GetRequest(key=key), timeout_seconds)


def test_a_call_is_answered_over_one_connection_however_many_there_are(server, connect):
    channels = connect()

    async def calls():
        return await asyncio.gather(*(get(channels, server.address, b"%d" % n) for n in range(100)))

    assert [answer.value for answer in connect.run(calls())] == [b"%d" % n for n in range(100)]
    assert channels.connections == 1


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, Retryable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, Retryable),
        (grpc.StatusCode.CANCELLED, Retryable),
        (grpc.StatusCode.UNKNOWN, Retryable),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, Retryable),
        (grpc.StatusCode.UNIMPLEMENTED, SourceError),
        (grpc.StatusCode.UNAUTHENTICATED, SourceError),
        (grpc.StatusCode.PERMISSION_DENIED, SourceError),
    ],
)
def test_a_status_is_retryable_or_fatal_and_names_the_address_and_the_call(server, connect, code, kind):
    def refuse(_):
        raise Abort(code, "because")

    server.on(GET, refuse)
    with pytest.raises(kind, match=rf"{server.address}: KvGet: .*because") as caught:
        connect.run(get(connect(), server.address))
    if kind is Retryable:
        assert isinstance(caught.value, CallFailed)
        assert (caught.value.address, caught.value.code) == (server.address, code)


def test_an_address_where_nobody_listens_may_listen_later(connect):
    address = silent_address()
    with pytest.raises(CallFailed, match=rf"{address}: KvGet: UNAVAILABLE: .*Connection refused") as caught:
        connect.run(get(connect(), address))
    assert "ca_path" not in str(caught.value)


def test_a_server_that_does_not_answer_in_time_may_answer_later(server, connect):
    silence = asyncio.Event()
    server.on(GET, lambda _: silence.wait())
    with pytest.raises(CallFailed, match="KvGet: DEADLINE_EXCEEDED"):
        connect.run(get(connect(), server.address, timeout_seconds=0.1))


def test_an_answer_larger_than_allowed_is_fatal_naming_the_option(server, connect):
    server.on(GET, lambda _: kvrpcpb.GetResponse(value=bytes(2 << 20)))
    with pytest.raises(SourceError, match="too large for max_receive_bytes"):
        connect.run(get(connect(max_receive_bytes=1 << 20), server.address))
    assert len(connect.run(get(connect(), server.address)).value) == 2 << 20


def test_a_stream_is_read_parsed_or_as_bytes(server, connect):
    channels = connect()

    async def first(raw):
        call = channels.stream(server.address, FEED, raw=raw)
        await call.write(cdcpb.ChangeDataRequest(request_id=7))
        answer = await call.read()
        call.cancel()
        return answer

    parsed = connect.run(first(raw=False))
    assert parsed.resolved_ts.ts == 7
    assert connect.run(first(raw=True)) == parsed.SerializeToString()


def test_streams_have_connections_of_their_own_each_up_to_so_many(server, connect):
    channels = connect(streams_per_connection=2)

    async def open_and_close():
        await get(channels, server.address)
        streams = [channels.stream(server.address, FEED) for _ in range(6)]
        for stream in streams:
            await stream.write(cdcpb.ChangeDataRequest(request_id=1))
            await stream.read()
        opened = channels.connections
        for stream in streams:
            stream.cancel()
        await asyncio.sleep(0)
        again = channels.stream(server.address, FEED)
        again.cancel()
        return opened, channels.connections

    assert connect.run(open_and_close()) == (1 + 3, 1 + 3)


def test_a_connection_that_is_idle_for_long_is_closed(server, connect, clock):
    channels = connect(idle_seconds=600)
    other = "127.0.0.1:1"

    async def use():
        stream = channels.stream(server.address, FEED)
        await stream.write(cdcpb.ChangeDataRequest())
        await stream.read()
        with pytest.raises(CallFailed):
            await get(channels, other)
        counts = []
        for _ in range(3):
            clock.advance(301)
            await get(channels, server.address)
            counts.append(channels.connections)
        stream.cancel()
        return counts

    # the stream's, the calls' and, until it was idle for 600 s, the other address's
    assert connect.run(use()) == [3, 2, 2]


def test_closing_ends_streams_as_cancelled(server, connect):
    channels = connect()

    async def close():
        stream = channels.stream(server.address, FEED)
        await stream.write(cdcpb.ChangeDataRequest())
        await stream.read()
        reading = asyncio.create_task(stream.read())
        await asyncio.sleep(0)
        await channels.close()
        await asyncio.wait([reading])
        return reading.cancelled() or type(reading.exception())

    assert connect.run(close()) in (True, asyncio.CancelledError, aio.AioRpcError)
    with pytest.raises(CallFailed, match="the connections are closed"):
        connect.run(get(channels, server.address))
    assert channels.connections == 0


def test_metadata_of_a_stream_reaches_the_server(server, connect):
    channels = connect()

    async def features():
        call = channels.stream(server.address, FEED, metadata=[("features", "stream-multiplexing")])
        await call.write(cdcpb.ChangeDataRequest())
        await call.read()
        call.cancel()

    connect.run(features())
    assert ("features", "stream-multiplexing") in server.metadata


def test_a_sentence_about_pd_names_its_call(server, connect):
    with pytest.raises(SourceError, match="GetMembers: it doesn't know this call"):
        connect.run(connect().call(server.address, PD["GetMembers"], pdpb.GetMembersRequest(), 10))
