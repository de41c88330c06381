"""Calls that release what a pipeline holds."""

from __future__ import annotations

import logging
from collections.abc import Callable

log = logging.getLogger("tidemill")


class Teardown:
    """Calls to make at the end, the last added first.

    Unlike an ExitStack it raises nothing: the error that led to the end must not be replaced.
    """

    def __init__(self) -> None:
        self._calls: list[Callable[[], object]] = []

    def add(self, call: Callable[[], object]) -> None:
        self._calls.append(call)

    def run(self) -> BaseException | None:
        """Make every call once; return the first error, and log further ones."""
        first: BaseException | None = None
        while self._calls:
            call = self._calls.pop()
            try:
                call()
            except BaseException as error:
                if first is None:
                    first = error
                else:
                    log.error("while the feed's parts were closed", exc_info=error)
        return first
