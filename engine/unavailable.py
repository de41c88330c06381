"""Errors of a pipeline, with the name of whoever couldn't do its part."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import InvariantViolated, Retryable, TidemillError

log = logging.getLogger("tidemill")


class Unavailable(Retryable):
    """`who` can't do its part now."""

    def __init__(self, who: str, error: Retryable) -> None:
        super().__init__(str(error), error.wait)
        self.who = who


@contextmanager
def blamed(who: str) -> Iterator[None]:
    """Raise Unavailable in place of Retryable."""
    try:
        yield
    except Retryable as error:
        raise Unavailable(who, error) from error


def accounted(name: str, error: BaseException) -> BaseException:
    """Return why an actor has stopped for good, as one of our errors."""
    if isinstance(error, Retryable):
        return Unavailable(name, error)
    if isinstance(error, TidemillError):
        return error
    log.error("%s failed", name, exc_info=error)
    found = InvariantViolated(f"{name} failed with {error!r}: please report this as a bug")
    found.__cause__ = error
    return found
