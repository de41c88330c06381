"""The rows and locks of one region in memory: the contents of Percolator's three columns.

A lock holds the value until it is committed. The newest version of a key is separate from the older ones, so
that a key written once costs one entry.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from operator import attrgetter
from typing import TypeVar

from msgspec import Struct

from ..codec.proto import kvrpcpb
from ..events import Ts

PUT: int = kvrpcpb.Op.Put
DELETE: int = kvrpcpb.Op.Del
LOCK: int = kvrpcpb.Op.Lock
INSERT: int = kvrpcpb.Op.Insert
PESSIMISTIC: int = kvrpcpb.Op.PessimisticLock
CHECK_NOT_EXISTS: int = kvrpcpb.Op.CheckNotExists
SHARED: int = kvrpcpb.Op.SharedLock
SHARED_PESSIMISTIC: int = kvrpcpb.Op.SharedPessimisticLock

T = TypeVar("T")


class Write(Struct, gc=False):
    """A committed version; `op` is PUT, DELETE or LOCK."""

    commit_ts: Ts
    start_ts: Ts
    op: int
    value: bytes


class Attempt(Struct, gc=False):
    """The part that the locks of one transaction share, from one prewrite request."""

    start_ts: Ts
    primary: bytes
    ttl_ms: int
    size: int = 0
    min_commit_ts: Ts = 0
    for_update_ts: Ts = 0
    floor: Ts = 0
    """Highest resolved ts that was sent while it was open: it must commit above."""
    async_commit: bool = False
    """True if it is committed as soon as all keys are locked, at the maximum of their min_commit_ts."""
    secondaries: tuple[bytes, ...] = ()
    """The other keys of an async commit; only the primary lock names them."""


class Lock(Struct, gc=False):
    """A lock; `op` is PUT, DELETE, LOCK, PESSIMISTIC, SHARED or SHARED_PESSIMISTIC."""

    attempt: Attempt
    op: int
    value: bytes
    generation: int = 0

    @property
    def start_ts(self) -> Ts:
        return self.attempt.start_ts

    @property
    def shared(self) -> bool:
        """True if other transactions may lock the key in the same way."""
        return self.op in (SHARED, SHARED_PESSIMISTIC)

    @property
    def pessimistic(self) -> bool:
        """True if a prewrite is to replace it."""
        return self.op in (PESSIMISTIC, SHARED_PESSIMISTIC)


class Shard:
    """Versions and locks by raw key. To be used in the loop's thread only."""

    __slots__ = ("_fresh", "_keys", "latest", "locks", "older", "open", "rollbacks", "shared")

    def __init__(self) -> None:
        self.latest: dict[bytes, Write] = {}
        self.older: dict[bytes, list[Write]] = {}
        """Older versions, ascending; only of keys written more than once."""
        self.locks: dict[bytes, Lock] = {}
        """Exclusive locks."""
        self.shared: dict[bytes, dict[Ts, Lock]] = {}
        """Shared locks by start ts; no key is both here and in `locks`."""
        self.rollbacks: dict[bytes, set[Ts]] = {}
        self.open: dict[Ts, list[int]] = {}
        """By start ts: the number of locks that hold back the resolved ts, and their floor."""
        self._keys: list[bytes] = []
        self._fresh: list[bytes] = []
        """Keys added since `_keys` was sorted."""

    def sorted_keys(self) -> list[bytes]:
        """Return all keys, sorted; the caller must not change or keep the list."""
        if self._fresh:
            self._keys += self._fresh
            self._keys.sort()
            self._fresh = []
        return self._keys

    def range(self, start: bytes, end: bytes) -> list[bytes]:
        """Return the keys in [start, end), raw; an empty end is open."""
        keys = self.sorted_keys()
        return keys[bisect_left(keys, start) : bisect_left(keys, end) if end else len(keys)]

    def versions(self, key: bytes) -> Iterator[Write]:
        """Yield the versions of a key, newest first."""
        latest = self.latest.get(key)
        if latest is not None:
            yield latest
            yield from reversed(self.older.get(key, ()))

    def read(self, key: bytes, ts: Ts) -> Write | None:
        """Return the version that a snapshot at `ts` sees; None if there is none or it is a delete."""
        for write in self.versions(key):
            if write.commit_ts <= ts and write.op != LOCK:
                return write if write.op == PUT else None
        return None

    def value(self, key: bytes) -> bytes:
        """Return the newest value, b"" if there is none: the old value of the next change."""
        write = self.latest.get(key)
        if write is not None and write.op == LOCK:
            write = next((write for write in self.versions(key) if write.op != LOCK), None)
        return b"" if write is None else write.value

    def lock_of(self, key: bytes, start_ts: Ts) -> Lock | None:
        """Return this transaction's lock on a key."""
        lock = self.locks.get(key)
        if lock is not None and lock.start_ts == start_ts:
            return lock
        return self.shared[key].get(start_ts) if key in self.shared else None

    def locks_on(self, key: bytes) -> list[Lock]:
        """Return all locks on a key, by start ts: one exclusive lock, or any number of shared ones."""
        if key in self.shared:
            return [lock for _, lock in sorted(self.shared[key].items())]
        return [self.locks[key]] if key in self.locks else []

    def locked(self, start_ts: Ts) -> list[bytes]:
        """Return the keys that this transaction has locked."""
        return [key for key in [*self.locks, *self.shared] if self.lock_of(key, start_ts) is not None]

    def lock(self, key: bytes, lock: Lock) -> None:
        """Add a lock, or replace the transaction's former one."""
        if not self._known(key):
            self._fresh.append(key)
        if self.lock_of(key, lock.start_ts) is not None:
            self.unlock(key, lock.start_ts)
        if lock.shared:
            self.shared.setdefault(key, {})[lock.start_ts] = lock
        else:
            self.locks[key] = lock
        self._count(lock, 1)

    def unlock(self, key: bytes, start_ts: Ts) -> Lock:
        """Remove and return this transaction's lock on a key."""
        if key in self.shared:
            lock = self.shared[key].pop(start_ts)
            if not self.shared[key]:
                del self.shared[key]
            return lock
        lock = self.locks.pop(key)
        self._count(lock, -1)
        return lock

    def release(self, key: bytes, start_ts: Ts) -> None:
        """Remove this transaction's lock on a key that keeps its versions."""
        self.unlock(key, start_ts)
        if not self._known(key):
            self.forget([key])

    def add(self, key: bytes, write: Write) -> None:
        """Add a committed version; its key was locked.

        It may be older than the newest one: transactions with shared locks commit in any order.
        """
        before = self.latest.get(key)
        if before is not None and before.commit_ts > write.commit_ts:
            insort(self.older.setdefault(key, []), write, key=attrgetter("commit_ts"))
            return
        if before is not None:
            self.older.setdefault(key, []).append(before)
        self.latest[key] = write

    def roll_back(self, key: bytes, start_ts: Ts) -> None:
        """Prevent this transaction from locking the key again."""
        if not self._known(key):
            self._fresh.append(key)
        self.rollbacks.setdefault(key, set()).add(start_ts)

    def _known(self, key: bytes) -> bool:
        return key in self.latest or key in self.rollbacks or key in self.locks or key in self.shared

    def _count(self, lock: Lock, by: int) -> None:
        """Count a lock; only locks that carry data hold back the resolved ts, as in TiKV."""
        if lock.op not in (PUT, DELETE):
            return
        held = self.open.setdefault(lock.attempt.start_ts, [0, 0])
        held[0] += by
        held[1] = max(held[1], lock.attempt.floor)
        if not held[0]:
            del self.open[lock.attempt.start_ts]

    def resolved(self, now: Ts) -> Ts:
        """Return the resolved ts: below the open transactions, otherwise `now`."""
        return min((max(start, floor) for start, (_, floor) in self.open.items()), default=now)

    def forget(self, keys: list[bytes]) -> None:
        """Remove keys that have neither versions nor locks."""
        gone = set(keys)
        self._keys = [key for key in self.sorted_keys() if key not in gone]

    def split(self, raw: bytes) -> Shard:
        """Remove the keys below `raw`; return the shard that contains them."""
        left = Shard()
        keys = self.sorted_keys()
        middle = bisect_left(keys, raw)
        left._keys, self._keys = keys[:middle], keys[middle:]
        left._take(self, left._keys)
        self._recount()
        return left

    def absorb(self, other: Shard) -> None:
        """Add all of a neighbour's versions and locks."""
        keys = other.sorted_keys()
        self._keys = sorted(self.sorted_keys() + keys)
        self._take(other, keys)

    def _take(self, other: Shard, keys: list[bytes]) -> None:
        self._move(self.latest, other.latest, keys)
        self._move(self.older, other.older, keys)
        self._move(self.locks, other.locks, keys)
        self._move(self.shared, other.shared, keys)
        self._move(self.rollbacks, other.rollbacks, keys)
        self._recount()

    @staticmethod
    def _move(mine: dict[bytes, T], theirs: dict[bytes, T], keys: list[bytes]) -> None:
        if theirs:
            mine.update({key: theirs.pop(key) for key in keys if key in theirs})

    def _recount(self) -> None:
        self.open = {}
        for lock in self.locks.values():
            self._count(lock, 1)
