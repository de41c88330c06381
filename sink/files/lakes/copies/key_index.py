"""Where the rows of copies are: the file and the row of each key, on disk.

The index is only a cache of the tables' files, which never change: what it says of a file stays true. A place
counts only if the table has that file now, and the file's deletion vector doesn't have that row. So nothing
is undone after a commit that failed, and an index that is old, or lost, is completed by reading the key
columns of the files that it doesn't know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from .....store.map import Map
from .....store.temporary import temporary_directory

FileId = bytes
"""Digest of the name under which a file's keys were read."""
_ID_BYTES: Final = 8
_ROW_BYTES: Final = 4
_PLACE_BYTES: Final = _ID_BYTES + _ROW_BYTES
_TABLE: Final = b"t"
_FILE: Final = b"f"
_KEY: Final = b"k"


class Place(NamedTuple):
    """A row."""

    file: FileId
    row: int


class Found(NamedTuple):
    """The entry of a key."""

    place: Place | None
    """Where the row is; None if there is none."""
    places: bytes
    """All places of the key, for `put`."""


NOTHING: Final = Found(None, b"")


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
            pairs.put([(name, self._prefix)])
        marks = pairs.pairs(self._prefix + _FILE)
        self.files: Final[dict[str, FileId]] = {path.decode(): file for path, file in marks}
        """The files whose keys are known, by path."""

    def find(self, keys: Iterable[bytes], is_present: Callable[[FileId, int], bool]) -> Iterator[Found]:
        """Yield what is known of each key. `is_present` returns True for a row that the table has now."""
        prefix = self._prefix + _KEY
        for places in self._map.get([prefix + key for key in keys]):
            place = None
            for start in range(0, len(places or b""), _PLACE_BYTES):
                one = _place(places, start)  # type: ignore[arg-type]
                if is_present(*one):
                    place = one
                    break
            yield Found(place, places or b"")

    def put(self, file: FileId, rows: Iterable[tuple[bytes, int, bytes]], committed: set[FileId]) -> None:
        """Note keys of a file: each with its row, and all places that `find` returned.

        Of those the one in a file of `committed` is kept: it counts if the new file isn't committed.
        """
        prefix = self._prefix + _KEY
        self._map.put(
            [
                (
                    prefix + key,
                    file + row.to_bytes(_ROW_BYTES, "big") + (_of(committed, places) if places else b""),
                )
                for key, row, places in rows
            ]
        )

    def know(self, path: str, file: FileId) -> None:
        """Note that all keys of a file are there by an id: its own, or that of a file with the same rows."""
        self._map.put([(self._prefix + _FILE + path.encode(), file)])  # after its keys: see Map
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


def _place(places: bytes, start: int) -> Place:
    middle = start + _ID_BYTES
    return Place(places[start:middle], int.from_bytes(places[middle : middle + _ROW_BYTES], "big"))


def _of(committed: set[FileId], places: bytes) -> bytes:
    """Return the place that is in a committed file, as it is kept; empty if there is none."""
    for start in range(0, len(places), _PLACE_BYTES):
        if places[start : start + _ID_BYTES] in committed:
            return places[start : start + _PLACE_BYTES]
    return b""
