"""Where the encoded table infos of a schema history lie: on disk, in windows that are dropped whole."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ...store.batch import Batch
from ...store.generation import Generation
from ...store.store import Store

_WRITE_BYTES: Final = 1 << 20
"""Infos are written in batches of about this much; until then they are in memory."""

_MOVE_BELOW: Final = 0.25
"""A window of which less than this share is still needed is emptied into the current one."""


class Place(Struct, gc=False, eq=False):
    """Where a blob is. Owned by its Infos."""

    number: int
    size: int
    window: Generation | None = None
    """None while it is in memory."""


class _Needed:
    """What is needed of a window."""

    __slots__ = ("bytes", "places")

    def __init__(self) -> None:
        self.places: set[Place] = set()
        self.bytes = 0


class Infos:
    """A log of blobs over a Store. Not thread-safe: its owner has a lock. Raises StoreError everywhere.

    A window goes once none of its blobs is needed; what little is left of an old one is written anew,
    so that the disk holds at most about four times what is needed.
    """

    def __init__(self, store: Store) -> None:
        self._store: Final = store
        self._next = 0
        self._batched: dict[Place, bytes] = {}
        self._batched_bytes = 0
        self._needed: dict[Generation, _Needed] = {}
        self.bytes = 0
        """Of all that is needed."""

    def put(self, blob: bytes) -> Place:
        """Keep a blob."""
        self._next += 1
        place = Place(self._next, len(blob))
        self.bytes += place.size
        self._add(place, blob)
        return place

    def get(self, place: Place) -> bytes:
        """The blob at a place that was not forgotten."""
        if place.window is None:
            return self._batched[place]
        blob = self._store.get(place.window, _key(place))
        assert blob is not None
        return blob

    def forget(self, place: Place) -> None:
        """The blob isn't needed any more."""
        self.bytes -= place.size
        if place.window is None:
            del self._batched[place]
            self._batched_bytes -= place.size
        else:
            needed = self._needed[place.window]
            needed.places.remove(place)
            needed.bytes -= place.size

    def tidy(self) -> None:
        """Drop the windows of which hardly anything is needed."""
        for window in self._store.ended():
            needed = self._needed[window]
            if needed.bytes < window.bytes * _MOVE_BELOW:
                for place in needed.places:
                    self._add(place, self.get(place))
                del self._needed[window]
                self._store.drop(window)

    def _add(self, place: Place, blob: bytes) -> None:
        place.window = None
        self._batched[place] = blob
        self._batched_bytes += place.size
        if self._batched_bytes >= _WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        batch = Batch()
        for place, blob in self._batched.items():
            batch.put(_key(place), blob, 0)
        window = self._store.write(batch)
        for place in self._batched:
            place.window = window
        needed = self._needed.setdefault(window, _Needed())
        needed.places.update(self._batched)
        needed.bytes += self._batched_bytes
        self._batched.clear()
        self._batched_bytes = 0


def _key(place: Place) -> bytes:
    return place.number.to_bytes(8, "big")
