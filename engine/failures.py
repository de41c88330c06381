"""Failures of a feed's parts: the name of the failed part, and the pause before the next attempt."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from .. import actors
from ..errors import InvariantViolated, Retryable, StoreError, TidemillError
from ..events import Wait

log = logging.getLogger("tidemill")

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
_OF_DISKS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""Errors of a local disk, whether they name a file or not."""


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


def accounted(name: str, error: BaseException) -> TidemillError:
    """Return the reason that an actor or the feed has stopped, as a TidemillError."""
    if isinstance(error, Retryable):
        return Unavailable(name, error)
    if isinstance(error, TidemillError):
        return error
    if isinstance(error, OSError) and (error.filename is not None or error.errno in _OF_DISKS):
        where = "" if error.filename is None else f"{error.filename}: "
        return StoreError(f"{name}: {where}{error.strerror}: free space or repair it, and start again")
    log.error("%s failed", name, exc_info=error)
    violation = InvariantViolated(f"{name} failed with {error!r}: please report this as a bug")
    violation.__cause__ = error
    return violation


def blamed_part(actor: str) -> str:
    """Return the part of a feed that an actor belongs to, as waits name it: "source", "sink copy"."""
    if actor.startswith(("sink ", "source ")):
        return actor.partition(" worker ")[0]
    return "source" if actor.startswith(_OF_SOURCES) else "the feed"


_OF_SOURCES: Final = ("puller", "loader", "table loader", "schema jobs", "collector", "pump ")
"""Beginnings of the names of a source's actors."""


def pause_seconds(failures: int) -> float:
    """Return the pause after the n-th failure in a row."""
    return actors.pause_seconds(failures, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)


class Retry(Struct, frozen=True):
    """A failure that is retried; times are those of the clock's `now()`."""

    who: str
    error: str
    at: float
    """Time of the next attempt."""
    since: float
    """Time of the first failure."""

    def sentence(self, now: float) -> str:
        return f"{self.who}: {self.error}; trying again in {self._pause(now):.1f} s"

    def wait(self, now: float) -> Wait:
        return Wait(
            str(self.who), "retry", now - self.since, reason=self.error, pause_seconds=self._pause(now)
        )

    def _pause(self, now: float) -> float:
        return max(0.0, self.at - now)
