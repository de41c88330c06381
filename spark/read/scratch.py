"""A task's directory, gone at its end; and the directories of tasks that were killed."""

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
    """A fresh directory under `parent`, or under the system's temporary one.

    It is locked while it is in use, so a later task can tell what nobody holds any more, and removes it.
    Raises StoreError if it can't be made.
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
    """A directory and its lock, held. One that a sweep found before it was locked is gone: then another."""
    while True:
        directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=above))
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:
            return directory, lock
        os.close(lock)


def _sweep(above: Path) -> None:
    for directory in above.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody else's, or being made or removed just now
            lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory)
            finally:
                os.close(lock)
