"""Storage of a schema history's encoded table infos: on disk, in generations that are dropped whole."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Struct

from ...codec.tidb.table_info import TableInfo
from ...store.batch import PairBatch
from ...store.generation import Generation
from ...store.store import Store

_WRITE_BYTES: Final = 1 << 20
"""Bytes of a batch of infos, about; until it is written they are in memory."""

_MOVE_BELOW: Final = 0.25
"""Share of needed bytes below which a generation's infos are moved into the current one."""


class StoredInfo(Struct, gc=False, eq=False):
    """Location of a blob. Owned by its Infos."""

    number: int
    size: int
    generation: Generation | None = None
    """None while the blob is in memory."""


class _Needed:
    """The needed blobs of a generation, and their bytes."""

    __slots__ = ("bytes", "places")

    def __init__(self) -> None:
        self.places: set[StoredInfo] = set()
        self.bytes = 0


class Infos:
    """A log of blobs in a Store. Not thread-safe: its owner has a lock. All methods raise StoreError.

    A generation is dropped once none of its blobs is needed. The last few needed blobs of an old generation
    are rewritten, so that the disk holds at most about four times the needed bytes.
    """

    def __init__(self, store: Store) -> None:
        self._store: Final = store
        self._next = 0
        self._batched: dict[StoredInfo, bytes] = {}
        self._batched_bytes = 0
        self._needed: dict[Generation, _Needed] = {}
        self.bytes = 0
        """Total bytes of needed blobs."""

    def put(self, blob: bytes) -> StoredInfo:
        """Store a blob; return its place."""
        self._next += 1
        place = StoredInfo(self._next, len(blob))
        self.bytes += place.size
        self._add(place, blob)
        return place

    def get(self, place: StoredInfo) -> bytes:
        """Return the blob at a place that wasn't forgotten."""
        if place.generation is None:
            return self._batched[place]
        blob = self._store.get(place.generation, _key(place))
        assert blob is not None
        return blob

    def forget(self, place: StoredInfo) -> None:
        """Mark a blob as no longer needed."""
        self.bytes -= place.size
        if place.generation is None:
            del self._batched[place]
            self._batched_bytes -= place.size
        else:
            needed = self._needed[place.generation]
            needed.places.remove(place)
            needed.bytes -= place.size

    def tidy(self) -> None:
        """Drop ended generations of which less than a quarter is needed, after moving that."""
        for generation in self._store.ended():
            needed = self._needed[generation]
            if needed.bytes < generation.bytes * _MOVE_BELOW:
                for place in needed.places:
                    self._add(place, self.get(place))
                del self._needed[generation]
                self._store.drop(generation)

    def _add(self, place: StoredInfo, blob: bytes) -> None:
        place.generation = None
        self._batched[place] = blob
        self._batched_bytes += place.size
        if self._batched_bytes >= _WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        batch = PairBatch()
        for place, blob in self._batched.items():
            batch.put(_key(place), blob, 0)
        generation = self._store.write(batch)
        for place in self._batched:
            place.generation = generation
        needed = self._needed.setdefault(generation, _Needed())
        needed.places.update(self._batched)
        needed.bytes += self._batched_bytes
        self._batched.clear()
        self._batched_bytes = 0


def _key(place: StoredInfo) -> bytes:
    return place.number.to_bytes(8, "big")


class InfoCache:
    """Keeps up to `limit` bytes of infos, measured as stored. Not thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit: Final = limit
        self._infos: OrderedDict[StoredInfo, TableInfo] = OrderedDict()
        self._bytes = 0

    def get(self, place: StoredInfo) -> TableInfo | None:
        info = self._infos.get(place)
        if info is not None:
            self._infos.move_to_end(place)
        return info

    def put(self, place: StoredInfo, info: TableInfo) -> None:
        self._infos[place] = info
        self._bytes += place.size
        while self._bytes > self._limit and len(self._infos) > 1:
            self.forget(next(iter(self._infos)))

    def forget(self, place: StoredInfo) -> None:
        if self._infos.pop(place, None) is not None:
            self._bytes -= place.size
