"""The thread that keeps the collector's list of pumps up to date."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Event, Lock, Thread
from typing import Final

from ....actors import Clock
from ....errors import Retryable, TidemillError
from .node import PUMPS, NodeStatus
from .registry import NodeRegistry, nodes

log = logging.getLogger("tidemill.puller")

DETECT_SECONDS: Final = 5.0
"""Interval at which the pumps are read (`detect-interval` of TiDB-Binlog)."""


class PumpWatch:
    """Reads the pumps at the start, each `interval_seconds` and when notified, in its own thread.

    `update` is called in that thread with all pumps, whatever their state. It returns when the collector has
    accepted the list, and raises if it can't; it must not wait for `stop`. `looked` is called after each
    look, with the error if the list couldn't be read or wasn't accepted; quick.
    """

    def __init__(
        self,
        registry: NodeRegistry,
        clock: Clock,
        update: Callable[[Sequence[NodeStatus]], None],
        interval_seconds: float = DETECT_SECONDS,
        looked: Callable[[Exception | None], None] = lambda _error: None,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._update = update
        self._looked = looked
        self._interval_seconds = interval_seconds
        self._wake = Event()
        self._lock = Lock()
        self._waiting: list[Future[None]] = []
        self._stopping = False
        self._thread = Thread(target=self._run, name="tidemill-pumps")

    def start(self) -> None:
        self._thread.start()

    def notify(self) -> Future[None]:
        """Request an update. The future has its result: of an update that began after this call."""
        future: Future[None] = Future()
        with self._lock:
            if self._stopping:
                future.set_exception(Retryable("this drainer is stopping"))
                return future
            self._waiting.append(future)
        self._wake.set()
        return future

    def stop(self) -> None:
        """End the thread after the present update; waiting notifications fail. Idempotent."""
        with self._lock:
            self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        for future in self._taken():
            future.set_exception(Retryable("this drainer is stopping"))

    def _run(self) -> None:
        while not self._stopping:
            waiting = self._taken()
            try:
                self._update(nodes(self._registry, PUMPS))
            except Exception as error:
                self._report(error, waiting)
            else:
                self._looked(None)
                for future in waiting:
                    future.set_result(None)
            alarm = self._clock.call_at(self._clock.now() + self._interval_seconds, self._wake.set)
            self._wake.wait()
            self._wake.clear()
            alarm.cancel()

    def _taken(self) -> list[Future[None]]:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        return [future for future in waiting if future.set_running_or_notify_cancel()]

    def _report(self, error: Exception, waiting: Sequence[Future[None]]) -> None:
        self._looked(error)
        for future in waiting:
            future.set_exception(error)
        expected = isinstance(error, TidemillError)
        log.error("the list of pumps was not updated: %s", error, exc_info=None if expected else error)
