"""Where tests keep their directories: in memory if there is plenty, as most of their time goes into disks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

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
