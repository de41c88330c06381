"""A disk that is soon full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


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
        pytest.skip(f"THE FULL DISK IS NOT TESTED: only root may mount a tmpfs ({done.stderr.strip()})")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
