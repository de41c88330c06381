"""Work that goes on in a thread beside a test: again and again, with a short pause after each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any, Final

import pymysql

PAUSE_SECONDS: Final = 0.005
_RETRY_SECONDS: Final = 0.05
_LOST: Final = (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError)


@contextmanager
def repeated(work: Callable[[], object], pause_seconds: float = PAUSE_SECONDS) -> Iterator[None]:
    """Repeat the work until the end."""
    over = Event()

    def run() -> None:
        while not over.wait(pause_seconds):
            work()

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class RepeatedInSession:
    """Repeats work in a session on a server, and in a new session after one is lost."""

    def __init__(
        self,
        connect: Callable[[], Any],
        work: Callable[[Any], object],
        *,
        name: str | None = None,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        """`work` is given the session that `connect` returned; `name` is the thread's."""
        self._connect = connect
        self._work = work
        self._pause_seconds = pause_seconds
        self._stop = Event()
        self._thread = Thread(target=self._run, name=name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Wait for the end of the thread, if it was started."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            with suppress(*_LOST), self._connect() as session:
                while not self._stop.wait(self._pause_seconds):
                    self._work(session)
            self._stop.wait(_RETRY_SECONDS)
