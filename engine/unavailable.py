"""Errors of a pipeline, with the name of the failed part."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import InvariantViolated, Retryable, TidemillError

log = logging.getLogger("tidemill")


class Unavailable(Retryable):
    """The part `who` is unavailable; it is retried."""

    def __init__(self, who: str, error: Retryable) -> None:
        super().__init__(str(error), error.wait)
        self.who = who


@contextmanager
def blamed(who: str) -> Iterator[None]:
    """Replace Retryable by Unavailable in errors of the body."""
    try:
        yield
    except Retryable as error:
        raise Unavailable(who, error) from error


def accounted(name: str, error: BaseException) -> BaseException:
    """Return the reason that an actor has stopped, as a TidemillError."""
    if isinstance(error, Retryable):
        return Unavailable(name, error)
    if isinstance(error, TidemillError):
        return error
    log.error("%s failed", name, exc_info=error)
    found = InvariantViolated(f"{name} failed with {error!r}: please report this as a bug")
    found.__cause__ = error
    return found
