"""The disk below a feed, which fails: RocksDB, the unified engine's files, a binlog's definitions."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Final, Literal, TypeAlias, get_args
from unittest.mock import patch

from rocksdict import ColumnFamily, Options, Rdict, RdictIter, ReadOptions, WriteBatch, WriteOptions

DiskFault: TypeAlias = Literal["full", "unreadable", "damaged", "short", "lost"]
DISK_FAULTS: Final[tuple[DiskFault, ...]] = get_args(DiskFault)
"""full: a write or a sync finds no space. unreadable: a read fails. damaged: a value has another bit. short:
an iterator or a file ends too early. lost: a value that is read by its key isn't there."""


def lose(path: Path, random: Random, synced: int = 0) -> None:
    """Leave of a file what a crash may leave: all, what was synced, that and a part of the rest, or zeros in
    place of the rest; without a synced part maybe no file."""
    size = path.stat().st_size if path.exists() else 0
    match random.choice(("whole", "empty", "gone", "torn")):
        case "empty" if size > synced:
            os.truncate(path, synced)
        case "gone" if synced:
            os.truncate(path, synced)
            os.truncate(path, size)
        case "gone":
            path.unlink(missing_ok=True)
        case "torn" if size > synced:
            os.truncate(path, random.randrange(synced, size))


class Disk:
    """Faults of the next reads and writes that they concern, and how much of files is synced."""

    def __init__(self, note: Callable[[str, str], None]) -> None:
        self.faults: deque[DiskFault] = deque()
        self.hits = 0
        self.is_rotten = False
        """True if a bit of a file of definitions was turned over."""
        self._note = note
        self._synced: dict[Path, int] = {}
        """Sizes of files when they were synced."""

    def calm(self) -> None:
        self.faults.clear()

    def take(self, *faults: DiskFault) -> DiskFault | None:
        fault = next((one for one in self.faults if one in faults), None)
        if fault is not None:
            self.faults.remove(fault)
            self.hits += 1
            self._note("disk", f"fault {fault}")
        return fault

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Have stores and files of this process use the disk meanwhile."""
        calls = SimpleNamespace(**{name: getattr(os, name) for name in dir(os)})
        calls.pread, calls.pwrite, calls.fsync = self._pread, self._pwrite, self._fsync
        with (
            patch("tidemill.store.store.Rdict", lambda *options: _Database(Rdict(*options), self)),
            patch("tidemill.sorter.unified.file.os", calls),
            patch("tidemill.mounter.mysql.history.os", calls),
        ):
            yield

    def rot(self, paths: Iterable[Path], random: Random) -> None:
        """Turn over a bit of each file."""
        for path in paths:
            if data := path.read_bytes():
                self.hits += 1
                self.is_rotten = True
                at = random.randrange(len(data))
                path.write_bytes(data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :])
                self._note("disk", f"a bit of {path.name} is turned over at byte {at} of {len(data)}")

    def crash(self, directory: Path, left: Path, random: Random) -> None:
        """Lose, in a copy of a directory, some of what its files have that isn't synced."""
        for path, synced in self._synced.items():
            if path.is_relative_to(directory) and path.exists() and path.stat().st_size > synced:
                lose(left / path.relative_to(directory), random, synced)

    def value(self, value: bytes | None) -> bytes | None:
        """Return a value as the disk returns it. Raises an error of RocksDB."""
        match self.take("unreadable", "damaged", "lost"):
            case "unreadable":
                raise OSError("IO error: While pread: Input/output error")
            case "lost":
                return None
            case "damaged" if value:
                return _damaged(value)
        return value

    def _pread(self, descriptor: int, size: int, offset: int) -> bytes:
        data = os.pread(descriptor, size, offset)
        match self.take("unreadable", "damaged", "short"):
            case "unreadable":
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            case "short":
                return data[: len(data) // 2]
            case "damaged":
                return _damaged(data)
        return data

    def _pwrite(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        if self.take("full"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.pwrite(descriptor, data, offset)

    def _fsync(self, descriptor: int) -> None:
        if self.take("full"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
        self._synced[Path(f"/proc/self/fd/{descriptor}").readlink()] = os.fstat(descriptor).st_size


def _damaged(data: bytes) -> bytes:
    """Return the data with a bit turned over near its end, where a block has its rows."""
    place = len(data) * 7 // 8
    return data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]


class _Database:
    """RocksDB on the disk, as far as a Store uses it."""

    def __init__(self, real: Rdict, disk: Disk) -> None:
        self._real = real
        self._disk = disk

    def create_column_family(self, name: str, options: Options) -> _Family:
        return _Family(self._real.create_column_family(name, options), self._disk)

    def write(self, batch: WriteBatch, options: WriteOptions) -> None:
        if self._disk.take("full"):
            raise OSError("IO error: No space left on device")
        self._real.write(batch, options)

    def get_column_family_handle(self, name: str) -> ColumnFamily:
        return self._real.get_column_family_handle(name)

    def drop_column_family(self, name: str) -> None:
        self._real.drop_column_family(name)

    def close(self) -> None:
        self._real.close()


class _Family:
    def __init__(self, real: Rdict, disk: Disk) -> None:
        self._real = real
        self._disk = disk

    def get(self, key: bytes) -> bytes | None:
        return self._disk.value(self._real.get(key))

    def iter(self, options: ReadOptions) -> _Iterator:
        return _Iterator(self._real.iter(options), self._disk)

    def flush(self, *, wait: bool) -> None:
        self._real.flush(wait=wait)


class _Iterator:
    """An iterator that may become invalid before its end, as RocksDB's do where a file can't be read."""

    def __init__(self, real: RdictIter, disk: Disk) -> None:
        self._real = real
        self._disk = disk
        self._is_broken = False

    def valid(self) -> bool:
        if self._real.valid() and self._disk.take("short", "unreadable"):
            self._is_broken = True
        return self._real.valid() and not self._is_broken

    def status(self) -> None:
        if self._is_broken:
            raise OSError("IO error: While pread: Input/output error")
        self._real.status()

    def value(self) -> bytes:
        value: bytes = self._real.value()
        return _damaged(value) if self._disk.take("damaged") else value

    def seek(self, key: bytes) -> None:
        self._real.seek(key)

    def next(self) -> None:
        self._real.next()

    def key(self) -> bytes:
        key: bytes = self._real.key()
        return key
