"""Changes grouped into transactions: rows, or runs of raw changes by table and operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ...codec.native import library
from ...codec.plain_blocks import PlainBlock
from ...codec.tidb.changes import TABLE_BYTES, ChangesDecoder, locating, op_of
from ...codec.tidb.run import KvBlock, KvRun
from ...events import Block, RowChange, Rows, Run
from .history import TableAt
from .items import Parts


class RowReader(ChangesDecoder):
    """Decodes the changes of one table as of a ts."""

    def __init__(self, table: TableAt) -> None:
        """Raises SourceError for a column of an unknown type."""
        super().__init__(table.schema, table.info)


Tables: TypeAlias = Mapping[bytes, Block]
"""The changes of each table, by its part of the key."""
Readers: TypeAlias = Mapping[bytes, RowReader | None]
"""None for a table that isn't followed."""


def row_parts(changes: Block, tables: Tables, readers: Readers) -> Parts:
    """Return the parts of transactions of the changes between two schema changes, with decoded rows."""
    if isinstance(changes, PlainBlock):
        return _plain_row_parts(changes, tables, readers)
    native = {prefix: reader.native_table(None) if reader else None for prefix, reader in readers.items()}
    with locating(readers, tables):
        return Parts(*library.native.tidb_transactions(changes, native, RowChange), are_whole=True)


def raw_parts(changes: Block, tables: Tables, readers: Readers) -> Parts:
    """Return the same parts with rows that are decoded when they are read, those of a table in one block."""
    blocks = {
        prefix: None if reader is None else KvBlock(reader, tables[prefix])
        for prefix, reader in readers.items()
    }
    if isinstance(changes, PlainBlock):
        return _plain_raw_parts(changes, blocks)
    native = {
        prefix: None if block is None else block.decoder.native_table(block)
        for prefix, block in blocks.items()
    }
    with locating(readers, tables):
        return Parts(*library.native.tidb_runs(changes, native, KvRun, Rows), are_whole=True)


# --- without the native module ---------------------------------------------------------------------


def _plain_row_parts(changes: PlainBlock, tables: Tables, readers: Readers) -> Parts:
    rows = {
        prefix: iter([] if reader is None else reader.read(tables[prefix]))
        for prefix, reader in readers.items()
    }
    if len(rows) == 1:
        return by_transaction(*rows.values())
    return by_transaction(next(rows[change.key[:TABLE_BYTES]], None) for change in changes)


def by_transaction(changes: Iterable[RowChange | None]) -> Parts:
    """Return the parts of transactions of decoded rows; those that are None are left out."""
    parts = Parts([], [], [])
    rows: list[RowChange] = []
    last_ts = last_start_ts = -1
    for change in changes:
        if change is not None:
            if change.commit_ts != last_ts or change.start_ts != last_start_ts:
                last_ts, last_start_ts, rows = change.commit_ts, change.start_ts, []
                parts.add(last_ts, last_start_ts, rows)
            rows.append(change)
    return parts


def _plain_raw_parts(changes: PlainBlock, blocks: Mapping[bytes, KvBlock | None]) -> Parts:
    numbers = dict.fromkeys(blocks, -1)
    parts = Parts([], [], [])
    runs: list[Run] = []
    run: KvRun | None = None
    last_ts = last_start_ts = -1
    for change in changes:
        table = change.key[:TABLE_BYTES]
        block, op, number = blocks[table], op_of(change), numbers[table] + 1
        numbers[table] = number
        if block is None or op is None or (op == "update" and block.decoder.is_fill(change)):
            continue
        commit_ts, start_ts = change.commit_ts, change.start_ts
        if commit_ts != last_ts or start_ts != last_start_ts:
            last_ts, last_start_ts, run, runs = commit_ts, start_ts, None, []
            parts.add(commit_ts, start_ts, Rows(runs))
        if run is not None and run.block is block and run.op == op and run.stop == number:
            run.stop += 1
            continue
        run = KvRun(commit_ts, start_ts, block.decoder.table, op, None, block, number, number + 1)
        runs.append(run)
    return parts
