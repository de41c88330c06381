"""Memory of an idle region: hundreds of thousands of them fit into one process."""

from __future__ import annotations

import gc
import tracemalloc

from tidemill.codec.tidb.key import encode_bytes, record_key
from tidemill.puller.frontier import Frontier
from tidemill.puller.tikv.feed.range_lock import Locked, RangeLock
from tidemill.puller.tikv.match.matcher import Matcher
from tidemill.puller.tikv.match.spill import PrewriteMemory
from tidemill.puller.tikv.region import RegionState
from tidemill.puller.tikv.span import Span, table_span
from tidemill.store.store import Store

REGIONS = 20_000


def taken(make) -> float:
    """Bytes a region that what `make` returns holds."""
    gc.collect()
    tracemalloc.start()
    kept = make()
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return size / REGIONS


def table(table_id: int, regions: int, quota, now: float):
    """One subscription, all its regions initialised and resolved."""
    span = table_span(table_id)
    bounds = [
        span.start,
        *(encode_bytes(record_key(table_id, 1000 * at)) for at in range(1, regions)),
        span.end,
    ]
    lock: RangeLock[RegionState] = RangeLock(span, 5)
    frontier = Frontier([span], 5)
    states = []
    for at in range(regions):
        part = Span(bounds[at], bounds[at + 1])
        region_id = (table_id << 16) + at
        state = RegionState(region_id, part, 1, 1, 5, table=table_id, since=now + at)
        assert lock.lock(state) == Locked(5)
        state.resolved_ts = 449_000_000_000_000_000 + table_id
        frontier.forward(part, state.resolved_ts)
        states.append((state, Matcher(state, quota)))
    assert frontier.ts == 449_000_000_000_000_000 + table_id
    return lock, frontier, states


def test_an_idle_region_of_a_large_table_takes_less_than_a_kilobyte(tmp_path):
    quota = PrewriteMemory(Store(tmp_path / "store")).quota()
    assert taken(lambda: [table(number, 1_000, quota, 1.5) for number in range(20)]) < 700


def test_a_table_of_one_idle_region_takes_less_than_two(tmp_path):
    quota = PrewriteMemory(Store(tmp_path / "store")).quota()
    assert taken(lambda: [table(number, 1, quota, 1.5) for number in range(REGIONS)]) < 1_500
