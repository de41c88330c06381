"""Reading a stretch of keys in order."""

from __future__ import annotations

from rocksdict import RdictIter, ReadOptions

from ..errors import StoreError
from .generation import Generation


class Iterator:
    """The pairs of a window from `lower` up to but not including `upper`, in key order.

    Raises StoreError where RocksDB can't read on: its iterators just become invalid then, so that
    a plain loop over a damaged file ends early and silently.
    """

    __slots__ = ("_iterator", "_options", "_path")

    def __init__(self, window: Generation, lower: bytes, upper: bytes, path: str) -> None:
        options = ReadOptions()
        options.set_iterate_upper_bound(upper)
        self._options = options  # RocksDB keeps a pointer into it
        self._path = path
        self._iterator: RdictIter = window.family.iter(options)
        self._iterator.seek(lower)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> tuple[bytes, bytes]:
        iterator = self._iterator
        if not iterator.valid():
            try:
                iterator.status()
            except Exception as error:
                raise StoreError(f"store {self._path} can't be read: {error}") from error
            raise StopIteration
        pair = iterator.key(), iterator.value()
        iterator.next()
        return pair
