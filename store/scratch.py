"""The directory that the stores of one process live in."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from itertools import count
from pathlib import Path

from ..errors import StoreError
from . import disk

_LOCK = "tidemill.lock"
_PREFIX = "store-"
_FILE = "sort-"
_OWN = re.compile(rf"{_PREFIX}\d+|{_FILE}\d+-\d+\.tmp")
_numbers = count(1)


class Scratch:
    """A directory held by one process, with what an earlier one left there removed.

    Only stores and files of such a process are removed: those with its names, beside its lock file.

    Raises StoreError if the directory can't be made or written, if another process holds it, or if it has
    such names without a lock file: they belong to somebody else.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            disk.make_private(directory)
            foreign = [] if (directory / _LOCK).exists() else self._left()
            if foreign:
                raise StoreError(
                    f"scratch directory {directory}: {foreign[0].name} isn't tidemill's, and would be in its "
                    "way: name an empty directory"
                )
            self._lock = _lock(directory / _LOCK)
            for left in self._left():
                _remove(left)
        except OSError as error:
            raise StoreError(f"scratch directory {directory}: {error}") from error

    def _left(self) -> list[Path]:
        return [path for path in self.directory.iterdir() if _OWN.fullmatch(path.name)]

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
        for left in self._left():
            with suppress(OSError):
                _remove(left)
        os.close(self._lock)
        self._lock = -1


def _remove(left: Path) -> None:
    if left.is_dir() and not left.is_symlink():
        shutil.rmtree(left)
    else:
        left.unlink(missing_ok=True)


def _lock(path: Path) -> int:
    """Take the lock file and write its holder into it; the system lets go when a process ends."""
    try:
        descriptor = disk.lock(path)
    except BlockingIOError:
        holder = path.read_text(errors="replace") or "another process"
        raise StoreError(
            f"scratch directory {path.parent} is in use by {holder}; give each feed its own directory"
        ) from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"pid {os.getpid()}".encode())  # its command line may have a password
    return descriptor
