"""A call that goes on in a thread."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Final


class Task:
    """One call in a thread of its own, which doesn't keep the process from ending."""

    def __init__(self, call: Callable[[], None], name: str) -> None:
        self._call: Final = call
        self._error: BaseException | None = None
        self._thread: Final = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self._error = error

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> None:
        """Wait for the end of the call. Raises its error."""
        self._thread.join()
        if self._error is not None:
            raise self._error
