"""Raw changes grouped into runs by table and operation, and runs into transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...codec.tidb.changes import op_of
from ...codec.tidb.run import KvBlock, KvRun
from ...events import KvChange, Rows, Run
from .items import Part
from .rows import RowReader

TABLE_BYTES: Final = 9
"""Length of the part of a key that names the table."""


class Runs:
    """The changes between two schema changes."""

    def __init__(self, reader: Callable[[bytes, KvChange], RowReader | None]) -> None:
        """`reader` returns that of a table, by its part of the key; None for a table that isn't followed."""
        self._reader: Final = reader
        self._blocks: dict[bytes, KvBlock | None] = {}
        self._parts: list[Part] = []
        self._runs: list[Run] = []
        self._run: KvRun | None = None
        self._stamp = (0, 0)

    def add(self, change: KvChange) -> None:
        table = change.key[:TABLE_BYTES]
        if table not in self._blocks:
            reader = self._reader(table, change)
            self._blocks[table] = None if reader is None else KvBlock(reader, [])
        block, op = self._blocks[table], op_of(change)
        if block is None or op is None or block.decoder.is_fill(change):
            return
        at = len(block.changes)
        block.changes.append(change)
        commit_ts, start_ts, run = change.commit_ts, change.start_ts, self._run
        if run is None or (commit_ts, start_ts) != self._stamp:
            self._stamp = commit_ts, start_ts
            self._runs = []
            self._parts.append((commit_ts, start_ts, Rows(self._runs)))
        elif run.block is block and run.op == op:
            run.stop = at + 1
            return
        self._run = KvRun(commit_ts, start_ts, block.decoder.table, op, None, block, at, at + 1)
        self._runs.append(self._run)

    def end(self) -> list[Part]:
        """Return the transactions' parts; readers are asked for again afterwards."""
        parts, self._parts, self._run = self._parts, [], None
        self._blocks.clear()
        return parts
