"""Errors of a pipeline, with the name of the failed part."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..errors import InvariantViolated, Retryable, StoreError, TidemillError

log = logging.getLogger("tidemill")

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
    found = InvariantViolated(f"{name} failed with {error!r}: please report this as a bug")
    found.__cause__ = error
    return found
