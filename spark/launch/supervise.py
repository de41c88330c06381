"""Supervision of a user's own query: it is started again after errors that pass."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Final

from ...actors import SystemClock
from ...engine.failures import pause_seconds
from ...errors import Retryable
from ..run.errors import explain

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("tidemill.spark")

LOOK_SECONDS: Final = 0.25
STEADY_SECONDS: Final = 60.0
"""Time that a query runs without an error, after which the next error counts as the first one."""


def supervise(start: Callable[[], StreamingQuery], *, stopping: Event | None = None) -> None:
    """Run a query until it ends by itself, or until `stopping` is set, which stops it after its batch's
    tasks.

    `start` starts the query, with the same checkpointLocation each time; it is called from this thread. After
    an error that passes, such as a source or target that doesn't answer, the query is started again, with
    growing pauses. Raises the other errors as tidemill's, with Spark's as the cause.
    """
    stopping = Event() if stopping is None else stopping
    clock = SystemClock()
    failures = 0
    while not stopping.is_set():
        began = clock.now()
        try:
            _follow(start(), stopping)
            return
        except Exception as error:
            cause = explain(error, "the query")
            if not isinstance(cause, Retryable):
                raise cause from error
            failures = 1 if clock.now() - began > STEADY_SECONDS else failures + 1
            pause = max(cause.wait or 0.0, pause_seconds(failures))
            log.warning("the query is started again in %.1f s: %s", pause, cause)
            stopping.wait(pause)


def _follow(query: StreamingQuery, stopping: Event) -> None:
    """Wait for the query's end. Raises its error."""
    while query.isActive and not stopping.wait(LOOK_SECONDS):
        pass
    if query.isActive:  # Spark logs a failure to cancel the jobs of one that has ended
        query.stop()
    if (error := query.exception()) is not None:
        raise error
