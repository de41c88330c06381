"""A store's files on disk, of a running process or a dead one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from rocksdict import AccessType, Options, Rdict

from ...errors import StoreError

_DEFAULT: Final = "default"
_EVENT: Final = "EVENT_LOG_v1 "
_TRIES: Final = 5
"""Attempts to open a generation whose files may be dropped meanwhile."""


class NoStore(StoreError):
    """The directory holds no store."""


class WindowGone(StoreError):
    """The generation was dropped by its process."""


class SortedFile(Struct, frozen=True):
    """An SST file of a generation."""

    name: str
    level: int
    size: int
    entries: int
    tombstones: int
    first: bytes
    last: bytes

    def meets(self, other: SortedFile) -> bool:
        return self.first <= other.last and other.first <= self.last


def stores_in(directory: Path) -> list[Path]:
    """Return the stores in a scratch directory, or the directory itself if it is one. Raises NoStore."""
    stores = [
        path.parent for path in sorted([*directory.glob("CURRENT"), *directory.glob("store-*/CURRENT")])
    ]
    if not stores:
        raise NoStore(f"{directory} has no store in it: a feed that never needed its disk makes none")
    return stores


def windows_in(store: Path) -> list[str]:
    """Return the names of a store's generations. Raises StoreError."""
    try:
        return [name for name in Rdict.list_cf(str(store), Options(raw_mode=True)) if name != _DEFAULT]
    except Exception as error:
        raise StoreError(f"{store} can't be read: {error}") from error


class WindowFiles:
    """A generation opened for reading, without disturbing its process; its files stay until `close`.

    Entries still in the process's memory aren't seen. Raises StoreError.
    """

    def __init__(self, store: Path, window: str) -> None:
        self._path = f"{store} ({window})"
        self._db = _opened(store, window)
        self._family = self._db.get_column_family(window)
        self.files = [_file(properties) for properties in self._db.live_files()]

    def level_of(self, key: bytes) -> int:
        """Return the level at which a reader finds the key; newer levels come first."""
        return min((file.level for file in self.files if file.first <= key <= file.last), default=0)

    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        iterator = self._family.iter()
        iterator.seek_to_first()
        while iterator.valid():
            yield iterator.key(), iterator.value()
            iterator.next()
        try:
            iterator.status()
        except Exception as error:
            raise StoreError(f"{self._path} can't be read: {error}") from error

    def close(self) -> None:
        del self._family
        self._db.close()


def _opened(store: Path, window: str) -> Rdict:
    families = {_DEFAULT: Options(raw_mode=True), window: Options(raw_mode=True)}
    for tries in range(_TRIES):
        try:
            return Rdict(str(store), Options(raw_mode=True), families, AccessType.read_only(False))
        except Exception as error:
            if window not in windows_in(store):
                raise WindowGone(f"{store} ({window}) was dropped") from error
            if tries == _TRIES - 1:
                raise StoreError(f"{store} ({window}) can't be opened: {error}") from error
    raise AssertionError


def _file(properties: dict[str, Any]) -> SortedFile:
    return SortedFile(
        properties["name"].strip("/"),
        properties["level"],
        properties["size"],
        properties["num_entries"],
        properties["num_deletions"],
        properties["start_key"] or b"",
        properties["end_key"] or b"",
    )


def written(store: Path) -> tuple[int, int]:
    """Return the bytes of keys and values that reached files, and the bytes of all files ever written, from
    RocksDB's own log."""
    received_bytes = written_bytes = 0
    try:
        lines = (store / "LOG").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return 0, 0
    for line in lines:
        _, found, text = line.partition(_EVENT)
        if found and '"table_file_creation"' in text:
            event = json.loads(text)
            properties = event.get("table_properties", {})
            written_bytes += event.get("file_size", 0)
            if "compaction" not in str(event.get("reason", "")).lower():
                received_bytes += properties.get("raw_key_size", 0) + properties.get("raw_value_size", 0)
    return received_bytes, written_bytes
