"""Where the rows of copies are: the file and the row of each key, on disk.

The index is only a cache of the tables' files, which never change: what it says of a file stays true. A place
counts only if the table has that file now, and the file's deletion vector doesn't have that row. So nothing
is undone after a commit that failed, and an index that is old, or lost, is completed by reading the key
columns of the files that it doesn't know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .....store.map import Map
from .....store.temporary import temporary_directory

FileId = bytes
"""Digest of the name under which a file's keys were read."""
_ID_BYTES: Final = 8
PLACE: Final = np.dtype([("file", f"u{_ID_BYTES}"), ("row", ">u4")])
"""A row by its file's id and its number, as the index has it; the file is 0 if there is none."""
Places: TypeAlias = npt.NDArray[Any]
"""Array of PLACE: a commit of a million keys has no object for each place."""
_TABLE: Final = b"t"
_FILE: Final = b"f"
_KEY: Final = b"k"


class Found(NamedTuple):
    """The entries of some keys, in their order."""

    now: Places
    """Where the rows are."""
    committed: Places
    """Where they were as of the last commit, for `put`."""


class KeyIndex:
    """The keys of all tables of one sink. Any thread, but `close` comes last.

    All raise StoreError if the disk fails.
    """

    def __init__(self, directory: Path | None) -> None:
        """Without a directory it is in a temporary one, and forgotten by `close`."""
        self._directory: Final = directory
        self._stack: Final = ExitStack()
        self._lock: Final = Lock()
        self._map: Map | None = None

    def keys(self, folder: str, signature: str) -> TableKeys:
        """Return the keys of the table in a folder. Keys of another signature, which says what the key is
        made of, are forgotten."""
        return TableKeys(self._opened(), folder, signature)

    def _opened(self) -> Map:
        with self._lock:
            if self._map is None:
                directory = self._directory or self._stack.enter_context(temporary_directory("keys"))
                self._map = Map(directory / "keys" if self._directory is None else directory)
            return self._map

    def close(self) -> None:
        """Release the directory. Safe to repeat; used again, it is opened again."""
        with self._lock:
            if self._map is not None:
                self._map.close()
            self._map = None
            self._stack.close()


class TableKeys:
    """The keys of one table. Used by one thread at a time."""

    def __init__(self, pairs: Map, folder: str, signature: str) -> None:
        self._map: Final = pairs
        self.signature: Final = signature
        self._prefix: Final = _digest(f"{folder}\n{signature}")
        name = _TABLE + folder.encode()
        (known,) = pairs.get([name])
        if known is not None and known != self._prefix:
            pairs.remove_prefix(known)
        if known != self._prefix:
            pairs.put([name], [self._prefix])
        marks = pairs.pairs(self._prefix + _FILE)
        self.files: Final[dict[str, FileId]] = {path.decode(): file for path, file in marks}
        """The files whose keys are known, by path."""

    def find(
        self,
        keys: Sequence[bytes],
        is_present: Callable[[FileId, npt.NDArray[Any]], npt.NDArray[np.bool_]],
        committed: Collection[FileId],
    ) -> Found:
        """Return what is known of each key. `is_present` says of a file's rows which of them the table has
        now, and `committed` are the files that it had as of the last commit."""
        prefix = self._prefix + _KEY
        entries = [entry or b"" for entry in self._map.get([prefix + key for key in keys])]
        width = max(PLACE.itemsize, *map(len, entries))
        padded = b"".join([entry.ljust(width, b"\0") for entry in entries])
        places = np.frombuffer(padded, PLACE)
        counts = np.zeros(len(places), np.bool_)
        for file, own in by_file(places):
            counts[own] = is_present(file, places["row"][own])
        was = np.isin(places["file"], np.frombuffer(b"".join(committed), PLACE["file"]))
        return Found(*[_first(places, which, len(keys)) for which in (counts, was)])

    def put(
        self, file: FileId, keys: Sequence[bytes], rows: npt.ArrayLike, committed: Places | None = None
    ) -> None:
        """Note keys of a file with their rows, and with the places that `find` returned as committed: they
        count if the new file isn't committed."""
        entries = np.zeros((len(keys), 2), PLACE)
        entries["file"][:, 0] = np.frombuffer(file, PLACE["file"])
        entries["row"][:, 0] = rows
        if committed is not None:
            entries[:, 1] = committed
        sizes = np.where(entries["file"][:, 1] != 0, 2, 1) * PLACE.itemsize
        content, prefix = entries.tobytes(), self._prefix + _KEY
        starts = range(0, len(content), 2 * PLACE.itemsize)
        values = [content[start : start + size] for start, size in zip(starts, sizes.tolist(), strict=True)]
        self._map.put([prefix + key for key in keys], values)

    def know(self, path: str, file: FileId) -> None:
        """Note that all keys of a file are there by an id: its own, or that of a file with the same rows."""
        self._map.put([self._prefix + _FILE + path.encode()], [file])  # after its keys: see Map
        self.files[path] = file

    def forget(self, keys: Sequence[bytes], paths: Sequence[str]) -> None:
        """Forget keys that have no row, and files that the table doesn't have."""
        own = [self._prefix + _KEY + key for key in keys]
        self._map.remove([*own, *[self._prefix + _FILE + path.encode() for path in paths]])
        for path in paths:
            del self.files[path]


def id_of(path: str) -> FileId:
    """Return the id of a file whose keys are read from it."""
    return _digest(path)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=_ID_BYTES).digest()


def by_file(places: Places) -> Iterator[tuple[FileId, npt.NDArray[np.intp]]]:
    """Yield each file of some places with their indices."""
    files = places["file"]
    order = np.argsort(files, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(files[order])) + 1):
        if own.size and files[own[0]]:
            yield files[own[0]].tobytes(), own


def _first(places: Places, counts: npt.NDArray[np.bool_], keys: int) -> Places:
    """Return the first place of each key that counts. All keys have the same number of places."""
    counting = counts.reshape(keys, -1)
    first: Places = places.reshape(keys, -1)[np.arange(keys), counting.argmax(axis=1)]
    first[~counting.any(axis=1)] = np.zeros((), PLACE)
    return first
