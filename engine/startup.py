"""Steps by which a pipeline starts, while they wait for answers of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..actors import Clock
from ..events import Wait
from .unavailable import blamed

BUSY_SECONDS = 1.0
"""Driver calls longer than this are reported as waiting for an answer."""


class Startup:
    """The current step, entered in the feed's thread; any thread may read what it waits for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._step: tuple[str, str, float] | None = None

    @contextmanager
    def step(self, who: str, on: str) -> Iterator[None]:
        """Run the body as the step in which `who` waits for answers of `on`.

        Raises Unavailable in place of Retryable.
        """
        self._step = who, on, self._clock.now()
        try:
            with blamed(who):
                yield
        finally:
            self._step = None

    def waits(self) -> list[Wait]:
        if (step := self._step) is None:
            return []
        who, on, since = step
        seconds = self._clock.now() - since
        return [Wait(who, "answer", seconds, on=on)] if seconds > BUSY_SECONDS else []
