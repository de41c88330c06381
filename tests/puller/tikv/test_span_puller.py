"""A SpanPuller in a seeded system: what leaves for what comes in."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tidemill.actors import Failed, PooledActor, SeededSystem
from tidemill.codec.blocks import block_of
from tidemill.errors import InvariantViolated
from tidemill.events import PUT, Changes, KvChange
from tidemill.puller.tikv.feed.span_puller import Pulled, SpanProgress, SpanPuller
from tidemill.puller.tikv.span import Span, table_span

WHOLE = Span(b"a", b"z")
LEFT, RIGHT = Span(b"a", b"m"), Span(b"m", b"z")


class Keeper(PooledActor):
    def __init__(self, kept: list[Any]) -> None:
        self._kept = kept

    def on_receive(self, message: Any) -> None:
        self._kept.append(message)


class Puller:
    def __init__(self, *spans: Span, ts: int = 0, seed: int = 1) -> None:
        self.system = SeededSystem(seed)
        self.sent: list[Changes] = []
        self.failures: list[Failed] = []
        self.progress = SpanProgress(ts, 0.0)
        self.ref = self.system.spawn(
            SpanPuller,
            spans,
            ts,
            self.system.spawn(Keeper, self.sent),
            self.progress,
            name="table 5",
            supervisor=self.system.spawn(Keeper, self.failures),
        )

    def tell(self, *changes: KvChange, resolved: list[tuple[int, Span, int]] = []) -> None:  # noqa: B006
        self.ref.tell(Pulled(block_of(changes), resolved))

    def run(self) -> list[Changes]:
        self.system.run()
        sent, self.sent[:] = list(self.sent), []
        return sent

    def told(self) -> list[tuple[list[KvChange], int]]:
        return [([*message.changes], message.resolved) for message in self.run()]


@contextmanager
def puller(*spans: Span, **options: Any) -> Iterator[Puller]:
    made = Puller(*(spans or (WHOLE,)), **options)
    yield made
    made.system.stop()


def change(ts: int) -> KvChange:
    return KvChange(ts, ts - 1, PUT, b"k", b"v")


def test_the_document_s_example():
    """Regions at 6, 3, 2, 5, 4, 7: the third gets to 4, and the table is at 3."""
    spans = [Span(bytes([i]), bytes([i + 1])) for i in range(1, 7)]
    with puller(Span(b"\x01", b"\x07")) as table:
        for region, (span, ts) in enumerate(zip(spans, (6, 3, 2, 5, 4, 7), strict=True), 1):
            table.tell(resolved=[(region, span, ts)])
        assert [message.resolved for message in table.run() if message.resolved] == [2]
        table.tell(resolved=[(3, spans[2], 4)])
        assert [message.resolved for message in table.run()] == [3]


def test_changes_leave_at_once_and_a_resolved_ts_only_when_it_moves():
    with puller() as table:
        table.tell(change(5), resolved=[(1, LEFT, 9)])
        assert table.told() == [([change(5)], 0)]
        table.tell(resolved=[(2, RIGHT, 7)])
        assert table.told() == [([], 7)]
        table.tell(resolved=[(1, LEFT, 12)])
        assert table.run() == []
        table.tell(resolved=[(2, RIGHT, 7)])
        assert table.run() == []


def test_a_region_asked_for_again_does_not_take_the_resolved_ts_back():
    with puller() as table:
        table.tell(resolved=[(1, WHOLE, 9)])
        table.run()
        table.tell(resolved=[(2, LEFT, 5), (3, RIGHT, 5)])
        table.tell(resolved=[(2, LEFT, 8), (3, RIGHT, 8)])
        assert table.run() == []
        table.tell(resolved=[(2, LEFT, 11), (3, RIGHT, 10)])
        assert table.told() == [([], 10)]
        assert table.progress.regions == 2


def test_what_has_fallen_back_is_dropped_counted_and_said_once(caplog):
    with puller() as table, caplog.at_level(logging.WARNING, "tidemill.puller"):
        table.tell(resolved=[(1, WHOLE, 9)])
        table.run()
        table.tell(change(9), change(8), change(10))
        assert table.told() == [([change(10)], 0)]
        table.tell(change(4))
        assert table.run() == []
        assert table.progress.fallen_back == 3
    assert len(caplog.records) == 1
    assert "table 5: dropped 2 changes at or below the resolved ts 9" in caplog.text


def test_messages_that_wait_leave_as_one():
    with puller() as table:
        table.ref.actor_inbox.chunk = 64
        for ts in (10, 20, 30):
            table.tell(change(ts), resolved=[(1, WHOLE, ts)])
        sent = table.run()
        assert [each for message in sent for each in message.changes] == [change(10), change(20), change(30)]
        assert sent[-1].resolved == 30
        assert len(sent) < 3


def test_several_spans_are_resolved_together():
    spans = [table_span(1), table_span(2), table_span(3)]
    with puller(*spans, ts=4) as table:
        table.tell(resolved=[(1, spans[0], 9), (2, spans[2], 9)])
        assert table.run() == []
        table.tell(resolved=[(3, spans[1], 6)])
        assert table.told() == [([], 6)]


def test_keys_outside_its_spans_fail_it():
    with puller(LEFT) as table:
        table.tell(resolved=[(1, RIGHT, 9)])
        table.run()
        assert [type(failed.error) for failed in table.failures] == [InvariantViolated]


def test_progress_says_what_came_and_what_left():
    with puller(ts=2) as table:
        table.tell(change(5), change(6), resolved=[(1, LEFT, 7)])
        table.run()
        progress = table.progress
        assert (progress.ingress_commit_ts, progress.egress_commit_ts) == (6, 6)
        assert (progress.ingress_resolved_ts, progress.egress_resolved_ts) == (7, 2)
        assert progress.changes == 2


@pytest.mark.parametrize("seed", range(10))
def test_nothing_at_or_below_a_sent_resolved_ts_follows(seed):
    with puller(seed=seed) as table:
        for ts in range(1, 50):
            table.tell(change(2 * ts), resolved=[(1, LEFT, 2 * ts), (2, RIGHT, 2 * ts)])
        table.system.run()
        resolved = 0
        for message in table.sent:
            assert all(each.commit_ts > resolved for each in message.changes)
            resolved = message.resolved or resolved
        assert resolved == 98
