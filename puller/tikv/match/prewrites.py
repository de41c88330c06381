"""A region's prewrites that wait for their commit: in memory, and beyond the feed's bound on disk."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import compress, islice, pairwise, repeat
from operator import attrgetter, lt
from typing import Final, TypeAlias

from msgspec import Struct, msgpack
from msgspec.structs import astuple

from ....codec.proto.columns import Rows
from .spill import BLOCK_BYTES, QUEUED_BYTES, ROW_BYTES, Quota, SpilledBlock

Key: TypeAlias = tuple[int, bytes]
"""start ts and raw key."""


class Entry(Struct, frozen=True, gc=False):
    """The part of a prewrite that its commit needs."""

    value: bytes
    old_value: bytes
    generation: int = 0


_value: Final = attrgetter("value")
_old_value: Final = attrgetter("old_value")
_encode: Final = msgpack.Encoder().encode
_decode: Final = msgpack.Decoder(list[tuple[int, bytes, bytes, bytes, int]]).decode


class _Queued(Struct, gc=False):
    """The prewrites of one message that wait in a queue."""

    rows: Rows
    at: int
    """Number of rows that were taken."""
    size: int
    """Bytes accounted for all rows, until the last one is taken."""

    @property
    def last(self) -> Key:
        return self.rows.start_ts[-1], self.rows.keys[-1]

    def remaining(self) -> Rows:
        return self.rows.pick([at >= self.at for at in range(len(self.rows))]) if self.at else self.rows


class _Run:
    """The blocks of one spill: disjoint and in order, each with its first and last key."""

    __slots__ = ("firsts", "lasts", "places")

    def __init__(self) -> None:
        self.firsts: list[Key] = []
        self.lasts: list[Key] = []
        self.places: list[SpilledBlock] = []

    def add(self, keys: Sequence[Key], place: SpilledBlock) -> None:
        self.firsts.append(keys[0])
        self.lasts.append(keys[-1])
        self.places.append(place)

    def take(self, keys: Sequence[Key]) -> list[SpilledBlock]:
        """Remove and return the blocks that may contain one of these keys, which are in order."""
        firsts, lasts = self.firsts, self.lasts
        found = []
        for at in range(max(0, bisect_right(firsts, keys[0]) - 1), bisect_right(firsts, keys[-1])):
            key = bisect_left(keys, firsts[at])
            if key < len(keys) and keys[key] <= lasts[at]:
                found.append(at)
        places = [self.places[at] for at in found]
        for at in reversed(found):
            del firsts[at], lasts[at], self.places[at]
        return places


class Prewrites:
    """Prewrites by start ts and key. Like its quota, used in its region worker's turns only.

    A prewrite is in one place: a block that is needed is read back whole and is in memory again. So commits
    in roughly the order of keys, as TiDB sends them, read each block once, and a transaction of any size
    needs only an index entry per block.

    A transaction writes a key once (with pipelined DML once per generation, and the highest one counts). A
    repeated prewrite is identical, or lacks the value: then it is a heartbeat of the lock, and the first one
    is kept.

    Transactions are mostly committed in the order of their prewrites. As long as that is so, the columns are
    kept as received, and commits take rows from the front of them. The first one that doesn't fit moves all
    prewrites to a dict, until that is empty.
    """

    __slots__ = ("__weakref__", "_entries", "_generations", "_queue", "_quota", "_runs", "bytes")

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._entries: dict[Key, Entry] = {}
        self._queue: list[_Queued] = []
        """All prewrites, ascending by start ts and key; empty if they are in the other containers."""
        self._runs: list[_Run] = []
        self._generations = False
        self.bytes = 0
        """Bytes accounted for the prewrites in memory."""

    def put(self, key: Key, value: bytes, old_value: bytes, generation: int = 0, fake: bool = False) -> None:
        """Store a prewrite. A fake one, a PUT without a value, never replaces another."""
        self._unpack()
        if fake and self._runs:
            self._load([key])
        entry = Entry(value, old_value, generation)
        self._generations = self._generations or generation > 0
        there = self._entries.get(key)
        if there is None:
            self._entries[key] = entry
            self._count(_size(key, entry))
        elif not fake and _replaces(entry, there):
            self._entries[key] = entry
            self._count(_size(key, entry) - _size(key, there))

    def put_many(self, rows: Rows) -> bool:
        """Store prewrites of generation 0; False, and nothing stored, if they must be stored one by one."""
        if not rows.types:
            return True
        queue = self._queue
        if (queue or not self) and not self._generations and all(rows.values):
            last = queue[-1].last if queue else None
            if _ascends(rows, last):
                size = _total(rows.keys, rows.values, rows.old_values, each=QUEUED_BYTES)
                queue.append(_Queued(rows, 0, size))
                self._count(size)
                return True
        self._unpack()
        return self._put_all(rows)

    def take_first(self, rows: Rows) -> tuple[Sequence[bytes], Sequence[bytes]] | None:
        """Remove the prewrites of some commits and return their values and old values, if they are the first
        of the queue: in a third of the time of `take_many`. Otherwise None, and nothing is removed."""
        values: list[bytes] = []
        old_values: list[bytes] = []
        taken = done = rest = 0
        for queued in self._queue:
            own, start, first = queued.rows, queued.at, taken
            end = min(len(own), start + len(rows) - taken)
            taken += end - start
            if own.keys[start:end] != rows.keys[first:taken]:
                return None
            if own.start_ts[start:end] != rows.start_ts[first:taken]:
                return None
            values += own.values[start:end]
            old_values += own.old_values[start:end]
            rest = end if end < len(own) else 0
            done += not rest
            if taken == len(rows):
                break
        if taken < len(rows):
            return None
        self._count(-sum([queued.size for queued in self._queue[:done]]))
        del self._queue[:done]
        if self._queue:
            self._queue[0].at = rest
        return values, old_values

    def _unpack(self) -> None:
        """Move the queue to where single prewrites are found."""
        queue, self._queue = self._queue, []
        for queued in queue:
            self._count(-queued.size)
            self._put_all(queued.remaining())

    def _put_all(self, rows: Rows) -> bool:
        if self._generations:
            return False
        entries = self._entries
        before = len(entries)
        keys = zip(rows.start_ts, rows.keys, strict=True)
        new = zip(keys, map(Entry, rows.values, rows.old_values), strict=True)
        if all(rows.values):
            entries.update(new)
        else:
            fresh = dict(new)
            if len(fresh) < len(rows) or not fresh.keys().isdisjoint(entries):
                return False
            entries.update(fresh)
        if len(entries) - before == len(rows):
            self._count(_total(rows.keys, rows.values, rows.old_values))
        else:  # some were received twice
            self._count(sum(map(_size, entries.keys(), entries.values())) - self.bytes)
        return True

    def get(self, key: Key) -> Entry | None:
        """Return a prewrite without removing it."""
        self._unpack()
        if self._runs:
            self._load([key])
        return self._entries.get(key)

    def take(self, key: Key) -> Entry | None:
        """Remove and return a prewrite."""
        self._unpack()
        if self._runs:
            self._load([key])
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._count(-_size(key, entry))
        return entry

    def take_many(self, start_ts: Sequence[int], keys: Sequence[bytes]) -> list[Entry | None]:
        """Remove and return prewrites; None for a missing one."""
        self._unpack()
        if self._runs:
            self._load(sorted(zip(start_ts, keys, strict=True)))
        found = list(map(self._entries.pop, zip(start_ts, keys, strict=True), repeat(None)))
        if self._entries:
            there = [*compress(found, found)]
            taken = _total([*compress(keys, found)], [*map(_value, there)], [*map(_old_value, there)])
            self._count(-taken)
        else:
            self._count(-self.bytes)
            self._entries = {}  # a dict doesn't shrink by itself
        return found

    def spill(self, least: int) -> None:
        """Write the oldest transactions, or parts of them, to disk. Raises StoreError; then nothing is
        lost."""
        goal = max(0, self.bytes - least)
        run = _Run()
        self._runs.append(run)
        while self._queue and self.bytes > goal:  # one after the other: in the dict they take more memory
            queued = self._queue.pop(0)
            self._count(-queued.size)
            self._put_all(queued.remaining())
            self._spill_entries(run, goal)
        self._unpack()
        self._spill_entries(run, goal)

    def clear(self) -> None:
        """Drop all prewrites, on disk too."""
        runs, self._runs = self._runs, []
        self._entries = {}
        self._queue = []
        self._count(-self.bytes)
        self._quota.shared.free([place for run in runs for place in run.places])

    def __len__(self) -> int:
        """Number of prewrites in memory."""
        return len(self._entries) + sum([len(queued.rows) - queued.at for queued in self._queue])

    def __bool__(self) -> bool:
        return bool(self._entries or self._runs or self._queue)

    @property
    def blocks(self) -> int:
        """Number of blocks on disk."""
        return sum(len(run.places) for run in self._runs)

    def _spill_entries(self, run: _Run, goal: int) -> None:
        """Write entries to disk, in order, until `goal` bytes are left."""
        keys = sorted(self._entries)
        done = 0
        while done < len(keys) and self.bytes > goal:
            done = self._spill_blocks(run, keys, done, goal)
        if not self._entries:
            self._entries = {}

    def _spill_blocks(self, run: _Run, keys: Sequence[Key], done: int, goal: int) -> int:
        """Write about one batch to disk from the key with index `done` on; return the index of the next
        key."""
        entries = self._entries
        cuts = [done]
        freed = size = 0
        while cuts[-1] < len(keys) and len(cuts) <= _BATCH_BLOCKS and self.bytes - freed > goal:
            at = cuts[-1]
            size = 0
            while at < len(keys) and size < BLOCK_BYTES:
                size += _size(keys[at], entries[keys[at]])
                at += 1
            cuts.append(at)
            freed += size
        parts = [keys[a:b] for a, b in pairwise(cuts)]
        blocks = [_encode([(*key, *astuple(entries[key])) for key in part]) for part in parts]
        for part, place in zip(parts, self._quota.shared.write(blocks), strict=True):
            run.add(part, place)
            for key in part:
                del entries[key]
        self._count(-freed)
        return cuts[-1]

    def _load(self, keys: Sequence[Key]) -> None:
        """Read back every block that may contain one of these keys, which are in order."""
        places = [place for run in self._runs for place in run.take(keys)]
        if not places:
            return
        self._runs = [run for run in self._runs if run.places]
        shared = self._quota.shared
        for place in places:
            self._merge(_decode(shared.read(place)))
        shared.free(places)

    def _merge(self, block: Iterable[tuple[int, bytes, bytes, bytes, int]]) -> None:
        entries = self._entries
        grown = 0
        for start_ts, raw_key, value, old_value, generation in block:
            key = start_ts, raw_key
            entry = Entry(value, old_value, generation)
            there = entries.setdefault(key, entry)
            if there is entry:
                grown += _size(key, entry)
            elif _replaces(entry, there):
                entries[key] = entry
                grown += _size(key, entry) - _size(key, there)
        self._count(grown)

    def _count(self, by: int) -> None:
        if by:
            self._quota.grew(self, by)


_BATCH_BLOCKS: Final = 16


def _size(key: Key, entry: Entry) -> int:
    return ROW_BYTES + len(key[1]) + len(entry.value) + len(entry.old_value)


def _total(*columns: Sequence[bytes], each: int = ROW_BYTES) -> int:
    """Sum the sizes that _size gives, over columns; joining is three times as fast as adding lengths."""
    return each * len(columns[0]) + sum(len(b"".join(column)) for column in columns)


def _ascends(rows: Rows, last: Key | None) -> bool:
    """True if the prewrites ascend by start ts and key from `last` on; so no two are the same."""
    starts, keys = rows.start_ts, rows.keys
    if last is not None and last >= (starts[0], keys[0]):
        return False
    if starts.count(starts[0]) == len(starts):
        return all(map(lt, keys, islice(keys, 1, None)))
    if all(map(lt, starts, islice(starts, 1, None))):
        return True
    both = [*zip(starts, keys, strict=True)]
    return all(map(lt, both, islice(both, 1, None)))


def _replaces(entry: Entry, there: Entry) -> bool:
    """True if a prewrite takes precedence over another of the same key and transaction, in either order."""
    if entry.generation != there.generation:
        return entry.generation > there.generation
    return bool(entry.value)
