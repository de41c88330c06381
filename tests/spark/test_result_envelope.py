"""Rows of a MariaDB's snapshot in the raw envelope: their own packets, and what is read from them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace

from tests.codec.native.test_results import STORED, packet
from tidemill.codec.mysql.result_rows import ResultRowsDecoder, row_starts
from tidemill.codec.mysql.result_writer import ResultWriter
from tidemill.codec.mysql.run import ResultRun
from tidemill.codec.native import library
from tidemill.errors import SinkError, SourceError
from tidemill.events import Chunk, Column, RowChange, Rows, Run, Table, TableProgress, Transaction
from tidemill.spark.capture.texts import Texts
from tidemill.spark.envelope import Decoder, EnvelopeEncoder
from tidemill.spark.read.output import TypedBatches
from tidemill.spark.read.pick import Pick
from tidemill.spark.read.typed import TypedEncoder
from tidemill.testing import column_kinds as kinds

EXACT = ["change", "layout"]
LOADED = Chunk("shop.t", TableProgress((3, "k")))
ORDERS = Table("shop", "orders", (Column("id", "bigint"), Column("note", "varchar", length=40)), (0,))
ORDER = ResultWriter(ORDERS).packets((1, "a"))


pytestmark = pytest.mark.usefixtures("decoder")


def loaded(table: Table, pieces: Sequence[bytes], chunk: Chunk | None = LOADED) -> Transaction:
    decoder = ResultRowsDecoder(table)
    runs: list[Run] = [ResultRun(7, 6, decoder.table, "insert", None, decoder, piece) for piece in pieces]
    return Transaction(7, 6, "mariadb 1", Rows(runs), "log:7", chunk=chunk)


def in_rows(item: Transaction) -> Transaction:
    rows = [
        RowChange(row.commit_ts, row.start_ts, row.table, row.op, row.before, row.after) for row in item.rows
    ]
    return replace(item, rows=rows)


def every_value() -> list[Transaction]:
    """Return a transaction for each readable value of each kind."""
    found = []
    for kind, values in STORED.items():
        members = tuple(value.decode(errors="replace") for value in values) if kind == "enum" else ()
        column = Column("c", kind, length=40, scale=2, members=members)
        table = Table("shop", "t", (column,))
        decoder = ResultRowsDecoder(table)
        for value in values:
            data = packet([column], [value]) + packet([column], [None])
            try:
                decoder.decode(data, 0, 0)
            except SourceError:
                continue
            found.append(loaded(table, [data]))
    assert len(found) > 100
    return found


def of_rows() -> list[Transaction]:
    """Return rows of tables with all kinds of columns, in several pieces."""
    found = []
    for table in (kinds.KEYED, kinds.KEYLESS):
        packets = ResultWriter(table).packets
        rows = [*map(packets, kinds.ROWS), packets(kinds.NULLS)]
        found.append(loaded(table, [b"".join(rows[:2]), b"".join(rows[2:])]))
    return found


def test_packets_and_rows_make_the_same_lines_and_come_back() -> None:
    count = 0
    for item in [*every_value(), *of_rows()]:
        try:
            from_rows = EnvelopeEncoder().encode([in_rows(item)])
        except OverflowError:  # a number that no column has
            continue
        count += 1
        from_bytes = EnvelopeEncoder().encode([item])
        from_bytes.validate(full=True)
        assert from_bytes.drop_columns(EXACT).equals(from_rows.drop_columns(EXACT))
        for batch in (from_bytes, from_rows):
            assert repr(Decoder().decode(batch)) == repr([in_rows(item)])
            none = pa.nulls(batch.num_rows, pa.string())
            bare = batch.set_column(6, batch.schema.field(6), none).set_column(7, batch.schema.field(7), none)
            assert Texts()(bare).equals(batch)
    assert count > 100


def test_without_json_no_row_is_decoded() -> None:
    for item in of_rows():
        assert EnvelopeEncoder(json=False).encode([item]).num_rows == len(kinds.ROWS) + 1
        assert all(run.decoded is None for run in item.runs)


def test_typed_columns_of_the_envelope_are_those_of_the_items() -> None:
    count = 0
    for item in [*every_value(), *of_rows()]:
        table = item.runs[0].table
        try:
            expected = TypedEncoder(table, Pick(), invalid_dates="null").encode([in_rows(item)])
        except SourceError:  # a value that its column's type can't hold
            continue
        count += 1
        typed = TypedBatches(TypedEncoder(table, Pick(), invalid_dates="null"))
        for given in (item, in_rows(item)):
            found = typed.convert(EnvelopeEncoder(json=False).encode([given]))
            found.validate(full=True)
            assert found.schema.equals(expected.schema)
            assert repr(found.to_pylist()) == repr(expected.to_pylist())  # a NaN equals none
    assert count > 80


@pytest.mark.parametrize("size", [2**24 - 6, 2**24])
def test_rows_of_several_packets_come_back(size: int) -> None:
    table = Table("shop", "t", (Column("raw", "blob", length=4), Column("id", "int")), (1,))
    packets = ResultWriter(table).packets
    item = loaded(table, [packets((b"a", 1)) + packets((bytes(size), 2)) + packets((b"", 3))])
    batch = EnvelopeEncoder(json=False).encode([item])
    assert batch.num_rows == 3
    assert Decoder().decode(batch) == [in_rows(item)]


def test_pieces_of_several_chunks_in_one_batch_keep_their_own() -> None:
    packets = ResultWriter(ORDERS).packets
    items = []
    for ts, last in ((5, 2), (6, 4)):
        chunk = Chunk("shop.orders", TableProgress((last,)))
        item = loaded(ORDERS, [packets((last - 1, "a")) + packets((last, None))], chunk)
        items.append(replace(item, commit_ts=ts, start_ts=ts))
    back = Decoder().decode(EnvelopeEncoder().encode(items))
    assert [item.chunk for item in back] == [item.chunk for item in items]
    assert [[row.after for row in item.rows] for item in back] == [
        [(1, "a"), (2, None)],
        [(3, "a"), (4, None)],
    ]


def test_rows_that_are_not_of_a_chunk_are_encoded() -> None:
    item = loaded(ORDERS, [ResultWriter(ORDERS).packets((1, "a"))], None)
    assert Decoder().decode(EnvelopeEncoder().encode([item])) == [in_rows(item)]


@pytest.mark.parametrize("change", [None, b"", b"\1\0\0", b"\2\0\0\0\1", ORDER * 2])
def test_a_change_that_is_not_as_it_was_read_is_refused(change: bytes | None) -> None:
    item = loaded(ORDERS, [ORDER])
    batch = EnvelopeEncoder().encode([item])
    damaged = batch.set_column(10, batch.schema.field(10), pa.array([change], pa.binary()))
    with pytest.raises(SinkError, match=r"as it was read|as they were read|holds \d rows"):
        Decoder().decode(damaged)
    with pytest.raises(SinkError):
        TypedBatches(TypedEncoder(ORDERS, Pick())).convert(damaged)
    renamed = batch.set_column(5, batch.schema.field(5), pa.array(["delete"]))
    with pytest.raises(SinkError, match="op is delete for a row of a snapshot"):
        Decoder().decode(renamed)


def test_rows_of_an_unknown_form_are_refused() -> None:
    batch = EnvelopeEncoder().encode([loaded(ORDERS, [ORDER])])
    source, table, chunk, _ = msgspec.msgpack.decode(zlib.decompress(batch.column("layout")[0].as_py()))
    layout = zlib.compress(msgspec.msgpack.encode((source, table, chunk)))
    earlier = batch.set_column(11, batch.schema.field(11), pa.array([layout], pa.binary()))
    with pytest.raises(SinkError, match="rows of a snapshot have form 0, not 1: read them again"):
        Decoder().decode(earlier)


def test_both_decoders_find_the_same_rows(monkeypatch) -> None:
    rows = [*map(ResultWriter(ORDERS).packets, ((1, "a"), (2, "x" * 300), (3, None)))]
    data = b"".join(rows)
    for end in range(len(data) + 1):
        outcomes = []
        for in_use in {library.in_use, library.native is not None}:
            monkeypatch.setattr(library, "in_use", in_use)
            try:
                outcomes.append(list(row_starts(data[:end])))
            except ValueError:
                outcomes.append([])
        ends = [len(b"".join(rows[:count])) for count in range(len(rows) + 1)]
        assert outcomes == [ends[: ends.index(end) + 1] if end in ends else []] * len(outcomes)
    assert [b - a for a, b in pairwise(row_starts(data))] == [len(row) for row in rows]
