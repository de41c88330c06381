"""Loading a backfill into a sink, through the delivery of an ordinary feed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from ...actors import SystemClock
from ...errors import CheckpointError, Retryable
from ...events import Checkpoint, Item, row_count
from ...sink import Delivery, Sink, SinkFactory
from ...sink.errors import ReplayRequired
from ...sink.sink import closing
from ..offsets.offset import Offset
from .replay import Replay
from .retry_deadline import RetryDeadline

Told: TypeAlias = Callable[[int], object]

PATIENCE_SECONDS: Final = 600.0
_BATCH_ROWS: Final = 5_000


def load_sink(
    replay: Replay, end: Offset, factory: SinkFactory, told: Told | None, patience_seconds: float
) -> None:
    """Bring a target to `end` unless it is at or after it.

    Raises CheckpointError if it holds something else, Retryable and Fatal as sinks do.
    """
    patience = RetryDeadline(patience_seconds)
    while True:
        sink = factory.new()
        with closing(sink):
            try:
                at = sink.open()
                if at is None or not _is_loaded(sink, at, end):
                    _deliver(replay, sink, at, end, patience, told)
                return
            except Retryable as error:  # ReplayRequired among them: it begins again at the sink's checkpoint
                patience.wait(error)


def _is_loaded(sink: Sink, at: Checkpoint, end: Offset) -> bool:
    """True if the sink is at or after `end`. Raises CheckpointError for another source's checkpoint."""
    if at.source not in ("", end.source):
        raise CheckpointError(
            f"sink {sink.name} has what came from {at.source}, and the backfill is of {end.source}: name "
            "another target"
        )
    if at.loading is not None and at.position not in ("", end.position):
        raise CheckpointError(
            f"sink {sink.name} is in the middle of another snapshot, of {at.position}: let its feed go on, "
            "or name another target"
        )
    return at.loading is None and bool(at.position)


def _deliver(
    replay: Replay, sink: Sink, at: Checkpoint | None, end: Offset, patience: RetryDeadline, told: Told | None
) -> None:
    clock = SystemClock()
    delivery = Delivery(sink, at, end.source)
    rows = 0
    for batch in _batches(replay.items(at)):
        delivery.accept(batch)
        _run(delivery, clock.now, patience)
        rows += row_count(batch)
        if told is not None:
            told(rows)
    delivery.flush(clock.now())


def _run(delivery: Delivery, now: Callable[[], float], patience: RetryDeadline) -> None:
    while True:
        try:
            delivery.run(now())
            patience.renew()
            return
        except ReplayRequired:
            raise
        except Retryable as error:
            patience.wait(error)


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    batch: list[Item] = []
    for item in items:
        batch.append(item)
        if row_count(batch) >= _BATCH_ROWS:
            yield batch
            batch = []
    yield batch
