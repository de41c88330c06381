"""A chunk's rows as raw changes, in an SST file whose keys and values are those of the sorter's store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
from rocksdict import IngestExternalFileOptions, Options, Rdict, SstFileWriter

from ...codec.blocks import block_of
from ...codec.mysql.entry import RESULT_ROWS, entry_key
from ...codec.tidb.packed import packed_inserts
from ...errors import StoreError
from ...events import PUT, Block, KvChange, Ts
from ...sorter.db.layout import LAYOUTS, read_block
from ...sorter.keyspace import SortKeyspace
from ...sorter.run import SortRun
from ...store.batch import PairBatch
from ...store.generation import Generation
from ...store.store import Store
from .directory import BackfillDirectory
from .plan import BackfillPlan, ChunkPlan, TablePlan
from .records import ChunkRecord

PIECE_BYTES: Final = 256 << 10
"""Bytes of a block, about, as in the sorter."""

_BEGIN_AGAIN: Final = "remove its directory to begin again"
_LAYOUT: Final = LAYOUTS["block"]
_BOUND: Final = Struct(">IQQ")
"""Prefix of a block's key: uid, table, commit ts."""


class ChunkWriter:
    """Writes the pieces of one chunk, in order. Raises StoreError."""

    def __init__(
        self, directory: BackfillDirectory, folder: str, plan: BackfillPlan, table: TablePlan, number: int
    ) -> None:
        self.rows = 0
        self._directory = directory
        self._folder = folder
        self._plan = plan
        self._number = number
        self._table = SortKeyspace(table.number, plan.uid, 0)
        self._path = directory.new_file(folder, number)
        self._file: SstFileWriter | None = None
        self._blocks = 0
        self._packets: list[bytes] = []
        self._size = 0

    def add_packets(self, packets: bytes, rows: int) -> None:
        """Add MariaDB rows: packets of the binary protocol."""
        self._packets.append(packets)
        self._size += len(packets)
        self.rows += rows
        if self._size >= PIECE_BYTES:
            self._end_piece()

    def add_pairs(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Add rows of TiKV, with the value of each key; they make one piece."""

        self.rows += len(keys)
        self._write([packed_piece(keys, values, self._plan.piece_ts(self._number, self._blocks))])

    def finish(self, low: str, high: str) -> ChunkRecord:
        """Make the file durable and return the chunk's record."""
        self._end_piece()
        size, name = 0, ""
        if self._file is not None:
            _guarded(self._path, self._file.finish)
            size, name = self._path.stat().st_size, f"{self._folder}/{self._path.name}"
        record = ChunkRecord(self._number, name, self.rows, self._blocks, size, low, high)
        if not self._directory.save_record(self._folder, record):
            self.discard()
        return record

    def discard(self) -> None:
        """Delete the file of a chunk that can't be finished."""
        self._file = None
        self._path.unlink(missing_ok=True)

    def _end_piece(self) -> None:
        if self._packets:
            ts = self._plan.piece_ts(self._number, self._blocks)
            self._write([KvChange(ts, ts, PUT, entry_key(1, RESULT_ROWS), b"".join(self._packets))])
            self._packets.clear()
            self._size = 0

    def _write(self, changes: list[KvChange]) -> None:
        if self._file is None:
            self._file = SstFileWriter(Options(raw_mode=True))
            _guarded(self._path, self._file.open, str(self._path))
        batch = PairBatch()
        block = block_of(changes)
        _LAYOUT.put(batch, SortRun([self._table], block), block)
        for key, value in batch.pairs:
            _guarded(self._path, self._file.__setitem__, key, value)
        self._blocks += 1


class ChunkFiles:
    """Finished chunks, ingested into one RocksDB for as long as they are read. Raises StoreError."""

    def __init__(self, directory: BackfillDirectory, records: Sequence[ChunkRecord], scratch: Path) -> None:
        """`scratch` is an empty directory; on the same file system the files are linked, not copied."""
        self._records = {record.number: record for record in records}
        self._db: Rdict | None = None
        self._store = Store(scratch)
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_disable_auto_compactions(True)
        links = [_link(directory.path / record.file, scratch) for record in records if record.file]
        try:
            self._db = Rdict(str(scratch / "ingested"), options)
            if links:
                moving = IngestExternalFileOptions()
                moving.set_move_files(True)
                self._db.ingest_external_file(links, moving)
            self._window = Generation("ingested", self._db, self._db.get_column_family_handle("default"))
        except Exception as error:
            self.close()
            raise StoreError(f"the files of {directory.path} can't be ingested: {error}") from error

    def pieces(self, plan: BackfillPlan, table: TablePlan, chunk: ChunkPlan) -> Iterator[Block]:
        """Yield the changes of each piece of a chunk, in order."""
        lower, upper = (
            _BOUND.pack(plan.uid, table.number, plan.first_ts(number))
            for number in (chunk.number, chunk.number + 1)
        )
        blocks = 0
        for _, value in self._store.iterate(self._window, lower, upper):
            yield read_block(value)
            blocks += 1
        if blocks != self._records[chunk.number].blocks:
            wanted = self._records[chunk.number].blocks
            raise StoreError(
                f"chunk {chunk.number} of {table.table.full_name} has {blocks} of {wanted} blocks"
            )

    def close(self) -> None:
        """Close the files; the scratch directory may be removed then. Safe to repeat."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _link(path: Path, scratch: Path) -> str:
    link = scratch / path.name
    try:
        os.link(path, link)
    except FileNotFoundError:
        raise StoreError(f"{path} is missing: {_BEGIN_AGAIN}") from None
    except OSError:  # another file system, or one without links
        shutil.copyfile(path, link)
    return str(link)


def _guarded(path: Path, call: Any, *arguments: Any) -> None:
    try:
        call(*arguments)
    except Exception as error:
        raise StoreError(f"{path} can't be written: {error}") from error


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
