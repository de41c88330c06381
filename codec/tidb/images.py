"""The rows of runs of TiKV as Arrow columns, by the native decoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ...events import Run
from ..image import NO_IMAGE, Image
from ..plain_blocks import PlainBlock
from .field import UNREADABLE
from .native_rows import TidbRows
from .packed import PackedRun
from .run import KvRun, blocks_of


def tidb_images(runs: Sequence[Run]) -> tuple[Image, Image] | None:
    """Return the rows before and after the changes of these runs, all of one version of a table; None where
    they are to be taken one by one, or aren't of TiKV."""
    match runs[0]:
        case KvRun() as first:
            return _kv_images(runs, first)
        case PackedRun() as first:
            return _packed_images(runs, first)
    return None


def _kv_images(runs: Sequence[Run], first: KvRun) -> tuple[Image, Image] | None:
    decoder, layout = first.block.decoder, first.block.decoder.rows.layout
    if layout is None:
        return None
    blocks = blocks_of(runs, decoder)
    if blocks is None or any(isinstance(block, PlainBlock) for block in blocks):
        return None
    try:
        before, after = [_image(*layout.columns(blocks, after=after)) for after in (False, True)]
    except (pa.ArrowException, *UNREADABLE):
        return None
    return before, after


def _packed_images(runs: Sequence[Run], first: PackedRun) -> tuple[Image, Image] | None:
    layout = first.decoder.rows.layout
    if layout is None:
        return None
    pieces, has_before, has_after = [], [], []
    for run in runs:
        if not isinstance(run, PackedRun) or run.decoder is not first.decoder:
            return None
        pieces.append(run.packed)
        has_before.append((b"\0" if run.op == "insert" else b"\1") * len(run))
        has_after.append((b"\0" if run.op == "delete" else b"\1") * len(run))
    packed = pa.concat_arrays(pieces)
    if packed.null_count:
        return None
    try:
        return (
            _packed_image(layout, packed, b"".join(has_before), after=False),
            _packed_image(layout, packed, b"".join(has_after), after=True),
        )
    except (pa.ArrowException, *UNREADABLE):
        return None


def _packed_image(layout: TidbRows, packed: pa.Array, has: bytes, *, after: bool) -> Image:
    return _image(has, layout.packed_columns(packed, has, after=after)) if any(has) else NO_IMAGE


def _image(has: bytes, columns: list[pa.Array]) -> Image:
    """Return the image of changes, of which each that has no such row has a 0."""
    if not any(has):
        return NO_IMAGE
    return Image(columns, None if all(has) else pa.array(np.frombuffer(has, np.uint8) == 0))
