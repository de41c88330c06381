"""A view of a target that has exactly the rows of its checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from ..dialects.options import RowOptions
from ..dialects.read import Reader
from ..dialects.sql_reader import explained
from ..dialects.syncpoints import Syncpoint, Syncpoints
from ..engine.sink_options import SinkOptions
from ..errors import ConfigError, SinkError
from ..events import Checkpoint
from .pace import Pace

LOOK_SECONDS: Final = 0.05
"""Pause between looks for the next syncpoint."""


@contextmanager
def at_syncpoint(
    target: Reader, sink: SinkOptions, feed: str, pace: Pace, is_running: Callable[[], bool]
) -> Iterator[Checkpoint]:
    """Hold a view of the target at a syncpoint; give the checkpoint.

    A TiDB is read as of its last syncpoint. Any other target is read as of now if it has nothing after its
    checkpoint, as with one worker; else as of the next syncpoint, at which the sink stands still until the
    view is open. Raises TidemillError; Stopped.
    """
    point = target.last_syncpoint()
    if point is not None and point.secondary_ts is not None:
        with target.holding(point.secondary_ts) as checkpoint:
            _check(target, checkpoint, point)
            yield checkpoint
        return
    with ExitStack() as stack:
        checkpoint = stack.enter_context(target.holding())
        if target.ahead(checkpoint) is None:
            yield checkpoint
            return
    options = sink.given.options
    assert isinstance(options, RowOptions)
    if not options.syncpoint_seconds:
        raise ConfigError(
            f"sink {sink.name}: its workers apply transactions after the checkpoint: set syncpoint_seconds, "
            'or order = "strict"'
        )
    if not is_running():
        raise SinkError(
            f"{target.identity}: it has transactions after its checkpoint, and feed {feed} isn't running: "
            "run it"
        )
    with ExitStack() as stack:
        with _meeting(target, sink, feed, pace, is_running) as point:
            checkpoint = stack.enter_context(target.holding())
            _check(target, checkpoint, point)
        yield checkpoint


def _check(target: Reader, checkpoint: Checkpoint, point: Syncpoint) -> None:
    if checkpoint.ts != point.primary_ts or target.ahead(checkpoint) is not None:
        raise SinkError(
            f"{target.identity}: at the syncpoint of ts {point.primary_ts} the checkpoint is of ts "
            f"{checkpoint.ts}: does something else write to it?"
        )


@contextmanager
def _meeting(
    target: Reader, sink: SinkOptions, feed: str, pace: Pace, is_running: Callable[[], bool]
) -> Iterator[Syncpoint]:
    """Give a syncpoint at which the sink stands still until the end of the context."""
    dialect = sink.given.kind.dialect
    assert dialect is not None
    assert isinstance(sink.given.target, str)
    database = dialect.connect(sink.given.target, sink.given.options, feed, None)
    points = Syncpoints(database.own_tables, feed)
    try:
        with explained(database):
            database.connect()
        while True:
            before = _next(target, None, pace, is_running)
            with explained(database):
                database.begin()
                points.lock(before.primary_ts)
            # One that was recorded before the lock isn't waited at.
            if target.last_syncpoint() == before:
                break
            with explained(database):
                database.commit()
        yield _next(target, before, pace, is_running)
    finally:
        database.close()


def _next(target: Reader, before: Syncpoint | None, pace: Pace, is_running: Callable[[], bool]) -> Syncpoint:
    """Wait for the first syncpoint after another one. Raises SinkError if the feed ends meanwhile."""
    while (point := target.last_syncpoint()) is None or point == before:
        if not is_running():
            raise SinkError(f"{target.identity}: the feed ended before its next syncpoint: run it")
        pace.pause(LOOK_SECONDS)
    return point
