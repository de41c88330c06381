"""Waiting that fails by a lack of progress, not by the time that a busy machine takes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from threading import Condition, Event, Thread
from time import monotonic
from typing import Final, TypeVar

from ..engine.feed import Feed
from ..engine.status import FeedStatus
from .prepared import Process, start

STALL_SECONDS: Final = 120.0
"""Limit for a wait during which nothing has moved; also for single steps that show no progress."""
LOOK_SECONDS: Final = 0.02
MOST_SLOWDOWN: Final = 4.0
"""Limit for `slowdown`: at a load of 30, a test that can't pass must still fail within minutes."""

T = TypeVar("T")


class Stalled(AssertionError):
    """The condition didn't become true, and there was no progress meanwhile."""


def slowdown() -> float:
    """How many times slower than alone a process runs here: runnable processes per processor, 1 to 4."""
    return min(max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)), MOST_SLOWDOWN)


class RetryDelay:
    """Ends a wait once `sign` has shown the same value for `seconds`.

    A sign is whatever progress can be seen by: counts, positions. Without one the limit is for the whole
    wait. On a machine with twice as many runnable processes as processors a second counts half.
    """

    def __init__(
        self,
        sign: Callable[[], object] = lambda: None,
        seconds: float = STALL_SECONDS,
        *,
        now: Callable[[], float] = monotonic,
        slowness: Callable[[], float] = slowdown,
    ) -> None:
        self._sign = sign
        self._seconds = seconds
        self._now = now
        self._slowness = slowness
        self._seen = sign()
        self._looked = now()
        self._spent = 0.0

    def check(self) -> None:
        """Look at the sign; call it every now and then. Raises Stalled."""
        now, seen = self._now(), self._sign()
        self._spent += (now - self._looked) / self._slowness()
        self._looked = now
        if seen != self._seen:
            self._seen, self._spent = seen, 0.0
        elif self._spent >= self._seconds:
            raise Stalled(f"nothing has moved for {self._spent:.0f} s" + (f": {seen}" if seen else ""))


def eventually(
    condition: Callable[[], T], seconds: float = STALL_SECONDS, sign: Callable[[], object] = lambda: None
) -> T:
    """Return what `condition` returns once that is true. Raises Stalled."""
    never = Event()
    patience = RetryDelay(sign, seconds)
    while not (value := condition()):
        patience.check()
        never.wait(LOOK_SECONDS)
    return value


def changed_to(
    changed: Condition, predicate: Callable[[], object], sign: Callable[[], object] = lambda: None
) -> None:
    """Wait on a condition, which is held, until `predicate` is true. Raises Stalled."""
    patience = RetryDelay(sign)
    while not changed.wait_for(predicate, 1.0):
        patience.check()


def happened(event: Event) -> None:
    """Wait until the event is set. Raises Stalled."""
    patience = RetryDelay()
    while not event.wait(1.0):
        patience.check()


def joined(thread: Thread) -> None:
    """Wait for the thread's end. Raises Stalled."""
    patience = RetryDelay()
    while thread.is_alive():
        thread.join(1.0)
        patience.check()


def ended(
    process: Process,
    seconds: float = STALL_SECONDS,
    sign: Callable[[], object] = lambda: None,
) -> int:
    """Wait for the process's end; its exit status. Raises Stalled."""
    patience = RetryDelay(sign, seconds)
    while True:
        try:
            return process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            patience.check()


def completed(
    command: Sequence[str | Path],
    seconds: float = STALL_SECONDS,
    sign: Callable[[], object] = lambda: None,
    **options: object,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end with its output captured as text. Raises Stalled, the command being killed."""
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        process = start(command, stdout=out, stderr=err, **options)
        try:
            status = ended(process, seconds, sign)
        except BaseException:
            process.kill()
            process.wait()
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, status, out.read(), err.read())


def moved(status: FeedStatus | None) -> object:
    """The sign of a feed: what of its status changes only when rows or its state move."""
    if status is None:
        return None
    held = (status.sorter_memory_bytes, status.sorter_disk_bytes)
    sinks = [(sink.state, sink.rows, sink.loading) for sink in status.sinks]
    return status.pid, status.state, status.rows, held, sinks, status.snapshot, status.backfill


def feed_ended(feed: Feed) -> None:
    """Wait for a feed's end. Raises Stalled."""
    patience = RetryDelay(lambda: moved(feed.status()))
    while not feed.wait(1.0):
        patience.check()
