"""The thread that keeps a drainer's record fresh."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread
from typing import Final

from ....actors import Clock
from ....errors import Fatal, SourceError, TidemillError
from .node import NodeState
from .registration import Registration
from .registry import RegistryUnavailable

log = logging.getLogger("tidemill.puller")

INTERVAL_SECONDS: Final = 1.0
FAILURES: Final = 20
"""Number of consecutive failed heartbeats that end the drainer."""


class Heartbeat:
    """Refreshes a claimed record each second, in its own thread.

    `lost` is called once, in that thread, with the error that ends it: NodeInUse, or SourceError after
    FAILURES heartbeats in a row. `progress` returns the commit ts up to which this drainer has applied.
    """

    def __init__(
        self,
        registration: Registration,
        clock: Clock,
        progress: Callable[[], int],
        lost: Callable[[TidemillError], None],
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self._registration = registration
        self._clock = clock
        self._progress = progress
        self._lost = lost
        self._interval_seconds = interval_seconds
        self._wake = Event()
        self._stopping = False
        self._thread = Thread(target=self._run, name="tidemill-heartbeat")
        self.failures = 0
        """Number of heartbeats that have failed in a row."""

    def start(self) -> None:
        self._thread.start()

    @property
    def state(self) -> NodeState:
        return self._registration.state

    def change(self, state: NodeState) -> NodeState | None:
        """Set the state and write it soon; if the present one isn't online, return that. Any thread."""
        present = self._registration.change(state)
        self._wake.set()
        return present

    def stop(self) -> None:
        """End the thread and write the state of a clean shutdown. One try, logged if it fails; idempotent."""
        if self._stopping:
            return
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            self._registration.stop(self._progress())
        except TidemillError as error:
            log.error("the registry doesn't know that this drainer has stopped: %s", error)

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._registration.refresh(self._progress())
                self.failures = 0
            except RegistryUnavailable as error:
                self.failures += 1
                log.warning("heartbeat failed, %d of %d in a row: %s", self.failures, FAILURES, error)
                if self.failures >= FAILURES:
                    self._lost(_given_up(error))
                    return
            except Fatal as error:
                self._lost(error)
                return
            self._pause()

    def _pause(self) -> None:
        """Wait for the interval, or for a change of state or the end."""
        alarm = self._clock.call_at(self._clock.now() + self._interval_seconds, self._wake.set)
        self._wake.wait()
        self._wake.clear()
        alarm.cancel()


def _given_up(error: RegistryUnavailable) -> SourceError:
    return SourceError(
        f"{FAILURES} heartbeats in a row have failed, the last one: {error}; start the feed again when the"
        " registry answers: it goes on at its checkpoint"
    )
