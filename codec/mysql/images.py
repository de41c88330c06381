"""The rows of runs as Arrow columns, straight from the bytes of their events."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...events import Run
from ..arrow_arrays import bool_array, int64_array
from ..image import NO_IMAGE, Image
from .columns import ColumnsDecoder, NotColumnar
from .result_rows import ResultRowsDecoder
from .run import EventRun, ResultRun
from .values import UNREADABLE

_NOT_COLUMNAR: Final = (NotColumnar, pa.ArrowException, *UNREADABLE)
"""Errors of rows that are to be taken one by one."""


def event_images(runs: Sequence[Run]) -> tuple[Image, Image] | None:
    """The rows before and after all changes of these runs of one table, as `codec.images` returns them.

    Returns None where the changes are to be taken one by one: they aren't all of a binlog, lack columns, or
    have a value that the columns' types don't hold. Raises SourceError for an event that isn't whole.
    """
    first = runs[0]
    if isinstance(first, ResultRun):
        return _result_images(runs, first.decoder)
    if not isinstance(first, EventRun):
        return None
    decoder, events, places = first.decoder, [], []
    for run in runs:
        if not isinstance(run, EventRun) or run.decoder is not decoder:
            return None
        starts = run.starts()
        if starts is None:
            return None
        places.append(starts)
        events.append(run.event)
    try:
        if decoder.layout is not None:
            columns = decoder.layout.columns(events, places)
        else:
            columns = ColumnsDecoder(decoder.fields).decode(b"".join(events), _joined(events, places))
    except _NOT_COLUMNAR:
        return None
    ops = {run.op for run in runs}
    if ops == {"insert"}:
        return NO_IMAGE, Image(columns, None)
    if ops == {"delete"}:
        return Image(columns, None), NO_IMAGE
    before, after = _indexes(runs, places)
    return _image(columns, before), _image(columns, after)


def _joined(events: Sequence[bytes], places: Sequence[array[int]]) -> npt.NDArray[np.int64]:
    """Return the places in all events joined."""
    sizes = np.fromiter(map(len, events), np.int64, len(events))
    starts = np.frombuffer(b"".join(places), np.int64)
    return starts + np.repeat(np.cumsum(sizes) - sizes, _counts(places))


def _result_images(runs: Sequence[Run], decoder: ResultRowsDecoder) -> tuple[Image, Image] | None:
    """Return the rows of a snapshot, if the native decoder is in use."""
    packets = [run.packets for run in runs if isinstance(run, ResultRun) and run.decoder is decoder]
    if decoder.layout is None or len(packets) < len(runs):
        return None
    try:
        return NO_IMAGE, Image(decoder.layout.columns(b"".join(packets)), None)
    except _NOT_COLUMNAR:
        return None


def row_packets(runs: Sequence[Run]) -> pa.Array | None:
    """The packets of each snapshot row of these runs, as binary; None for runs that aren't all of one layout.

    Raises SourceError for a row that is cut off; the values aren't looked at.
    """
    first = runs[0]
    if not isinstance(first, ResultRun):
        return None
    ends, packets, base = [], [], 0
    for run in runs:
        if not isinstance(run, ResultRun) or run.decoder is not first.decoder:
            return None
        ends.append(np.frombuffer(run.starts(), np.int64)[:-1] + base)
        packets.append(run.packets)
        base += len(run.packets)
    return _cut(np.append(np.concatenate(ends), base), packets).cast(pa.binary())


def raw_images(runs: Sequence[Run]) -> tuple[bytes, pa.Array] | None:
    """The Table_map of all these runs, and the source's bytes of each change: of an update, both images.

    Returns None for runs that aren't all of one layout of a binlog, that lack columns, or whose layout isn't
    in the Table_map alone. Raises SourceError for an event that isn't whole; the values aren't looked at.
    """
    first = runs[0]
    if not isinstance(first, EventRun) or not first.decoder.payload or first.decoder.needs_schema:
        return None
    decoder, events, places = first.decoder, [], []
    for run in runs:
        if not isinstance(run, EventRun) or run.decoder is not decoder:
            return None
        images = run.starts()
        if images is None:
            return None
        places.append(images)
        events.append(run.event)
    counts = _counts(places)
    starts = _joined(events, places)
    if any(run.op == "update" for run in runs):
        updates = np.repeat([run.op == "update" for run in runs], counts)
        starts = starts[~updates | (_ordinals(counts) % 2 == 0)]
    # Bytes of a change end where the next one begins, or with their event: its head is between.
    limits = np.cumsum([len(event) for event in events])
    ends = np.minimum(np.append(starts[1:], limits[-1]), limits[np.searchsorted(limits, starts, "right")])
    every = _cut(np.stack([starts, ends], 1).reshape(-1), events)
    return decoder.payload, every.take(int64_array(np.arange(0, 2 * len(starts), 2))).cast(pa.binary())


def _counts(places: Sequence[array[int]]) -> npt.NDArray[np.int64]:
    return np.fromiter(map(len, places), np.int64, len(places))


def _ordinals(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of each image in its event."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _cut(ends: npt.NDArray[np.int64], pieces: Sequence[bytes]) -> pa.Array:
    """Return the bytes of all pieces cut at these places, the first of which is where they begin."""
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(pieces))]
    return pa.Array.from_buffers(pa.large_binary(), max(0, len(ends) - 1), buffers)


def _indexes(
    runs: Sequence[Run], places: Sequence[array[int]]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The number of each change's image before and after it; -1 where there is none."""
    counts = _counts(places)
    ops = np.repeat([run.op for run in runs], counts)
    images = np.arange(len(ops))
    is_second = (ops == "update") & (_ordinals(counts) % 2 == 1)
    first, op = images[~is_second], ops[~is_second]
    return np.where(op == "insert", -1, first), np.where(op == "delete", -1, first + (op == "update"))


def _image(columns: list[pa.Array], index: npt.NDArray[np.int64]) -> Image:
    absent = index < 0
    if absent.all():
        return NO_IMAGE
    if len(index) == len(columns[0]) and not absent.any():
        return Image(columns, None)
    taken = int64_array(index, absent)
    return Image([column.take(taken) for column in columns], bool_array(absent) if absent.any() else None)
