"""How runs are written into a store and read back."""

from __future__ import annotations

from typing import Final, Protocol
from zlib import crc32

import msgspec

from ...codec.blocks import block_from_bytes, block_of, merge
from ...errors import StoreError
from ...events import Block, KvChange
from ...store.batch import PairBatch
from ...store.store import Store
from ..run import BlockLocation, SortRun
from .key import block_key, event_key

_encode: Final = msgspec.msgpack.Encoder().encode
_decode_event: Final = msgspec.msgpack.Decoder(KvChange).decode


class Layout(Protocol):
    shares_runs: bool
    """True if a run may hold changes of several tables."""

    def put(self, batch: PairBatch, run: SortRun, block: Block) -> tuple[bytes, bytes, int]:
        """Add a run to the batch; return its first key, its last key and the number of keys."""

    def get(self, store: Store, run: SortRun, place: BlockLocation) -> Block:
        """Return the changes of a run.

        Raises StoreError unless all of them are there, unharmed.
        """


class BlockLayout:
    """Stores a run as one value: its block."""

    shares_runs = True

    def put(self, batch: PairBatch, run: SortRun, block: Block) -> tuple[bytes, bytes, int]:
        key = block_key(run)
        batch.put(key, block.to_bytes(), run.newest)
        return key, key, 1

    def get(self, store: Store, run: SortRun, place: BlockLocation) -> Block:  # noqa: ARG002
        value = store.get(place.window, place.lower)
        if value is None:
            raise StoreError("a block is missing")
        return read_block(value)


class EventLayout:
    """Stores each change as one value under the original's keys: for comparison, at half the speed.

    Where runs overlap, reading one brings changes of the other as well; they leave once.
    """

    shares_runs = False

    def put(self, batch: PairBatch, run: SortRun, block: Block) -> tuple[bytes, bytes, int]:
        table = run.tables[0]
        keys = []
        for change in block:
            keys.append(event_key(table, change))
            batch.put(keys[-1], _seal(_encode(change)), run.newest)
        return keys[0], keys[-1], len(keys)

    def get(self, store: Store, run: SortRun, place: BlockLocation) -> Block:
        pairs = store.iterate(place.window, place.lower, place.upper + b"\0")
        block = block_of(_decode_event(_unseal(value)) for _, value in pairs)
        if len(block) < place.keys:
            raise StoreError(f"{place.keys - len(block)} changes are missing")
        return merge([block], [run.tables[0].uid])


def read_block(value: bytes) -> Block:
    """Read a value of BlockLayout. Raises StoreError if it is damaged."""
    try:
        return block_from_bytes(value)
    except ValueError as error:
        raise StoreError(str(error)) from error


def read_value(value: bytes) -> Block:
    """Read a value of either layout. Raises StoreError if it is damaged or of neither."""
    try:
        return read_block(value)
    except StoreError as not_read:
        try:
            return block_of([_decode_event(_unseal(value))])
        except (StoreError, msgspec.DecodeError):
            raise not_read from None


LAYOUTS: Final[dict[str, Layout]] = {"block": BlockLayout(), "event": EventLayout()}


def _seal(packed: bytes) -> bytes:
    """CRC-32 (4 bytes, little-endian) and MessagePack."""
    return crc32(packed).to_bytes(4, "little") + packed


def _unseal(value: bytes) -> memoryview:
    packed = memoryview(value)[4:]
    if crc32(packed) != int.from_bytes(value[:4], "little"):
        raise StoreError("the checksum does not match")
    return packed
