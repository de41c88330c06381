"""The directory that the stores of one process live in."""

from __future__ import annotations

import fcntl
import os
import shutil
from itertools import count
from pathlib import Path

from ..errors import StoreError
from . import disk

_LOCK = "tidemill.lock"
_PREFIX = "store-"
_FILE = "sort-"
_numbers = count(1)


class Scratch:
    """A directory held by one process, with what an earlier one left there removed.

    Only the stores inside are removed; other files in the directory are left alone.

    Raises StoreError if the directory can't be made or written, or if another process holds it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            disk.make_private(directory)
            self._lock = _lock(directory / _LOCK)
            for left in directory.glob(_PREFIX + "*"):
                shutil.rmtree(left)
            for left in directory.glob(_FILE + "*"):
                left.unlink()
        except OSError as error:
            raise StoreError(f"scratch directory {directory}: {error}") from error

    def new_store(self) -> Path:
        """Where another store may live: a path that this process has not used before."""
        return self.directory / f"{_PREFIX}{next(_numbers)}"

    def new_file(self) -> Path:
        """Where a file may live that is no store."""
        return self.directory / f"{_FILE}{os.getpid()}-{next(_numbers)}.tmp"

    def close(self) -> None:
        """Remove the stores, which must be closed, and let the directory go. Safe to repeat."""
        if self._lock < 0:
            return
        for left in self.directory.glob(_PREFIX + "*"):
            shutil.rmtree(left, ignore_errors=True)
        for left in self.directory.glob(_FILE + "*"):
            left.unlink(missing_ok=True)
        os.close(self._lock)
        self._lock = -1


def _lock(path: Path) -> int:
    """Take the lock file and write its holder into it; the system lets go when a process ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"pid {os.getpid()}".encode())  # its command line may have a password
    except BlockingIOError:
        holder = os.pread(descriptor, 300, 0).decode(errors="replace") or "another process"
        os.close(descriptor)
        raise StoreError(
            f"scratch directory {path.parent} is in use by {holder}; give each feed its own directory"
        ) from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
