"""The rows and locks of one region, in memory: what Percolator keeps in its three columns.

A lock holds the value until it is committed; the newest version of a key stands apart from the older
ones, so that a key written once costs one entry.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
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

T = TypeVar("T")


class Write(Struct, gc=False):
    """A committed version; `op` is PUT, DELETE or LOCK."""

    commit_ts: Ts
    start_ts: Ts
    op: int
    value: bytes


class Attempt(Struct, gc=False):
    """What the locks of one transaction share, as one prewrite request told it."""

    start_ts: Ts
    primary: bytes
    ttl_ms: int
    size: int = 0
    min_commit_ts: Ts = 0
    for_update_ts: Ts = 0
    floor: Ts = 0
    """Up to here a resolved ts was sent while it was open: it must commit above."""


class Lock(Struct, gc=False):
    """`op` is PUT, DELETE, LOCK or PESSIMISTIC."""

    attempt: Attempt
    op: int
    value: bytes
    generation: int = 0

    @property
    def start_ts(self) -> Ts:
        return self.attempt.start_ts


class Shard:
    """Raw keys to versions and locks. Loop thread only."""

    __slots__ = ("_fresh", "_keys", "latest", "locks", "older", "open", "rollbacks")

    def __init__(self) -> None:
        self.latest: dict[bytes, Write] = {}
        self.older: dict[bytes, list[Write]] = {}
        """Ascending; only of keys written more than once."""
        self.locks: dict[bytes, Lock] = {}
        self.rollbacks: dict[bytes, set[Ts]] = {}
        self.open: dict[Ts, list[int]] = {}
        """By start ts: how many locks hold the resolved ts, and the floor under it."""
        self._keys: list[bytes] = []
        self._fresh: list[bytes] = []
        """Keys that came since `_keys` was sorted."""

    def sorted_keys(self) -> list[bytes]:
        """All keys, sorted; the caller must not change or keep it."""
        if self._fresh:
            self._keys += self._fresh
            self._keys.sort()
            self._fresh = []
        return self._keys

    def range(self, start: bytes, end: bytes) -> list[bytes]:
        """The keys in [start, end), raw; an empty end is open."""
        keys = self.sorted_keys()
        return keys[bisect_left(keys, start) : bisect_left(keys, end) if end else len(keys)]

    def versions(self, key: bytes) -> Iterator[Write]:
        """Newest first."""
        latest = self.latest.get(key)
        if latest is not None:
            yield latest
            yield from reversed(self.older.get(key, ()))

    def read(self, key: bytes, ts: Ts) -> Write | None:
        """The version that a snapshot at `ts` sees; None if there is none or it is a delete."""
        for write in self.versions(key):
            if write.commit_ts <= ts and write.op != LOCK:
                return write if write.op == PUT else None
        return None

    def value(self, key: bytes) -> bytes:
        """The newest value, b"" if there is none: the old value of what comes next."""
        write = self.latest.get(key)
        if write is not None and write.op == LOCK:
            write = next((write for write in self.versions(key) if write.op != LOCK), None)
        return b"" if write is None else write.value

    def lock(self, key: bytes, lock: Lock) -> None:
        """Put a lock, or the same transaction's newer one in its place."""
        held = self.locks.get(key)
        if held is not None:
            self._count(held, -1)
        elif key not in self.latest and key not in self.rollbacks:
            self._fresh.append(key)
        self.locks[key] = lock
        self._count(lock, 1)

    def unlock(self, key: bytes) -> Lock:
        lock = self.locks.pop(key)
        self._count(lock, -1)
        return lock

    def add(self, key: bytes, write: Write) -> None:
        """Commit a version; its key was locked."""
        before = self.latest.get(key)
        if before is not None:
            self.older.setdefault(key, []).append(before)
        self.latest[key] = write

    def roll_back(self, key: bytes, start_ts: Ts) -> None:
        """Note that this transaction can never lock the key again."""
        if key not in self.latest and key not in self.rollbacks and key not in self.locks:
            self._fresh.append(key)
        self.rollbacks.setdefault(key, set()).add(start_ts)

    def _count(self, lock: Lock, by: int) -> None:
        """Only locks that carry data hold the resolved ts, as in TiKV."""
        if lock.op not in (PUT, DELETE):
            return
        held = self.open.setdefault(lock.attempt.start_ts, [0, 0])
        held[0] += by
        held[1] = max(held[1], lock.attempt.floor)
        if not held[0]:
            del self.open[lock.attempt.start_ts]

    def resolved(self, now: Ts) -> Ts:
        """Up to where all is known: below what is open, else `now`."""
        return min((max(start, floor) for start, (_, floor) in self.open.items()), default=now)

    def forget(self, keys: list[bytes]) -> None:
        """Take keys out that have neither versions nor locks left."""
        gone = set(keys)
        self._keys = [key for key in self.sorted_keys() if key not in gone]

    def split(self, raw: bytes) -> Shard:
        """Take the keys below `raw` out; the shard of those."""
        left = Shard()
        keys = self.sorted_keys()
        middle = bisect_left(keys, raw)
        left._keys, self._keys = keys[:middle], keys[middle:]
        left._take(self, left._keys)
        self._recount()
        return left

    def absorb(self, other: Shard) -> None:
        """Take all of a neighbour's."""
        keys = other.sorted_keys()
        self._keys = sorted(self.sorted_keys() + keys)
        self._take(other, keys)

    def _take(self, other: Shard, keys: list[bytes]) -> None:
        self._move(self.latest, other.latest, keys)
        self._move(self.older, other.older, keys)
        self._move(self.locks, other.locks, keys)
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
