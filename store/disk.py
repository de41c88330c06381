"""Files that are there after a power failure, and locks that end with their process."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def write(path: Path, content: bytes) -> None:
    """Its content is durable; its name, once the directory is synced. Raises OSError."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace(path: Path, content: bytes) -> None:
    """A crash leaves the old file or the new one, whole; once this returns, the new one. Raises OSError."""
    fresh = path.with_name(path.name + ".new")
    write(fresh, content)
    fresh.replace(path)
    sync(path.parent)


def sync(directory: Path) -> None:
    """What was made, renamed or removed in it is durable. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(path: Path) -> int:
    """A descriptor that keeps everybody else out until it is closed or its process ends.

    Raises BlockingIOError if somebody else has it, OSError if the file can't be made.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
