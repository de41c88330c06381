"""Durable files, and locks that end with their process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Final

_ATTEMPTS: Final = 5
_PROBE_SECONDS: Final = 0.01
"""Time between attempts to lock: `is_locked` holds a lock for some microseconds."""


def write(path: Path, content: bytes) -> None:
    """Write a file durably; its name is durable after `sync` of the directory. Raises OSError."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Replace a file atomically and durably: a crash leaves the old or the new one whole. Raises OSError.

    `mode` is the permissions of the file; None leaves them to the process's umask.
    """
    fresh = path.with_name(path.name + ".new")
    write(fresh, content)
    if mode is not None:
        fresh.chmod(mode)
    fresh.replace(path)
    sync(path.parent)


def make_private(directory: Path) -> None:
    """Create a directory that only this user may read, unless there is one. Raises OSError."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def make_folder(folder: Path, root: Path) -> None:
    """Create a folder in `root` durably, with those between them; never `root`. Raises OSError."""
    if folder != root and not folder.exists():
        make_folder(folder.parent, root)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def sync(directory: Path) -> None:
    """Make creations, renames and removals in the directory durable. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(path: Path) -> int:
    """Lock a file and return its descriptor; closing it, or the end of the process, releases the lock.

    Raises BlockingIOError if another process holds it, OSError if the file can't be created.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        for _ in range(_ATTEMPTS):
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
            Event().wait(_PROBE_SECONDS)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which others hold only for moments; wait for it. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Return True if a process, or another descriptor of this one, holds the lock. Raises OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
