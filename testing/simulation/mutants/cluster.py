"""Bugs of the clients of PD and TiKV: regions, reads at a ts, locks, safe points."""

from __future__ import annotations

from typing import Final

from .mutant import mutant

CLUSTER: Final = (
    mutant(
        "a scan ends with its region",
        "puller/tikv/kv/kv.py",
        "        if len(pairs) < page:\n            return pairs, _behind(region, end)\n",
        "        if len(pairs) < page:\n            return pairs, None\n",
        "Rows in the regions after the first one aren't read.",
        within=10,
    ),
    mutant(
        "a scan skips a locked key",
        "puller/tikv/kv/kv.py",
        "                return pairs[:count], lock.key\n",
        '                return pairs[:count], lock.key + b"\\0"\n',
        "After a lock was resolved, the scan goes on behind its key.",
    ),
    mutant(
        "a committed lock is rolled back",
        "puller/tikv/feed/lock_resolver.py",
        "                ends[start_ts] = status.commit_ts\n",
        "                ends[start_ts] = 0\n",
        "Secondary keys of a transaction whose client died after its commit are rolled back.",
    ),
    mutant(
        "locks are never resolved",
        "puller/tikv/feed/lock_resolver.py",
        "            if ends and locks:\n",
        "            if False:\n",
        "The locks of a client that died hold back a table for ever (tiflow#11245).",
    ),
    mutant(
        "an error leaves the region as it is",
        "puller/tikv/kv/region_call.py",
        "        case kind if kind not in _PASSING:\n            cache.invalidate(region_id)\n",
        "        case _:\n            pass\n",
        "A region that isn't where it was any more is asked for again there.",
        survives=(
            "After 20 s the read is given up, and the feed begins again with an empty cache of regions."
        ),
    ),
    mutant(
        "a new leader isn't learnt",
        "puller/tikv/feed/failures.py",
        "            self._cache.update_leader(region_id, action.leader)\n",
        "            pass\n",
        "A region that has another leader is requested from the old one.",
        within=30,
    ),
    mutant(
        "the safe point is above the checkpoint",
        "sources/tidb.py",
        "        return self._acknowledged\n",
        "        return self._acknowledged + (600_000 << 18)\n",
        "Garbage is collected that a restart from the checkpoint needs.",
    ),
)
