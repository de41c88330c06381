"""`tidemill run` as a process of its own, followed by the position of its sinks."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep as pause

from ..engine.status import StatusFile
from ..errors import CheckpointError
from .child import CLI, Child
from .prepared import Process


@contextmanager
def following(config: Path, *flags: str) -> Iterator[Process]:
    """Run `tidemill run`, stop it by SIGINT and check its exit status. Raises SystemExit if that isn't 0."""
    with Child([*CLI, "run", config, *flags]) as child:
        yield child.process
        child.process.send_signal(signal.SIGINT)
        status = child.exit_status()
    if status != 0:
        raise SystemExit(f"tidemill run ended with status {status}")


def until_all_at(state: Path, process: Process, reached: Callable[[str], bool]) -> None:
    """Wait until every sink of the feed of this process has its snapshot and a position that is `reached`.

    Raises SystemExit if the feed fails, or the process has ended.
    """
    while process.poll() is None:
        try:
            status = StatusFile(state).load()
        except CheckpointError:
            status = None
        if status is not None and status.pid == process.pid:
            if status.state == "failed":
                raise SystemExit(f"the feed failed: {status.detail}")
            if all(not sink.loading and reached(sink.position) for sink in status.sinks):
                return
        pause(0.1)
    raise SystemExit(f"tidemill run ended with status {process.returncode}")
