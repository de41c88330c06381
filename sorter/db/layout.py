"""How runs are written into a store and read back."""

from __future__ import annotations

from typing import Final, Protocol

from ...codec.blocks import block_from_bytes, merge
from ...errors import StoreError
from ...events import Block
from ...store.batch import PairBatch
from ...store.store import Store
from ..run import BlockLocation, SortRun
from .key import block_key, event_key


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
    """Stores each change as a block of one under the original's keys: for comparison, at half the speed.

    Where runs overlap, reading one brings changes of the other as well; they leave once.
    """

    shares_runs = False

    def put(self, batch: PairBatch, run: SortRun, block: Block) -> tuple[bytes, bytes, int]:
        table = run.tables[0]
        keys = [event_key(table, change) for change in block]
        for number, key in enumerate(keys):
            batch.put(key, block.slice(number, number + 1).to_bytes(), run.newest)
        return keys[0], keys[-1], len(keys)

    def get(self, store: Store, run: SortRun, place: BlockLocation) -> Block:
        pairs = store.iterate(place.window, place.lower, place.upper + b"\0")
        blocks = [read_block(value) for _, value in pairs]
        if len(blocks) < place.keys:
            raise StoreError(f"{place.keys - len(blocks)} changes are missing")
        return merge(blocks, [run.tables[0].uid] * len(blocks))


def read_block(value: bytes) -> Block:
    """Read a value of either layout. Raises StoreError if it is damaged."""
    try:
        return block_from_bytes(value)
    except ValueError as error:
        raise StoreError(str(error)) from error


LAYOUTS: Final[dict[str, Layout]] = {"block": BlockLayout(), "event": EventLayout()}
