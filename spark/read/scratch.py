"""A task's scratch directory, removed at its end; those of killed tasks are removed by later ones."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from ...errors import StoreError

_PREFIX: Final = "tidemill-task-"
_LOCK: Final = "lock"


@contextmanager
def scratch(parent: str = "") -> Iterator[Path]:
    """Create a directory under `parent`, or under the system's temporary directory.

    It is locked while in use; a later task removes directories that nobody has locked. Raises StoreError if
    it can't be created.
    """
    above = Path(parent or tempfile.gettempdir())
    try:
        above.mkdir(parents=True, exist_ok=True)
        _sweep(above)
        directory, lock = _made(above)
    except OSError as error:
        raise StoreError(f"option scratchDir: no directory for a task under {above}: {error}") from None
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def _made(above: Path) -> tuple[Path, int]:
    """Create and lock a directory; retry if another task's sweep removed it before it was locked."""
    while True:
        directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=above))
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:
            return directory, lock
        os.close(lock)


def _sweep(above: Path) -> None:
    for directory in above.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # locked by another task, or being created or removed
            lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory)
            finally:
                os.close(lock)
