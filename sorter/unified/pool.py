"""The back ends of a flush: memory while there is room, otherwise a file."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import Final

from ...errors import StoreError
from ...store.scratch import Scratch
from ..tier import Tier

CACHED_FILES: Final = 256
"""Maximum number of files, already read, that are kept for later flushes."""

PRESSURE: Final = 0.9
"""Share of the machine's memory in use, by any process, above which flushes go to files."""

LEAST_FREE: Final = 0.1
"""Share of the disk that must be free to begin a file."""


class BackFile:
    """One file of sorted pieces: written by one FileWriter, then read, then reused."""

    __slots__ = ("bytes", "descriptor", "is_full", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.bytes = 0
        self.is_full = False
        """True once nothing more is written to it."""

    @property
    def name(self) -> str:
        return self.path.name


class BackEndPool:
    """The memory and the files of all tables, for any thread. Raises StoreError."""

    def __init__(
        self,
        scratch: Scratch,
        tier: Tier,
        max_disk_bytes: int | None,
        meminfo: Path = Path("/proc/meminfo"),
    ) -> None:
        self._scratch = scratch
        self._tier = tier
        self._max_disk_bytes = max_disk_bytes
        self._meminfo = meminfo
        self._lock = Lock()  # guards what follows
        self._files: dict[BackFile, None] = {}
        self._free: list[BackFile] = []
        self.heap_bytes = 0
        """Bytes in the heaps."""

    def entered_heap(self, size: int) -> None:
        with self._lock:
            self.heap_bytes += size

    def left_heap(self, size: int) -> None:
        with self._lock:
            self.heap_bytes -= size

    def has_memory_for(self, size: int) -> bool:
        tier = self._tier
        limit = tier.limit_bytes
        assert limit is not None
        return tier.held_bytes + self.heap_bytes + size <= limit and _pressure(self._meminfo) < PRESSURE

    @property
    def disk_bytes(self) -> int:
        with self._lock:
            return sum(file.bytes for file in self._files)

    def file(self) -> BackFile:
        """Return an empty file to write to; the caller marks it as full."""
        self.sweep()
        with self._lock:
            file = self._free.pop() if self._free else BackFile(self._new_path())
            file.is_full = False
            self._files[file] = None
            return file

    def reserve(self, file: BackFile, size: int) -> int:
        """Reserve room at the end of a file, and return its offset."""
        if self._max_disk_bytes is not None and self.disk_bytes + size > self._max_disk_bytes:
            raise StoreError(
                f"the sorter's disk quota is used up: {self.disk_bytes} of {self._max_disk_bytes} bytes"
                " have not left yet; raise max_disk_bytes or see what the slowest sink waits for"
            )
        with self._lock:
            offset = file.bytes
            file.bytes += size
            return offset

    def sweep(self) -> None:
        """Empty the files that are fully read, and keep some of them for reuse."""
        with self._lock:
            done = [file for file in self._files if file.is_full and not self._tier.live_bytes(file)]
            for file in done:
                del self._files[file]
                file.bytes = 0
                os.ftruncate(file.descriptor, 0)
            self._free += done
            spare, self._free = self._free[CACHED_FILES:], self._free[:CACHED_FILES]
        for file in spare:
            os.close(file.descriptor)
            file.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Delete the files; called when nobody uses them any more. Safe to repeat."""
        with self._lock:
            files = [*self._files, *self._free]
            self._files.clear()
            self._free.clear()
        for file in files:
            os.close(file.descriptor)
            file.path.unlink(missing_ok=True)

    def _new_path(self) -> Path:
        directory = self._scratch.directory
        disk = os.statvfs(directory)
        if disk.f_bavail < disk.f_blocks * LEAST_FREE:
            raise StoreError(f"scratch directory {directory}: less than {LEAST_FREE:.0%} of its disk is free")
        return self._scratch.new_file()


def _pressure(meminfo: Path) -> float:
    """Return the share of the machine's memory in use; 1 if it can't be determined."""
    try:
        memory = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        return 1 - int(memory["MemAvailable"].split()[0]) / int(memory["MemTotal"].split()[0])
    except (OSError, KeyError, ValueError, ZeroDivisionError):
        return 1.0
