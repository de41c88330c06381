"""Timestamps of a reading that began elsewhere."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from tidemill.errors import Retryable
from tidemill.events import Ddl, compose_ts
from tidemill.puller.mysql.commit_clock import CommitClock
from tidemill.spark.capture.retime import Retime
from tidemill.spark.envelope import ENVELOPE, Decoder, EnvelopeEncoder, to_batch
from tidemill.spark.offsets.offset import lower_bound

from .history import BASE, ddl, history, rows_of

FOREVER = 1 << 62


def read(times: list[int], last: int) -> list[int]:
    """Return the ts of transactions at these seconds for a reader that starts with `last`."""
    clock, found = CommitClock(last), []
    for time in times:
        clock.last = clock.next(time)
        found.append(clock.last)
    return found


def batch_of(stamps: list[int]):
    rows = [
        [ts, ts, 0, "shop", "t", "insert", None, None, f"p{n}", None, b"", b""] for n, ts in enumerate(stamps)
    ]

    return to_batch(rows, ENVELOPE)


@pytest.mark.parametrize("seed", range(50))
def test_it_gives_what_a_reading_from_there_gives(seed):
    random = Random(seed)
    times = [1_000]
    while len(times) < 40:  # bursts within a second, pauses, and a clock that steps back
        times.append(max(0, times[-1] + random.choice([0, 0, 0, 0, 1, 3, -2])))
    theirs = read(times, 0)
    first = random.randrange(39)
    last = theirs[first - 1] if first else 0
    last += random.choice([0, 1, 5, compose_ts(700), compose_ts(2_300)])
    retime, found = Retime(last, FOREVER), []
    rest = theirs[first:]
    while rest:
        size = random.choice([1, 2, 10])
        found += [row["commit_ts"] for row in rows_of([retime(batch_of(rest[:size]))])]
        del rest[:size]
    assert found == read(times[first:], last)
    assert all(one < two for one, two in pairwise(found))


@pytest.mark.parametrize("seed", range(200))
def test_where_the_capture_s_clock_was_raised_it_gives_the_same_or_refuses(seed):
    random = Random(seed)
    times, theirs, clock = [], [], CommitClock(0)
    now = 1_000
    while len(times) < 30:
        now += random.choice([0, 0, 0, 1, 5])
        if random.random() < 0.3:  # idle: just below the source's clock
            clock.raise_to(compose_ts((now - random.randrange(3)) * 1000 - 1))
        times.append(now - random.choice([0, 0, 0, 0, 1, 4]))
        clock.last = clock.next(times[-1])
        theirs.append(clock.last)
    first = random.randrange(29)
    begun = random.choice([0, compose_ts(1_000_400), compose_ts(1_003_000)])
    mine = read(times, begun)
    last = mine[first - 1] if first else begun
    retime, found = Retime(last, FOREVER), []
    try:
        for ts in theirs[first:]:
            found += [row["commit_ts"] for row in rows_of([retime(batch_of([ts]))])]
    except Retryable:
        assert len(found) < len(theirs) - first
    assert found == mine[first : first + len(found)]


def test_a_clock_that_was_raised_above_the_query_s_is_said():
    raised = compose_ts(5_300) + 1
    with pytest.raises(Retryable, match="raised above the query's while the source was idle"):
        Retime(compose_ts(2_000), FOREVER)(batch_of([compose_ts(3_000), raised]))
    found = Retime(compose_ts(6_000), FOREVER)(batch_of([raised]))
    assert found.column(0).to_pylist() == [compose_ts(6_000) + 1]


def test_what_is_above_passes_untouched():
    batch = EnvelopeEncoder(json=False).encode(history(1))
    assert Retime(BASE, FOREVER)(batch) is batch


def test_rows_of_one_transaction_stay_together_over_batches():
    items = history(4)
    whole = EnvelopeEncoder(json=False).encode(items)
    retime, last = Retime(BASE + 1_000, FOREVER), BASE + 1_000
    found = rows_of(retime(whole.slice(n, 1)) for n in range(whole.num_rows))
    before = whole.to_pylist()
    assert len({(a["commit_ts"], b["commit_ts"]) for a, b in zip(before, found, strict=True)}) == len(
        {row["commit_ts"] for row in before}
    )
    assert found[0]["commit_ts"] == last + 1
    assert all(row["start_ts"] == row["commit_ts"] for row in found)


def test_a_schema_change_has_the_new_ts_inside_too():
    batch = Retime(BASE + 50, FOREVER)(EnvelopeEncoder(json=False).encode([ddl(3)]))
    (item,) = Decoder().decode(batch)
    assert isinstance(item, Ddl)
    assert (item.commit_ts, item.start_ts) == (BASE + 51, BASE + 51)
    assert batch.column("commit_ts").to_pylist() == [BASE + 51]


def test_a_ts_above_the_end_is_refused():
    batch = EnvelopeEncoder(json=False).encode([ddl(3)])
    Retime(BASE + 50, BASE + 51)(batch)
    with pytest.raises(Retryable, match="ahead of the query's"):
        Retime(BASE + 51, BASE + 51)(batch)


@pytest.mark.parametrize(
    ("last", "before"),
    [
        (compose_ts(2_000), compose_ts(3_000)),  # the capture has an earlier transaction of that second
        (lower_bound(compose_ts(2_000)), 0),  # of a position: who knows
    ],
)
def test_a_query_s_clock_that_is_behind_waits_for_the_next_second(last, before):
    with pytest.raises(Retryable, match="ahead of the query's at the range's start"):
        Retime(last, FOREVER, before)(batch_of([compose_ts(3_000) + 1]))
    later = batch_of([compose_ts(4_000), compose_ts(4_000) + 1])
    assert Retime(last, FOREVER, before)(later) is later
