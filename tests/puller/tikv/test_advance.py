"""The Advancer in a seeded system: who is told how far regions are."""

from __future__ import annotations

import pytest

from tidemill.actors import PooledActor, SeededSystem
from tidemill.events import Changes
from tidemill.puller.tikv.feed.advance import Advancer, DirtySet
from tidemill.puller.tikv.feed.options import EventFeedOptions
from tidemill.puller.tikv.feed.request import Request, Subscription
from tidemill.puller.tikv.feed.span_puller import SpanProgress, SpanPuller
from tidemill.puller.tikv.span import Span
from tidemill.puller.tikv.topology import RegionInfo

SPANS = [Span(b"a", b"b"), Span(b"c", b"d"), Span(b"e", b"f")]


class Forget(PooledActor):
    def on_receive(self, message: Changes) -> None:
        pass


@pytest.mark.parametrize("seed", range(8))
def test_of_a_table_with_more_subscriptions_than_room_each_is_told_in_its_turn(seed: int) -> None:
    system = SeededSystem(seed)
    dirty = DirtySet()
    progress = SpanProgress(0, 0.0)
    ref = system.spawn(SpanPuller, SPANS, 0, system.spawn(Forget), progress, capacity=1)
    requests = []
    for number, span in enumerate(SPANS):
        subscription = Subscription(span, 0, ref, 0.0)
        region = RegionInfo(number, span.start, span.end, 1, 1, b"")
        request = Request(subscription, region, span, 0.0)
        subscription.lock.lock(request)
        request.initialised = True
        requests.append(request)
    options = EventFeedOptions(least_tick_seconds=0.01)
    dirty.reader = system.spawn(Advancer, dirty, options)

    for ts in range(1, 4):
        for request in requests:
            request.resolved_ts = ts
        dirty.put({request.subscription: None for request in requests})
        system.run(0.01)

    assert progress.egress_resolved_ts == 1
    system.run(1.0)
    assert progress.egress_resolved_ts == 3
    system.stop()
