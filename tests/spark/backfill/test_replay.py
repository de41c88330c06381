"""Chunks of TiKV's rows in files, and the transactions that are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest

from tests.codec.native.tidb import cases
from tidemill.codec.blocks import block_of
from tidemill.codec.native import library
from tidemill.codec.tidb.changes import ChangesDecoder
from tidemill.codec.tidb.table_info import encode_table_info
from tidemill.errors import SourceError, StoreError
from tidemill.events import PUT, KvChange, RowChange, Transaction
from tidemill.spark.backfill.chunk_file import ChunkFiles, ChunkWriter, inserts_of, packed_piece
from tidemill.spark.backfill.directory import READ, BackfillDirectory
from tidemill.spark.backfill.plan import BackfillPlan, ChunkPlan, TablePlan
from tidemill.spark.backfill.records import Manifest
from tidemill.spark.backfill.replay import Replay
from tidemill.spark.envelope import EnvelopeEncoder


@dataclass
class Rows:
    """Rows of a table of TiDB that can be decoded."""

    decoder: ChangesDecoder
    keys: list[bytes]
    values: list[bytes]

    def replayed(self, directory: Path) -> list[Transaction]:
        table = TablePlan(0, self.decoder.table, (ChunkPlan(1),), info=encode_table_info(self.decoder.info))
        plan = BackfillPlan("tikv", 1 << 31, "tikv cluster 1", ("*.*",), "9", "", 1 << 40, (table,), 2)
        with BackfillDirectory(directory).held(), TemporaryDirectory() as scratch:
            writer = ChunkWriter(BackfillDirectory(directory), READ, plan, table, 1)
            half = len(self.keys) // 2
            writer.add_pairs(self.keys[:half], self.values[:half])
            writer.add_pairs(self.keys[half:], self.values[half:])
            record = writer.finish("9", "9")
            manifest = Manifest(plan, "9", (record,))
            with ChunkFiles(BackfillDirectory(directory), [record], Path(scratch)) as files:
                return list(Replay(manifest, files).chunk(table, table.chunks[0]))


def some_rows() -> list[Rows]:
    found = []
    for seed in range(12):
        case = next(iter(cases(seed)))
        keys, values = zip(*case.pairs * 2, strict=True)
        rows = Rows(ChangesDecoder("shop", case.info), list(keys), list(values))
        try:
            rows.decoder.read_each([KvChange(1, 1, PUT, *pair) for pair in zip(keys, values, strict=True)])
        except SourceError:
            continue
        found.append(rows)
    assert len(found) > 3
    return found


@pytest.mark.parametrize("in_use", [False, True], ids=["python", "native"])
def test_rows_of_a_file_are_those_that_were_read(
    in_use: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_use and library.native is None:
        pytest.skip("the native decoder isn't built")
    monkeypatch.setattr(library, "in_use", in_use)
    for number, rows in enumerate(some_rows()):
        items = rows.replayed(tmp_path / str(number))
        assert [item.commit_ts for item in items] == [items[0].commit_ts, items[0].commit_ts + 1]
        batch = EnvelopeEncoder().encode(items)
        found: list[RowChange] = []
        for item in items:
            at, count = item.commit_ts, len(item.rows)
            pairs = zip(rows.keys[len(found) :], rows.values[len(found) :], strict=True)
            changes = [KvChange(at, at, PUT, *pair) for pair in pairs][:count]
            expected = rows.decoder.read_each(changes)
            assert repr(list(item.rows)) == repr(expected)  # a NaN equals none
            found += item.rows
        assert len(found) == len(rows.keys)
        decoded = [
            Transaction(item.commit_ts, item.start_ts, item.source, list(item.rows), "9", chunk=item.chunk)
            for item in items
        ]
        assert batch.drop_columns(["change", "layout"]).equals(
            EnvelopeEncoder().encode(decoded).drop_columns(["change", "layout"])
        )


def test_a_piece_that_is_no_batch_is_said() -> None:
    with pytest.raises(StoreError, match="a piece of rows has 1 changes, not one of packed rows"):
        inserts_of(block_of([KvChange(7, 7, PUT, b"k", b"v")]))
    piece = packed_piece([b"k"], [b"v"], 7)
    assert inserts_of(block_of([piece])).to_pylist() == [b"\1\0\0\0\1\0\0\0kv"]
    for value in (b"", piece.value[:40], pa.schema([]).serialize().to_pybytes()):
        with pytest.raises(StoreError, match="a piece of rows can't be read"):
            inserts_of(block_of([KvChange(7, 7, PUT, b"", value)]))
