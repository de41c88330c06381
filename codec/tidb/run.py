"""Runs that keep TiKV's bytes until their rows are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ...events import Block, RowChange, Run, Ts
from ..blocks import new_builder
from .changes import ChangesDecoder


class KvBlock:
    """Raw changes of one table that are decoded together: those of many transactions, in their order."""

    __slots__ = ("_decoded", "changes", "decoder")

    def __init__(self, decoder: ChangesDecoder, changes: Block) -> None:
        self.decoder = decoder
        self.changes = changes
        self._decoded: list[RowChange | None] | None = None

    def rows(self) -> list[RowChange | None]:
        """Return the row changes, decoded once; None for a change that no run has. Raises SourceError."""
        if self._decoded is None:
            with self.decoder.lock:
                if self._decoded is None:
                    self._decoded = self.decoder.read(self.changes)
        return self._decoded


class KvRun(Run, eq=False, gc=False):
    """Consecutive changes of a block, of one operation: each changes a row, and is no fill."""

    block: KvBlock
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def changes(self) -> list[RowChange]:
        if self.decoded is None:
            self.decoded = cast("list[RowChange]", self.block.rows()[self.start : self.stop])
        return self.decoded


def blocks_of(runs: Sequence[Run], decoder: ChangesDecoder) -> list[Block] | None:
    """Return the raw changes of runs of this decoder, those of neighbours in one; None for other runs."""
    blocks: list[Block] = []
    block: KvBlock | None = None
    start = stop = 0
    for run in runs:
        if not isinstance(run, KvRun):
            return None
        if run.block is block and run.start == stop:
            stop = run.stop
            continue
        if run.block.decoder is not decoder:
            return None
        if block is not None:
            blocks.append(block.changes.slice(start, stop))
        block, start, stop = run.block, run.start, run.stop
    if block is not None:
        blocks.append(block.changes.slice(start, stop))
    return blocks


def inserts(decoder: ChangesDecoder, ts: Ts, keys: list[bytes], values: list[bytes]) -> KvRun:
    """Return rows that were read at `ts`, whose keys ascend, as inserts."""
    builder = new_builder()
    builder.add_rows(ts, keys, values)
    block = KvBlock(decoder, builder.take())
    return KvRun(ts, ts, decoder.table, "insert", None, block, 0, len(block.changes))
