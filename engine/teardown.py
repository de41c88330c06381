"""Calls that release what a pipeline holds."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Self

log = logging.getLogger("tidemill")


class Teardown:
    """Calls to make at the end, the last added first.

    Unlike an ExitStack it doesn't replace the error that led to the end. Also a context manager, which makes
    the calls that the body hasn't kept, and raises their error unless the body has raised.
    """

    def __init__(self) -> None:
        self._calls: list[Callable[[], object]] = []

    def add(self, call: Callable[[], object]) -> None:
        self._calls.append(call)

    def keep(self) -> Teardown:
        """Return the calls added so far; this one makes them no more."""
        kept = Teardown()
        kept._calls, self._calls = self._calls, []
        return kept

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, cause: BaseException | None, trace: object) -> None:
        error = self.run()
        if error is not None and cause is None:
            raise error
        if error is not None:
            log.error("after %r", cause, exc_info=error)

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
