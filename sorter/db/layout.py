"""How runs are written into a store and read back."""

from __future__ import annotations

from typing import Final, Protocol
from zlib import crc32

import msgspec

from ...errors import StoreError
from ...events import KvChange
from ...store.batch import Batch
from ...store.store import Store
from ..run import BlockLocation, Owners, Run
from .key import block_key, event_key, is_mixed

_encode: Final = msgspec.msgpack.Encoder().encode
_decode_block: Final = msgspec.msgpack.Decoder(list[KvChange]).decode
_decode_mixed: Final = msgspec.msgpack.Decoder(tuple[list[int], list[KvChange]]).decode
_decode_event: Final = msgspec.msgpack.Decoder(KvChange).decode


class Layout(Protocol):
    takes_any_run: bool
    """True if a run may hold changes of several tables in any order; otherwise of one table, sorted."""

    def put(
        self, batch: Batch, run: Run, changes: list[KvChange], owners: Owners
    ) -> tuple[bytes, bytes, int]:
        """Add a run to the batch; return its first key, its last key and the number of keys."""

    def get(self, store: Store, place: BlockLocation) -> tuple[list[KvChange], Owners]:
        """Return the changes of a run as they were put, and their owners.

        Raises StoreError unless all of them are there, unharmed.
        """


class BlockLayout:
    """Stores a run as one value: its changes, or a pair of owners and changes."""

    takes_any_run = True

    def put(
        self, batch: Batch, run: Run, changes: list[KvChange], owners: Owners
    ) -> tuple[bytes, bytes, int]:
        key = block_key(run)
        batch.put(key, _seal(_encode(changes if owners is None else (owners, changes))), run.newest)
        return key, key, 1

    def get(self, store: Store, place: BlockLocation) -> tuple[list[KvChange], Owners]:
        value = store.get(place.window, place.lower)
        if value is None:
            raise StoreError("a block is missing")
        return read_block(place.lower, value)


class EventLayout:
    """Stores each change as one value under the original's keys: for comparison, at half the speed.

    Where runs overlap, reading one brings changes of the other as well; they leave once.
    """

    takes_any_run = False

    def put(
        self, batch: Batch, run: Run, changes: list[KvChange], _owners: Owners
    ) -> tuple[bytes, bytes, int]:
        keys = [event_key(run.tables[0], change) for change in changes]
        for key, change in zip(keys, changes, strict=True):
            batch.put(key, _seal(_encode(change)), run.newest)
        return keys[0], keys[-1], len(set(keys))

    def get(self, store: Store, place: BlockLocation) -> tuple[list[KvChange], Owners]:
        pairs = store.iterate(place.window, place.lower, place.upper + b"\0")
        changes = [_decode_event(_unseal(value)) for _, value in pairs]
        if len(changes) < place.keys:
            raise StoreError(f"{place.keys - len(changes)} changes are missing")
        return changes, None


def read_block(key: bytes, value: bytes) -> tuple[list[KvChange], Owners]:
    """Decode a value of BlockLayout. Raises StoreError if damaged, msgspec.DecodeError if it is no block."""
    packed = _unseal(value)
    if is_mixed(key):
        owners, changes = _decode_mixed(packed)
        return changes, owners
    return _decode_block(packed), None


def read_value(key: bytes, value: bytes) -> list[KvChange]:
    """Decode a value of either layout. Raises StoreError if it is damaged or of neither."""
    try:
        try:
            return read_block(key, value)[0]
        except msgspec.ValidationError:
            return [_decode_event(_unseal(value))]
    except msgspec.DecodeError as error:
        raise StoreError(f"a value isn't the sorter's: {error}") from error


LAYOUTS: Final[dict[str, Layout]] = {"block": BlockLayout(), "event": EventLayout()}


def _seal(packed: bytes) -> bytes:
    """CRC-32 (4 bytes, little-endian) and MessagePack."""
    return crc32(packed).to_bytes(4, "little") + packed


def _unseal(value: bytes) -> memoryview:
    packed = memoryview(value)[4:]
    if crc32(packed) != int.from_bytes(value[:4], "little"):
        raise StoreError("the checksum does not match")
    return packed
