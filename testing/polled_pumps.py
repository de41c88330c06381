"""The pumps of an emulated TiDB as a feed finds them, without a registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Event, Lock, Thread
from typing import Any, Final

from ..errors import Retryable
from ..puller.pump.pumps import DrainerFeed, PumpStatus

BUSY_SECONDS: Final = 0.05


class PolledPumps:
    """Reads address and state of each pump, by node id, again and again."""

    def __init__(self, states: Callable[[], Mapping[str, tuple[str, Any]]], seconds: float) -> None:
        self._states = states
        self._seconds = seconds
        self._started = Event()
        self._stopped = Event()
        self._lock = Lock()
        self._thread = Thread(target=self._poll, name="polled pumps")

    def read(self) -> Sequence[PumpStatus]:
        return [PumpStatus(node_id, host, state) for node_id, (host, state) in self._states().items()]

    def start(self, feed: DrainerFeed) -> None:
        self._feed = feed
        self._thread.start()
        self._started.set()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def notify(self) -> None:
        """Tell the feed that a pump joins; it is known when this returns."""
        self._started.wait()
        self._update()

    def _update(self) -> None:
        with self._lock:
            self._feed.accept(self.read())

    def _poll(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause):
            try:
                self._update()
                pause = self._seconds
            except Retryable:  # the feed is busy, or ends
                pause = BUSY_SECONDS
