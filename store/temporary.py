"""Temporary directories that don't outlive their process for long.

A directory is locked while it is in use, and the system unlocks it when its process ends, even by a kill. So
the next one of the same purpose removes the directories of killed processes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_LOCK: Final = "lock"


@contextmanager
def temporary_directory(purpose: str, parent: Path | None = None) -> Iterator[Path]:
    """Create the directory `tidemill-PURPOSE-…` under `parent`, or under the system's temporary directory.

    It is removed at the end, with everything in it except what is in use elsewhere. Directories of the same
    purpose that no process has locked are removed first. Raises OSError if it can't be created.
    """
    above = parent or Path(tempfile.gettempdir())
    above.mkdir(parents=True, exist_ok=True)
    prefix = f"tidemill-{purpose}-"
    _sweep(above, prefix)
    directory, lock = _made(above, prefix)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def _made(above: Path, prefix: str) -> tuple[Path, int]:
    """Create and lock a directory; retry if another process's sweep removed it before it was locked."""
    while True:
        directory = Path(tempfile.mkdtemp(prefix=prefix, dir=above))
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:
            return directory, lock
        os.close(lock)


def _sweep(above: Path, prefix: str) -> None:
    for directory in above.glob(f"{prefix}*"):
        with suppress(OSError):  # locked by another process, or being created or removed
            lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory)
            finally:
                os.close(lock)
