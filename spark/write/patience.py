"""Repetition of what a target refuses for the moment."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event
from typing import Final, TypeVar

from ...actors import SystemClock
from ...errors import Retryable
from ...sink import ReplayRequired
from .place import Overtaken

log = logging.getLogger("tidemill.spark")

AGAIN_SECONDS: Final = 0.2
"""Pause between attempts, unless the error names another."""

T = TypeVar("T")


def patiently(attempt: Callable[[], T], timeout: float, who: str) -> T:
    """Repeat a call while the target can't be reached, or a lock is in the way; return its result.

    Each wait is a line in the log of `who` waits. Raises Retryable after `timeout` seconds, and
    ReplayRequired at once: Spark repeats all rows.
    """
    clock = SystemClock()
    began = clock.now()
    while True:
        try:
            return attempt()
        except ReplayRequired:
            raise
        except Retryable as error:
            pause = AGAIN_SECONDS if error.wait is None else error.wait
            seconds = clock.now() - began
            waits = f"{who}, waited {seconds:.0f} s"
            if seconds + pause > timeout:
                raise Retryable(f"{waits} (option sinkTimeout): {error}", error.wait) from error
            if isinstance(error, Overtaken):
                continue
            log.warning("%s of %.0f s: %s", waits, timeout, error)
            Event().wait(pause)
