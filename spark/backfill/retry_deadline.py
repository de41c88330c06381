"""The time limit of a task that is tried again."""

from __future__ import annotations

from threading import Event
from typing import Final

from ...actors import Backoff, Clock, SystemClock
from ...errors import Retryable

FIRST_SECONDS: Final = 0.2
LONGEST_SECONDS: Final = 10.0


class RetryDeadline:
    """Waits between attempts, longer each time, until they have failed for `seconds`."""

    def __init__(self, seconds: float, clock: Clock | None = None) -> None:
        self._seconds = seconds
        self._clock = clock or SystemClock()
        self.renew()

    def renew(self) -> None:
        """Give the next failure the whole time again: there was progress."""
        self._backoff: Backoff | None = None

    def wait(self, error: Retryable) -> None:
        """Pause before the next attempt. Raises `error` when the time is used up."""
        if self._backoff is None:
            self._backoff = Backoff(
                self._clock, first=FIRST_SECONDS, longest=LONGEST_SECONDS, total=self._seconds
            )
        pause = self._backoff.next(error.wait or 0.0)
        if pause is None:
            raise error
        Event().wait(pause)
