"""A child process that may be armed with a failpoint and that never outlives the test that started it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from .prepared import CLI as CLI
from .prepared import FAILPOINT, Process, start
from .progress import STALL_SECONDS, ended, eventually

T = TypeVar("T")


class Child:
    """A process that starts at once and is killed, by its own pid, when its context ends.

    What it writes to stdout and stderr is appended to `log`; without a log they are this process's.
    `failpoint` is a value of TIDEMILL_FAILPOINT, such as "sink.committed:3". `options` are Popen's.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path | None = None,
        *,
        failpoint: str = "",
        **options: Any,
    ) -> None:
        self._log = log
        options = {"env": os.environ | {FAILPOINT: failpoint}, **options}
        if log is None:
            self.process: Process = start(command, **options)
            return
        with log.open("ab") as output:
            self.process = start(command, **{"stdout": output, "stderr": output, **options})

    def output(self) -> str:
        """Return what is in its log."""
        return "" if self._log is None else self._log.read_text()

    def wait_until(self, condition: Callable[[], T], sign: Callable[[], object] = lambda: None) -> T:
        """Return what `condition` returns once that is true.

        Raises Stalled if `sign` doesn't move, AssertionError if the process ends first.
        """

        def look() -> T:
            assert self.process.poll() is None, self.output()
            return condition()

        return eventually(look, sign=sign)

    def exit_status(self, seconds: float = STALL_SECONDS, sign: Callable[[], object] = lambda: None) -> int:
        """Wait for its end; its exit status, negative for a signal. Raises Stalled."""
        return ended(self.process, seconds, sign)

    def dies(self, seconds: float = STALL_SECONDS) -> None:
        """Wait until SIGKILL ends it, as at a failpoint. Raises Stalled, AssertionError at any other end."""
        status = self.exit_status(seconds)
        assert status == -signal.SIGKILL, f"status {status}: {self.output()[-3000:]}"

    def kill(self) -> None:
        """Kill it if it still runs, and wait for its end."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()
