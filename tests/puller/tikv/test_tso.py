"""Timestamps of PD's oracle."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from tidemill.codec.proto import PD, pdpb
from tidemill.emulator.cluster import Cluster
from tidemill.errors import Retryable, SourceError
from tidemill.events import compose_ts

from .client import client
from .scripted import Abort, ScriptedPd, served


async def many(c, count):
    return await asyncio.gather(*(c.pd.tso() for _ in range(count)))


class Oracle(ScriptedPd):
    """A PD whose timestamps are (physical, logical) as the test says; logical is that of the last."""

    def __init__(self, *stamps: tuple[int, int], suffix_bits: int = 0) -> None:
        super().__init__()
        self.stamps = list(stamps)
        self.suffix_bits = suffix_bits
        self.on(PD["Tso"], self.give)

    @property
    def counts(self) -> list[int]:
        return [r.count for r in self.requests if isinstance(r, pdpb.TsoRequest)]

    def give(self, request):
        physical, logical = self.stamps.pop(0)
        stamp = pdpb.Timestamp(physical=physical, logical=logical, suffix_bits=self.suffix_bits)
        return pdpb.TsoResponse(header=self.header(), count=request.count, timestamp=stamp)


def test_timestamps_rise_and_none_is_given_twice():
    with Cluster(stores=1) as cluster, client(cluster.pd_address) as c:
        first = c.run(many(c, 500))
        second = c.run(many(c, 500))
    assert sorted({*first, *second}) == first + second
    assert len({*first, *second}) == 1000


def test_who_waits_at_the_same_time_shares_a_request_whose_answer_names_the_last():
    pd = Oracle((1000, 1), (1000, 6))
    with served(pd), client(pd.address) as c:
        assert c.run(c.pd.tso()) == compose_ts(1000, 1)
        assert c.run(many(c, 5)) == [compose_ts(1000, logical) for logical in (2, 3, 4, 5, 6)]
    assert pd.counts == [1, 5]


def test_a_batch_that_passes_a_millisecond_stays_in_order():
    pd = Oracle((1001, 1))
    with served(pd), client(pd.address) as c:
        assert c.run(many(c, 3)) == [compose_ts(1001) - 1, compose_ts(1001), compose_ts(1001) + 1]


def test_with_suffix_bits_the_steps_leave_room_for_them():
    pd = Oracle((1000, 0b1101), suffix_bits=2)
    with served(pd), client(pd.address) as c:
        assert c.run(many(c, 3)) == [compose_ts(1000, logical) for logical in (0b0101, 0b1001, 0b1101)]


def test_every_request_names_the_cluster():
    pd = Oracle((1000, 1))
    with served(pd), client(pd.address) as c:
        c.run(c.pd.tso())
    assert pd.requests[-1].header.cluster_id == 7


def test_a_clock_that_goes_back_ends_the_feed():
    pd = Oracle((1000, 5), (1000, 5))
    with served(pd), client(pd.address) as c:
        c.run(c.pd.tso())
        with pytest.raises(
            SourceError, match=r"gave timestamp 262144005 after 262144005: its clock went back"
        ):
            c.run(c.pd.tso())


def test_a_stream_that_breaks_is_opened_again():
    pd = Oracle((1000, 1), (1000, 2), (1000, 3))
    give, seen = pd.give, []

    def break_once(request):
        seen.append(request)
        match len(seen):
            case 2:
                raise Abort(grpc.StatusCode.UNKNOWN, "requested pd is not leader of cluster")
            case 4:
                return None  # ends the stream in good order
        return give(request)

    pd.on(PD["Tso"], break_once)
    with served(pd), client(pd.address) as c:
        assert [c.run(c.pd.tso()) for _ in range(3)] == [compose_ts(1000, n) for n in (1, 2, 3)]
    assert len(seen) == 5


def test_a_refusal_reaches_everyone_who_waits():
    pd = ScriptedPd()
    header = pd.header(type=pdpb.ErrorType.UNKNOWN, message="no more timestamps")
    pd.on(PD["Tso"], lambda request: pdpb.TsoResponse(header=header, count=request.count))

    async def refused(c):
        return await asyncio.gather(c.pd.tso(), c.pd.tso(), return_exceptions=True)

    with served(pd), client(pd.address, pd_retry_seconds=0.0) as c:
        errors = c.run(refused(c))
    assert [type(error) for error in errors] == [Retryable, Retryable]
    assert "Tso: no more timestamps" in str(errors[0])


def test_fewer_timestamps_than_asked_for_are_not_taken():
    pd = ScriptedPd()
    pd.on(PD["Tso"], lambda request: pdpb.TsoResponse(header=pd.header(), count=request.count - 1))
    with (
        served(pd),
        client(pd.address, pd_retry_seconds=0.0) as c,
        pytest.raises(Retryable, match="0 timestamps instead of 1"),
    ):
        c.run(c.pd.tso())


def test_a_silent_pd_is_given_up_in_time():
    pd = ScriptedPd()
    silence = asyncio.Event()
    pd.on(PD["Tso"], lambda _: silence.wait())
    with (
        served(pd),
        client(pd.address, pd_retry_seconds=0.0, timeout_seconds=2.0) as c,
        pytest.raises(Retryable, match="Tso: no answer in time"),
    ):
        c.run(c.pd.tso())


def test_one_that_gives_up_waiting_takes_nothing_from_the_others():
    pd = Oracle((1000, 2))

    async def race(c):
        impatient, patient = (asyncio.create_task(c.pd.tso()) for _ in range(2))
        await asyncio.sleep(0)
        impatient.cancel()
        return await patient

    with served(pd), client(pd.address) as c:
        assert c.run(race(c)) in (compose_ts(1000, 1), compose_ts(1000, 2))


def test_closing_cancels_who_still_waits():
    pd = ScriptedPd()
    silence = asyncio.Event()
    pd.on(PD["Tso"], lambda _: silence.wait())

    async def wait(c):
        waiting = asyncio.create_task(c.pd.tso())
        while not any(isinstance(request, pdpb.TsoRequest) for request in pd.requests):
            await asyncio.sleep(0)
        await c.pd.close()
        await asyncio.wait([waiting])
        return waiting.cancelled()

    with served(pd), client(pd.address) as c:
        assert c.run(wait(c))
