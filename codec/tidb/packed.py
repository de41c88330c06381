"""Changes of TiKV, each in one piece of bytes.

A piece has the sizes of the key and of the value in four bytes each, low byte first, then the key, the value,
and to its end the value before the change; a value that isn't there is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Packing
from struct import error as StructError  # noqa: N812
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SourceError
from ...events import DELETE, PUT, KvChange, RowChange, Run
from ..arrow_arrays import binary_array
from ..native import library
from ..plain_blocks import PlainBlock
from .changes import ChangesDecoder
from .run import KvRun, blocks_of

_sizes: Final = Packing("<II")


class PackedRun(Run, eq=False, gc=False):
    """Changes of one table by one operation, each packed."""

    decoder: ChangesDecoder
    packed: pa.Array
    """An array of binary, without nulls."""

    def __len__(self) -> int:
        return len(self.packed)

    def changes(self) -> list[RowChange]:
        if self.decoded is None:
            op = DELETE if self.op == "delete" else PUT
            changes = [
                KvChange(self.commit_ts, self.start_ts, op, *_parts(piece))
                for piece in self.packed.to_pylist()
            ]
            with self.decoder.lock:
                rows = self.decoder.read_each(changes)
            decoded = [change for change in rows if change is not None and change.op == self.op]
            if len(decoded) != len(changes):
                raise SourceError(f"packed changes of {self.table.full_name} aren't each an {self.op}")
            self.decoded = decoded
        return self.decoded


def _parts(piece: bytes | None) -> tuple[bytes, bytes, bytes]:
    """Return key, value and old value. Raises SourceError if the piece isn't whole."""
    try:
        key_bytes, value_bytes = _sizes.unpack_from(piece or b"")
    except StructError:
        raise SourceError("a packed change is cut off in its sizes") from None
    assert piece is not None
    value = _sizes.size + key_bytes
    old_value = value + value_bytes
    if old_value > len(piece):
        raise SourceError(f"a packed change of {old_value} bytes is cut off after {len(piece)}")
    return piece[_sizes.size : value], piece[value:old_value], piece[old_value:]


def packed_changes(runs: Sequence[Run]) -> tuple[ChangesDecoder, pa.Array] | None:
    """Return the decoder of all these runs, and an array of binary with their changes; None for runs that
    aren't of TiKV, have several decoders, or are of another table than these. The values aren't looked at."""
    match runs[0]:
        case KvRun() as first if first.table is first.block.decoder.table:
            return _packed_runs(runs, first.block.decoder)
        case PackedRun() as first if first.table is first.decoder.table:
            decoder = first.decoder
            pieces = [run.packed for run in runs if isinstance(run, PackedRun) and run.decoder is decoder]
            return (decoder, pa.concat_arrays(pieces)) if len(pieces) == len(runs) else None
    return None


def packed_inserts(keys: Sequence[bytes], values: Sequence[bytes]) -> pa.Array:
    """Return an array of binary with the insert of each key and value."""
    sizes = np.empty((len(keys), 2), "<u4")
    for place, parts in enumerate((keys, values)):
        sizes[:, place] = np.fromiter(map(len, parts), np.uint32, len(parts))
    heads = pa.Array.from_buffers(pa.binary(_sizes.size), len(keys), [None, pa.py_buffer(sizes)])
    parts = heads.cast(pa.large_binary()), binary_array(keys), binary_array(values)
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary())).cast(pa.binary())


def _packed_runs(runs: Sequence[Run], decoder: ChangesDecoder) -> tuple[ChangesDecoder, pa.Array] | None:
    blocks = blocks_of(runs, decoder)
    if blocks is None:
        return None
    if any(isinstance(block, PlainBlock) for block in blocks):
        return decoder, pa.array([_packed(change) for block in blocks for change in block], pa.binary())
    starts, data = library.native.pack_changes(tuple(blocks))
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(data)]
    return decoder, pa.Array.from_buffers(pa.large_binary(), len(starts) // 8 - 1, buffers).cast(pa.binary())


def _packed(change: KvChange) -> bytes:
    sizes = _sizes.pack(len(change.key), len(change.value))
    return b"".join((sizes, change.key, change.value, change.old_value))
