"""Changes of TiKV in the raw envelope: their own bytes, and what is read from them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pyarrow as pa
import pytest
from msgspec.structs import replace

from tests.codec.native.tidb import cases
from tidemill.codec.blocks import block_of
from tidemill.codec.tidb.changes import ChangesDecoder
from tidemill.codec.tidb.packed import packed_changes, packed_inserts
from tidemill.codec.tidb.run import KvBlock, KvRun
from tidemill.errors import SinkError, SourceError
from tidemill.events import DELETE, PUT, Chunk, Ddl, KvChange, Op, Rows, Run, TableProgress, Transaction
from tidemill.spark.capture.texts import Texts
from tidemill.spark.envelope import Decoder, EnvelopeEncoder
from tidemill.spark.read.output import TypedBatches
from tidemill.spark.read.pick import Pick
from tidemill.spark.read.typed import TypedEncoder

EXACT = ["change", "layout"]


pytestmark = pytest.mark.usefixtures("decoder")


def _changes(pairs: list[tuple[bytes, bytes]], random: Random) -> Iterator[tuple[Op, KvChange]]:
    for (key, value), (_, other) in zip(pairs, pairs[1:] + pairs[:1], strict=True):
        yield random.choice(
            [
                ("insert", KvChange(7, 6, PUT, key, value)),
                ("update", KvChange(7, 6, PUT, key, other, value)),
                ("delete", KvChange(7, 6, DELETE, key, b"", value)),
            ]
        )


def _transactions() -> list[Transaction]:
    """Return transactions of random tables, whose rows can be decoded."""
    found = []
    for seed in range(40):
        case = next(iter(cases(seed)))
        if case.keyless:
            continue
        decoder = ChangesDecoder("shop", case.info)
        runs: list[Run] = [
            KvRun(7, 6, decoder.table, op, None, KvBlock(decoder, block_of([change])), 0, 1)
            for op, change in _changes(case.pairs * 2, Random(seed))
        ]
        try:
            decoder.read_each([change for run in runs for change in run.block.changes])
        except SourceError:
            continue
        chunk = Chunk("shop.t", TableProgress((seed,))) if seed % 2 else None
        found.append(Transaction(7, 6, "tikv cluster 1", Rows(runs), "7", chunk=chunk))
    assert len(found) > 10
    return found


def _decoded(item: Transaction) -> Transaction:
    return replace(item, rows=[row for run in item.runs for row in run.changes()])


def test_bytes_and_rows_make_the_same_lines_and_come_back() -> None:
    for item in _transactions():
        from_bytes, from_rows = EnvelopeEncoder().encode([item]), EnvelopeEncoder().encode([_decoded(item)])
        from_bytes.validate(full=True)
        assert from_bytes.drop_columns(EXACT).equals(from_rows.drop_columns(EXACT))
        for batch in (from_bytes, from_rows):
            assert repr(Decoder().decode(batch)) == repr([_decoded(item)])
            none = pa.nulls(batch.num_rows, pa.string())
            bare = batch.set_column(6, batch.schema.field(6), none).set_column(7, batch.schema.field(7), none)
            assert Texts()(bare).equals(batch)


def test_without_json_no_row_is_decoded() -> None:
    for item in _transactions()[:3]:
        EnvelopeEncoder(json=False).encode([item])
        assert all(run.decoded is None and run.block._decoded is None for run in item.runs)


def test_typed_columns_of_the_envelope_are_those_of_the_items() -> None:
    count = 0
    for item in _transactions():
        table = item.runs[0].table
        try:
            expected = TypedEncoder(table, Pick(), invalid_dates="null").encode([item])
        except SourceError:  # a value that its column's type can't hold
            continue
        count += 1
        typed = TypedBatches(TypedEncoder(table, Pick(), invalid_dates="null"))
        for given in (item, _decoded(item)):
            found = typed.convert(EnvelopeEncoder(json=False).encode([given]))
            found.validate(full=True)
            assert found.schema.equals(expected.schema)
            assert repr(found.to_pylist()) == repr(expected.to_pylist())  # a NaN equals none
    assert count > 10


def test_schema_changes_are_checked_and_left_out() -> None:
    item = _transactions()[0]
    table = item.runs[0].table
    ddl = Ddl(8, 8, item.source, table.schema, table.name, "ALTER ...", (), "8", reload="all rows")
    typed = TypedBatches(TypedEncoder(table, Pick(), invalid_dates="null"))
    only = EnvelopeEncoder().encode([Ddl(8, 8, item.source, table.schema, table.name, "CREATE ...", (), "8")])
    assert typed.convert(only).num_rows == 0
    with pytest.raises(SourceError, match="in a way that its rows don't tell"):
        typed.convert(EnvelopeEncoder().encode([item, ddl]))


def test_inserts_are_packed_as_changes_are() -> None:
    decoder = ChangesDecoder("shop", next(iter(cases(1))).info)
    pairs = [(b"key", b"value"), (b"k", b""), (b"", b"v" * 300)]
    found = packed_changes(
        [
            KvRun(7, 6, decoder.table, "insert", None, KvBlock(decoder, block_of([change])), 0, 1)
            for change in [KvChange(7, 6, PUT, *pair) for pair in pairs]
        ]
    )
    assert found is not None
    assert packed_inserts(*zip(*pairs, strict=True)).equals(found[1])
    assert len(packed_inserts([], [])) == 0


@pytest.mark.parametrize("change", [None, b"", b"1234567", b"\xff" * 20, b"\1\0\0\0\0\0\0\0k"])
def test_a_change_that_is_not_as_it_was_read_is_refused(change: bytes | None) -> None:
    item = _transactions()[0]
    batch = EnvelopeEncoder().encode([item])
    damaged = pa.array([change] * batch.num_rows, pa.binary())
    batch = batch.set_column(10, batch.schema.field(10), damaged)
    with pytest.raises(SinkError, match="change and layout aren't as they were read"):
        Decoder().decode(batch)
    with pytest.raises(SourceError):
        TypedBatches(TypedEncoder(item.runs[0].table, Pick())).convert(batch)
