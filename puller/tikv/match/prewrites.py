"""A region's prewrites that wait for their commit: in memory, and beyond the feed's bound on disk."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise, repeat
from typing import Final, TypeAlias

from msgspec import Struct, msgpack
from msgspec.structs import astuple

from ....codec.proto.columns import Rows
from .spill import BLOCK_BYTES, ROW_BYTES, Place, Quota

Key: TypeAlias = tuple[int, bytes]
"""start ts and raw key."""


class Entry(Struct, frozen=True, gc=False):
    """The part of a prewrite that its commit needs."""

    value: bytes
    old_value: bytes
    generation: int = 0


_encode: Final = msgpack.Encoder().encode
_decode: Final = msgpack.Decoder(list[tuple[int, bytes, bytes, bytes, int]]).decode


class _Run:
    """The blocks of one spill: disjoint and in order, each with its first and last key."""

    __slots__ = ("firsts", "lasts", "places")

    def __init__(self) -> None:
        self.firsts: list[Key] = []
        self.lasts: list[Key] = []
        self.places: list[Place] = []

    def add(self, keys: Sequence[Key], place: Place) -> None:
        self.firsts.append(keys[0])
        self.lasts.append(keys[-1])
        self.places.append(place)

    def take(self, keys: Sequence[Key]) -> list[Place]:
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
    """

    __slots__ = ("__weakref__", "_entries", "_generations", "_quota", "_recent", "_runs", "bytes")

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._entries: dict[Key, Entry] = {}
        self._recent: Rows | None = None
        """All prewrites, as received in one message: often they are also committed in one. None if the
        prewrites are in the other containers."""
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
        if not self and not self._generations and all(rows.values):
            self._recent = rows
            self._count(_total(rows.keys, rows.values, rows.old_values))
            return True
        self._unpack()
        return self._put_all(rows)

    def take_recent(self, rows: Rows) -> tuple[Sequence[bytes], Sequence[bytes]] | None:
        """Remove the prewrites of some commits and return their values and old values, if these are exactly
        the last message's: in a third of the time of `take_many`. Otherwise None, and nothing is removed."""
        recent = self._recent
        if recent is None or recent.start_ts != rows.start_ts or recent.keys != rows.keys:
            return None
        self._recent = None
        self._count(-self.bytes)
        return recent.values, recent.old_values

    def _unpack(self) -> None:
        """Move the last message's prewrites to where single ones are found."""
        recent, self._recent = self._recent, None
        if recent is not None:
            self._count(-self.bytes)
            self._put_all(recent)

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
            sizes = [_size((0, key), entry) for key, entry in zip(keys, found, strict=True) if entry]
            self._count(-sum(sizes))
        else:
            self._count(-self.bytes)
            self._entries = {}  # a dict doesn't shrink by itself
        return found

    def spill(self, least: int) -> None:
        """Write the oldest transactions, or parts of them, to disk. Raises StoreError; then nothing is
        lost."""
        self._unpack()
        keys = sorted(self._entries)
        run = _Run()
        done = 0
        goal = max(0, self.bytes - least)
        self._runs.append(run)
        while done < len(keys) and self.bytes > goal:
            done = self._spill_blocks(run, keys, done, goal)
        if not self._entries:
            self._entries = {}

    def clear(self) -> None:
        """Drop all prewrites, on disk too."""
        runs, self._runs = self._runs, []
        self._entries = {}
        self._recent = None
        self._count(-self.bytes)
        self._quota.shared.free([place for run in runs for place in run.places])

    def __len__(self) -> int:
        """Number of prewrites in memory."""
        return len(self._entries) + (len(self._recent) if self._recent is not None else 0)

    def __bool__(self) -> bool:
        return bool(self._entries or self._runs or self._recent)

    @property
    def blocks(self) -> int:
        """Number of blocks on disk."""
        return sum(len(run.places) for run in self._runs)

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


def _total(*columns: Sequence[bytes]) -> int:
    """Sum the sizes that _size gives, over columns; joining is three times as fast as adding lengths."""
    return ROW_BYTES * len(columns[0]) + sum(len(b"".join(column)) for column in columns)


def _replaces(entry: Entry, there: Entry) -> bool:
    """True if a prewrite takes precedence over another of the same key and transaction, in either order."""
    if entry.generation != there.generation:
        return entry.generation > there.generation
    return bool(entry.value)
