"""Random faults by a seed: the same seed draws the same faults in the same order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from ..cluster import Cluster
from ..percolator import Rejected
from .region_errors import WORDS

FEED_ENDS = ("not_leader", "epoch_not_match", "region_not_found", "server_is_busy", "congested")
"""Errors with which a running subscription may end, after which a client reconnects."""
FATAL = ("duplicate_request", "compatibility", "cluster_id_mismatch", "unknown")
"""Answers that end a client permanently: never drawn."""


class Schedule:
    """Draws a fault at each step and counts the effective ones. Not thread-safe."""

    def __init__(self, cluster: Cluster, seed: int, keys: Sequence[bytes], words: Sequence[str] = ()) -> None:
        """`keys` are the raw keys at which regions may be split; `words` the faults to draw from, by default
        all."""
        self._cluster = cluster
        self._random = Random(seed)
        self._keys = list(keys)
        self._all: dict[str, Callable[[], bool]] = {
            "split": self._split,
            "merge": self._merge,
            "transfer_leader": self._transfer,
            "store_down": self._store_down,
            "slow_store": self._slow_store,
            "lock": self._lock,
            "async_lock": self._async_lock,
            "fail_next": self._fail_next,
            "fail_feed": self._fail_feed,
            "drop_streams": lambda: bool(cluster.drop_streams(self._a_store())),
            "cut_streams": lambda: bool(cluster.cut_streams(self._a_store())),
            "hold_scans": self._hold_scans,
            "pause_resolved": self._pause_resolved,
            "pd_leader": self._pd_leader,
            "pd_down": self._pd_down,
            "clock": self._clock,
        }
        unknown = [word for word in words if word not in self._all]
        if unknown:
            raise ValueError(f"words: {', '.join(unknown)}; there are: {', '.join(self._all)}")
        self._words = list(words or self._all)
        self._before = Counter(cluster.injected.hits)
        self._drawn: Counter[str] = Counter()

    def step(self) -> str:
        """Draw and execute a fault; return its word."""
        word = self._random.choice(self._words)
        self._drawn[word] += self._all[word]()
        return word

    @property
    def hits(self) -> Counter[str]:
        """Return the number of effective faults by word; an injected error counts when a request gets it."""
        return +self._drawn + (self._cluster.injected.hits - self._before)

    def calm(self) -> None:
        """End all faults. Locks stay until they are resolved."""
        cluster = self._cluster
        cluster.pd_up()
        cluster.resume_resolved()
        cluster.free_scans()
        for store in cluster.stores:
            cluster.store_up(store)
            cluster.slow_store(store, 0)

    # --- the faults; each says whether it met something

    def _a_store(self) -> int:
        return self._random.choice(list(self._cluster.stores))

    def _a_region(self) -> int:
        return self._cluster.region_of(self._random.choice(self._keys))

    def _split(self) -> bool:
        return _done(self._cluster.split, self._random.choice(self._keys))

    def _merge(self) -> bool:
        return _done(self._cluster.merge, self._a_region())

    def _transfer(self) -> bool:
        return _done(self._cluster.transfer_leader, self._a_region())

    def _store_down(self) -> bool:
        """Stop one store at a time: a stopped one is started first."""
        down = [number for number, store in self._cluster.stores.items() if not store.server.up]
        for number in down:
            self._cluster.store_up(number)
        if not down:
            self._cluster.store_down(self._a_store())
        return not down

    def _slow_store(self) -> bool:
        store = self._a_store()
        slow = self._cluster.stores[store].slow_seconds
        self._cluster.slow_store(store, 0 if slow else 0.002)
        return not slow

    def _lock(self) -> bool:
        key, committed = self._random.choice(self._keys), self._random.random() < 0.5
        return _done(lambda: self._cluster.leave_lock(key + b"~left", ttl_ms=1, committed=committed))

    def _async_lock(self) -> bool:
        key, complete = self._random.choice(self._keys), self._random.random() < 0.5
        leave = self._cluster.leave_async_commit
        return _done(lambda: leave(key + b"~left", ttl_ms=1, complete=complete))

    def _fail_next(self) -> bool:
        """Inject an error; it is counted when a request gets it."""
        words = [word for word in WORDS if word not in FATAL]
        self._cluster.fail_next(self._a_region(), self._random.choice(words))
        return False

    def _fail_feed(self) -> bool:
        return bool(self._cluster.fail_feed(self._a_region(), self._random.choice(FEED_ENDS)))

    def _hold_scans(self) -> bool:
        """Hold scans on a store, or release them if they are held."""
        store = self._a_store()
        held = self._cluster.stores[store].change_data.scans.held is not None
        (self._cluster.free_scans if held else self._cluster.hold_scans)(store)
        return not held

    def _pause_resolved(self) -> bool:
        paused = self._cluster.resolved.paused
        (self._cluster.resume_resolved if paused else self._cluster.pause_resolved)()
        return not paused

    def _pd_leader(self) -> bool:
        before = self._cluster.pd.leader
        return self._cluster.pd_leader() != before

    def _pd_down(self) -> bool:
        up = self._cluster.pd.members[0].server.up
        (self._cluster.pd_down if up else self._cluster.pd_up)()
        return up

    def _clock(self) -> bool:
        self._cluster.jump_clock(self._random.choice((-30.0, 5.0)))
        return True


def _done(work: Callable[..., object], *arguments: object) -> bool:
    """True if the fault was possible in the cluster's present state."""
    try:
        work(*arguments)
    except (ValueError, Rejected):
        return False
    return True
