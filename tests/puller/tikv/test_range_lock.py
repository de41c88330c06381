"""Which region holds which part of a span: cases as text, and at random against every key by itself.

Who is told to wait is named again by `free` once all it waited for are gone. `--rewrite` writes down what
happens now.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidemill.errors import InvariantViolated
from tidemill.puller.tikv.feed.range_lock import Cancelled, Locked, RangeLock, RangeWaits, Stale
from tidemill.puller.tikv.span import Span
from tidemill.testing import cases


@dataclass(frozen=True, eq=False)
class Part:
    id: int
    span: Span
    version: int


A_TO_Z = Span(b"a", b"z")
STRANGER = Part(0, A_TO_Z, 1)
CASES = Path(__file__).with_name("range_lock.txt")


@pytest.mark.parametrize("case", cases.load(CASES), ids=cases.title)
def test_case(case, rewrite):
    case.expect(play(case.commands), rewrite)


def play(block: str) -> str:
    lock = None
    out: list[str] = []
    for line in block.splitlines():
        match line.split():
            case ["new", span, ts]:
                lock, parts = RangeLock(Span(*bounds(span)), int(ts)), {}
            case words:
                try:
                    command(lock, parts, words, out)
                except InvariantViolated:
                    out.append(f"{' '.join(words[:2])}: cannot be")
    return "\n".join(out)


def command(lock: RangeLock[Part], parts: dict[str, Part], words: list[str], out: list[str]) -> None:
    match words:
        case ["lock", region, span, version]:
            part = Part(int(region), Span(*bounds(span)), int(version[1:]))
            outcome = lock.lock(part)
            if isinstance(outcome, Locked):
                parts[region] = part
            out.append(f"lock {region}: {told(outcome)}")
            if isinstance(outcome, RangeWaits):
                outcome.wait.when_free(lambda: out.append(f"free {region}"))
        case ["unlock", region, "at", ts]:
            lock.unlock(parts.get(region, STRANGER), int(ts))
        case ["cancel"]:
            out.append(f"held {' '.join(str(part.id) for part in lock.cancel()) or 'nothing'}")
        case ["holes"]:
            holes = [f"{spans([span])} at {ts}" for span, ts in lock.free()]
            out.append(f"holes {', '.join(holes) or 'nothing'}")


def told(outcome) -> str:
    match outcome:
        case Locked(ts):
            return f"at {ts}"
        case RangeWaits():
            return "waits"
        case Stale(ranges):
            return f"stale, again {spans(ranges)}"
        case Cancelled():
            return "cancelled"


def spans(found) -> str:
    return " ".join(f"{span.start.decode()}-{span.end.decode()}" for span in found) or "nothing"


def bounds(text: str) -> tuple[bytes, bytes]:
    start, _, end = text.partition("-")
    return start.encode(), end.encode()


def test_a_callback_for_what_is_free_already_is_called_at_once():
    lock, first, second = RangeLock(A_TO_Z, 1), Part(1, A_TO_Z, 1), Part(2, A_TO_Z, 2)
    lock.lock(first)
    outcome = lock.lock(second)
    lock.unlock(first, 5)
    called = []
    outcome.wait.when_free(lambda: called.append(1))
    assert called == [1]


def test_a_callback_may_lock():
    lock, first, second = RangeLock(A_TO_Z, 1), Part(1, A_TO_Z, 1), Part(2, A_TO_Z, 2)
    lock.lock(first)
    waiting = lock.lock(second)
    outcomes = []
    waiting.wait.when_free(lambda: outcomes.append(lock.lock(second)))
    lock.unlock(first, 5)
    assert outcomes == [Locked(5)]


KEYS = 12


class EveryKey:
    """The same by a holder and a ts for each key."""

    def __init__(self, ts: int) -> None:
        self.holder = [None] * KEYS
        self.ts = [ts] * KEYS
        self.held = {}

    def lock(self, start, end, region, version):
        inside = range(start, end)
        others = {self.holder[key] for key in inside} - {None}
        if region in self.held:
            others.add(region)
        if not others:
            for key in inside:
                self.holder[key] = region
            self.held[region] = (start, end, version)
            return ("at", min(self.ts[key] for key in inside))
        if any(self.held[other][2] >= version for other in others):
            return ("stale", [key for key in inside if self.holder[key] is None])
        return ("waits", others)

    def unlock(self, region, ts):
        start, end, _ = self.held.pop(region)
        for key in range(start, end):
            self.holder[key] = None
            self.ts[key] = ts


def key(number: int) -> bytes:
    return b"%02d" % number


def numbers(found) -> list[int]:
    return [at for span in found for at in range(int(span.start), int(span.end))]


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data(), few=st.sampled_from([0, 2, 8]))
def test_it_does_as_a_table_of_every_key_does(data, few, monkeypatch):
    monkeypatch.setattr("tidemill.puller.tikv.feed.range_lock._FEW", few)
    lock = RangeLock(Span(key(0), key(KEYS)), 100)
    model = EveryKey(100)
    parts = {}  # that hold something, by region
    waiting = {}  # by number of the wait: holders still ahead
    woken = []
    for step in range(data.draw(st.integers(1, 30))):
        if model.held and data.draw(st.booleans()):
            region = data.draw(st.sampled_from(sorted(model.held)))
            start, end, version = model.held[region]
            ts = data.draw(st.integers(100, 200))
            free = {number for number, ahead in waiting.items() if ahead <= {(region, start, end, version)}}
            for number in waiting:
                waiting[number] -= {(region, start, end, version)}
            lock.unlock(parts.pop(region), ts)
            model.unlock(region, ts)
            assert set(woken) == free
            waiting = {number: ahead for number, ahead in waiting.items() if ahead}
            woken.clear()
        else:
            start = data.draw(st.integers(0, KEYS - 1))
            end = data.draw(st.integers(start + 1, KEYS))
            region, version = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
            part = Part(region, Span(key(start), key(end)), version)
            outcome = lock.lock(part)
            match model.lock(start, end, region, version):
                case ["at", ts]:
                    assert outcome == Locked(ts)
                    parts[region] = part
                case ["stale", free]:
                    assert isinstance(outcome, Stale)
                    assert numbers(outcome.retry_ranges) == free
                case ["waits", others]:
                    assert isinstance(outcome, RangeWaits)
                    waiting[step] = {(other, *model.held[other]) for other in others}
                    outcome.wait.when_free(lambda step=step: woken.append(step))
        assert numbers(span for span, _ in lock.free()) == [
            at for at in range(KEYS) if model.holder[at] is None
        ]
        assert {part.id for part in lock.held} == model.held.keys()
