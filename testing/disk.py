"""Disks for tests: one that is soon full, a hidden one, one in memory."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final


def usage(directory: Path) -> int:
    """Bytes on disk of everything below."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*"))


@contextmanager
def small_disk(directory: Path, megabytes: int = 8) -> Iterator[Path]:
    """A tmpfs of a few megabytes in a new directory; without the right to mount one, the test is skipped."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tidemill-test", str(directory)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        import pytest

        pytest.skip(f"THE FULL DISK IS NOT TESTED: only root may mount a tmpfs ({done.stderr.strip()})")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


@contextmanager
def hidden_disk(mount_point: Path, size: str) -> Iterator[Sequence[str]]:
    """A tmpfs of that size that only commands with these words in front of them see.

    It goes with the process that holds it, and that one goes when nobody can write to it any more.
    """
    mount_point.mkdir()
    script = f"mount -t tmpfs -o size={size} none '{mount_point}' && echo ready && exec cat"
    holder = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n", "can't mount a tmpfs"
        yield ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", f"--wd={Path.cwd()}"]
    finally:
        holder.communicate()


MEMORY_DISK: Final = Path("/dev/shm")
ENOUGH: Final = 12 << 30
"""Bytes that the memory must have left, and the file system in it: about three times what a run needs."""


def memory_disk() -> Path | None:
    """Return the directory in memory; None if there isn't enough memory for the files of all tests."""
    if not os.access(MEMORY_DISK, os.W_OK) or os.statvfs(MEMORY_DISK).f_flag & os.ST_NOEXEC:
        return None
    if shutil.disk_usage(MEMORY_DISK).free < ENOUGH:
        return None
    return MEMORY_DISK if _available() >= ENOUGH else None


def _available() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0
