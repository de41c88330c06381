"""A watchdog that cancels an operation after a timeout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Thread


class StepTimeout:
    """Calls `cancel` if a step exceeds its timeout. A context manager, which owns a thread."""

    def __init__(self, cancel: Callable[[], object]) -> None:
        self.expired = False
        self._cancel = cancel
        self._changed = Condition()
        self._seconds: float | None = None  # None: no step is under way
        self._steps = 0
        self._over = False
        self._thread = Thread(target=self._run, name="tidemill-watch", daemon=True)

    def __enter__(self) -> StepTimeout:
        self._thread.start()
        return self

    def __exit__(self, *_exc_info: object) -> None:
        with self._changed:
            self._over = True
            self._changed.notify()
        self._thread.join()

    @contextmanager
    def step(self, seconds: float) -> Iterator[None]:
        self._set(seconds)
        try:
            yield
        finally:
            self._set(None)

    def _set(self, seconds: float | None) -> None:
        with self._changed:
            self._seconds = seconds
            self._steps += 1
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while not self._over:
                step = self._steps
                if (
                    not self._changed.wait(self._seconds)
                    and self._seconds is not None
                    and self._steps == step
                ):
                    self.expired = True
                    self._cancel()
                    return
