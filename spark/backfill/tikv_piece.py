"""Pieces of TiKV's rows in a chunk's file: one change whose value is packed changes, as Arrow IPC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from ...codec.tidb.packed import packed_inserts
from ...errors import StoreError
from ...events import PUT, Block, KvChange, Ts

_SCHEMA: Final = pa.schema([pa.field("change", pa.binary(), nullable=False)])
_PACKED: Final = b""
"""The key of packed rows: no row has it."""


def packed_piece(keys: Sequence[bytes], values: Sequence[bytes], ts: Ts) -> KvChange:
    """Return the piece of these keys, in their order, and the value of each."""
    batch = pa.RecordBatch.from_arrays([packed_inserts(keys, values)], schema=_SCHEMA)
    return KvChange(ts, ts, PUT, _PACKED, batch.serialize().to_pybytes())


def inserts_of(piece: Block) -> pa.Array:
    """Return the packed inserts of a piece. Raises StoreError if it can't be read."""
    if len(piece) != 1 or piece[0].key != _PACKED:
        raise StoreError(f"a piece of rows has {len(piece)} changes, not one of packed rows")
    try:
        return pa.ipc.read_record_batch(piece[0].value, _SCHEMA).column(0)
    except (pa.ArrowException, EOFError, OSError) as error:
        raise StoreError(f"a piece of rows can't be read: {error}") from None
