"""Transactions that commit asynchronously or in one step, as a feed sees them; also where clients die."""

from __future__ import annotations

from itertools import combinations

import pytest

from tidemill.codec.tidb.key import record_key
from tidemill.emulator import Cluster, Rejected
from tidemill.puller.tikv.feed.options import EventFeedOptions

from .rig import Rig

TABLE = 5
IMPATIENT = EventFeedOptions(
    lock_tick_seconds=0.02,
    stale_seconds=0.02,
    least_stall_count=1,
    locks_age_seconds=0.0,
    locks_pause_seconds=0.02,
)
"""Locks are looked for at once: those here belong to nobody who lives."""
TTL_MS = 600_000
DEATHS = [(locked, ()) for locked in range(3)]
DEATHS += [(3, committed) for count in range(3) for committed in combinations(range(3), count)]
"""How many keys of three are locked when the client dies, and which of them it has committed by then."""


@pytest.fixture
def cluster():
    """Rows 0 to 9, 10 to 19 and from 20 on lie in a region each."""
    with Cluster(stores=2, tick_seconds=0.01) as cluster:
        cluster.pave([record_key(TABLE, 10), record_key(TABLE, 20)])
        yield cluster


@pytest.fixture
def rig(cluster, tmp_path):
    with Rig(cluster, tmp_path, feed=IMPATIENT) as rig:
        rig.add(TABLE)
        rig.until_resolved(cluster.tso())
        yield rig


def prewrite(cluster, start, keys, locked):
    """Lock some keys of a transaction, each in a request of its own; the greatest least commit ts."""
    ends = [
        cluster.prewrite(start, [("put", key, b"new")], primary=keys[0], ttl_ms=TTL_MS, secondaries=keys[1:])
        for key in locked
    ]
    return max(ends, default=0)


def seen(rig, cluster):
    """Key, commit ts and value of all that came, once everything until now is resolved."""
    rig.until_resolved(cluster.tso())
    rig.tables[TABLE].check()
    return sorted((change.key, change.commit_ts, change.value) for change in rig.tables[TABLE].changes)


@pytest.mark.parametrize("mode", ["async_commit", "one_pc"])
@pytest.mark.parametrize("rows", [[1], [1, 2, 3], [1, 12, 25]])
def test_what_is_committed_comes_once(cluster, rig, mode, rows):
    written = []
    for value in (b"first", b"second" * 100, b"third"):
        mutations = [("put", record_key(TABLE, row), value) for row in rows]
        ts = cluster.write(mutations, mode=mode)
        written += [(key, ts, value) for _, key, _ in mutations]
    assert seen(rig, cluster) == sorted(written)


@pytest.mark.parametrize("mode", ["async_commit", "one_pc"])
def test_changes_have_their_old_values(cluster, rig, mode):
    key = record_key(TABLE, 1)
    for mutation in (("put", key, b"1"), ("put", key, b"2"), ("delete", key, b"")):
        cluster.write([mutation], mode=mode)
    rig.until_resolved(cluster.tso())
    assert [change.old_value for change in rig.tables[TABLE].changes] == [b"", b"1", b"2"]


@pytest.mark.parametrize("pessimistic", [False, True])
def test_a_client_that_dies_leaves_all_or_nothing(cluster, rig, pessimistic):
    """Whatever it has done by then: committed is what is locked in full, and its ts that of the locks."""
    written = []
    for number, (locked, committed) in enumerate(DEATHS):
        keys = [record_key(TABLE, region * 10 + number) for region in range(3)]
        start = cluster.tso()
        if pessimistic:
            cluster.prewrite(start, [("pessimistic", key, b"") for key in keys], ttl_ms=TTL_MS)
        end = prewrite(cluster, start, keys, keys[:locked])
        cluster.commit(start, [keys[at] for at in committed], end)
        if locked == len(keys):
            written += [(key, end, b"new") for key in keys]
    cluster.jump_clock(TTL_MS / 1000)
    assert seen(rig, cluster) == sorted(written)


@pytest.mark.parametrize("locked", [1, 2])
@pytest.mark.parametrize("pessimistic", [False, True])
def test_a_client_that_was_given_up_can_not_complete_its_commit(cluster, rig, locked, pessimistic):
    keys = [record_key(TABLE, row) for row in (1, 11, 21)]
    start = cluster.tso()
    if pessimistic:
        cluster.prewrite(start, [("pessimistic", key, b"") for key in keys], ttl_ms=TTL_MS)
    prewrite(cluster, start, keys, keys[:locked])
    cluster.jump_clock(TTL_MS / 1000)
    rig.until_resolved(cluster.tso())
    with pytest.raises(Rejected):
        prewrite(cluster, start, keys, keys[locked:])
    cluster.rollback(start, keys)
    assert seen(rig, cluster) == []


def test_a_key_is_committed_in_one_step_at_ascending_timestamps(cluster, rig):
    key = record_key(TABLE, 1)
    stamps = [cluster.write([("put", key, b"%d" % n)], mode="one_pc") for n in range(20)]
    assert stamps == sorted(set(stamps))
    assert [ts for _, ts, _ in seen(rig, cluster)] == stamps
