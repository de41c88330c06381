"""The task that writes a partition's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Final, TypeVar

import pyarrow as pa
from msgspec.structs import replace

from ...actors import SystemClock
from ...events import Checkpoint, Item
from ...sink import Delivery, Sink
from ...sink.kind import ByRows
from ...sink.sink import closing
from .files import FilesOfQueries, Made
from .options import WriteOptions
from .order import Ordered
from .patience import patiently
from .place import BatchPartition, BatchProgress
from .sql import open_shared

LOCK_SECONDS: Final = 10.0
"""Longest wait for a lock of somebody else in the target, before it is reported and the attempt repeated."""

T = TypeVar("T")


def write_partition(options: WriteOptions, place: BatchPartition, batches: Iterable[pa.RecordBatch]) -> Made:
    """Apply the rows; repeated calls apply each row once. Raises Retryable if the target couldn't be
    written for the sink's timeout, and Fatal."""
    ordered = Ordered(place.mark)
    items = ordered.items(batches)
    first = next(items, None)
    if first is None and (options.is_files or not place.begins):
        return Made(place)
    some = [] if first is None else [first]
    loads = bool(ordered.loads)
    if options.is_files:
        return _into_files(FilesOfQueries(options), place, chain(some, items), loads)
    task = _Task(options, _open(options, place), place)
    with closing(task.sink):
        task.write(chain(some, items), loads)
    return Made(place)


def _open(options: WriteOptions, place: BatchPartition) -> Sink:
    """Return a sink that several attempts at the task can share, not opened yet.

    Raises SinkError, ConfigError.
    """
    way, sink = options.way, options.given
    assert isinstance(way, ByRows)
    assert isinstance(sink.target, str)
    if way.open is not None:
        return way.open(sink.target, sink.options, place, options.host)
    assert sink.kind.dialect is not None
    seconds = min(LOCK_SECONDS, options.timeout / 4)
    return open_shared(sink.kind.dialect, sink.target, sink.options, place, options.host, seconds)


def _into_files(
    files: FilesOfQueries, place: BatchPartition, items: Iterable[list[Item]], loads: bool
) -> Made:
    sink = files.begin(place)
    sink.open()
    delivery = Delivery(sink, _begins(place, place.start, loads))
    for some in items:
        delivery.accept(some)
        delivery.run(0.0)
    return sink.made(loads=loads)


def _begins(place: BatchPartition, stored: Checkpoint, loads: bool) -> Checkpoint:
    """Return the checkpoint for the next rows: with loading tables before a snapshot's rows, with whole ones
    before changes."""
    return replace(stored, loading=(stored.loading or {}) if loads else None, owner=place.owner)


class _Task:
    """Writes a partition into a target that stores a checkpoint."""

    def __init__(self, options: WriteOptions, sink: Sink, place: BatchPartition) -> None:
        self.sink = sink
        self._place = place
        self._timeout = options.timeout
        self._clock = SystemClock()

    def write(self, items: Iterable[list[Item]], loads: bool) -> None:
        stored = self._patiently(self.sink.open) or self._place.start
        progress = BatchProgress(stored, self._place)
        if progress.is_over:
            return
        at = _begins(self._place, stored if progress.is_repeat else replace(stored, loading=None), loads)
        delivery = Delivery(self.sink, at, self._place.start.source)
        for some in items:
            progress.check(some)
            delivery.accept(some)
            self._patiently(lambda: delivery.run(self._clock.now()))
        progress.end()
        self._patiently(lambda: self._finish(delivery))

    def _finish(self, delivery: Delivery) -> None:
        delivery.run(self._clock.now())
        delivery.flush(self._clock.now())

    def _patiently(self, attempt: Callable[[], T]) -> T:
        return patiently(attempt, self._timeout, self._place.task)
