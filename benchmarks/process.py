"""`tidemill run` as a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def following(config: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`tidemill run` as a process of its own; stopped by SIGINT, and its exit status checked."""
    process = subprocess.Popen([sys.executable, "-m", "tidemill.cli", "run", str(config)])
    try:
        yield process
    except BaseException:
        process.kill()
        process.wait()
        raise
    process.send_signal(signal.SIGINT)
    status = process.wait(timeout=120)
    if status != 0:
        raise SystemExit(f"tidemill run ended with status {status}")
