"""A disk that is soon full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


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
