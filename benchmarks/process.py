"""`tidemill run` in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep as pause

from ..engine.status import StatusFile
from ..errors import CheckpointError


@contextmanager
def following(config: Path, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `tidemill run` in a process of its own; stop it by SIGINT and check its exit status."""
    process = subprocess.Popen([sys.executable, "-m", "tidemill.cli", "run", str(config), *flags])
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


def until_all_at(state: Path, pid: int, reached: Callable[[str], bool]) -> None:
    """Wait until every sink of the feed with this process id has its snapshot and a position that is
    `reached`."""
    while True:
        try:
            status = StatusFile(state).load()
        except CheckpointError:
            status = None
        if status is not None and status.pid == pid:
            if status.state == "failed":
                raise SystemExit(f"the feed failed: {status.detail}")
            if all(not sink.loading and reached(sink.position) for sink in status.sinks):
                return
        pause(0.1)
