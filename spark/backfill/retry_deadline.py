"""How long a task goes on trying."""

from __future__ import annotations

from threading import Event
from typing import Final

from ...actors import Clock, SystemClock
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
        """Something was done."""
        self._since: float | None = None
        self._pause = FIRST_SECONDS

    def wait(self, error: Retryable) -> None:
        """Raises `error` once it is enough."""
        now = self._clock.now()
        self._since = now if self._since is None else self._since
        pause = max(self._pause, error.wait or 0.0)
        if now + pause - self._since > self._seconds:
            raise error
        self._pause = min(2 * self._pause, LONGEST_SECONDS)
        Event().wait(pause)
