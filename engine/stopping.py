"""SIGINT and SIGTERM, as an event."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event


@contextmanager
def set_by_signals(stopping: Event) -> Iterator[Event]:
    """Set `stopping` on SIGINT or SIGTERM; a second signal ends the process at once, which loses nothing.

    Starting Spark replaces the handlers: enter this again after it. Does nothing outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return

    def stop(number: int, _frame: object) -> None:
        stopping.set()
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
