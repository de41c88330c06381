"""Chunks brought up to date, beside plain dicts; and rows of the binary protocol, there and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tidemill.codec.mysql.result_rows import ResultRowsDecoder
from tidemill.codec.mysql.result_writer import ResultWriter
from tidemill.codec.row_bytes import RowBytes
from tidemill.errors import InvariantViolated, StoreError
from tidemill.events import Column, Row, Table
from tidemill.snapshot.key_bytes import decode_key, encode_key
from tidemill.snapshot.mysql.packet_keys import PacketKeys
from tidemill.spark.backfill.chunk_file import ChunkFiles, ChunkWriter
from tidemill.spark.backfill.directory import MERGED, READ, BackfillDirectory
from tidemill.spark.backfill.merge import MergedChange, merge
from tidemill.spark.backfill.plan import STRIDE, BackfillPlan, ChunkPlan, TablePlan
from tidemill.spark.backfill.records import ChunkRecord

COLUMNS = (
    Column("id", "bigint", unsigned=True),
    Column("small", "tinyint"),
    Column("price", "decimal", length=20, scale=4),
    Column("ratio", "float"),
    Column("exact", "double"),
    Column("bits", "bit", length=64),
    Column("name", "varchar", length=400),
    Column("raw", "blob", length=4),
    Column("day", "date"),
    Column("at", "datetime", scale=3),
    Column("stamp", "timestamp", scale=6),
    Column("lasts", "time", scale=2),
    Column("kind", "enum", members=("a", "b")),
)
ALL = Table("shop", "all", COLUMNS, (0,))
ROW: Row = (
    2**64 - 1, -128, Decimal("-12345678901234.5000"), 0.10000000149011612, -1e300, 2**64 - 1, "ä'\0\n\\",
    b"\xfb\xff\0", date(1, 2, 3), datetime(2024, 2, 29, 1, 2, 3, 450_000), # noqa: DTZ001
    datetime(1999, 12, 31, 23, 59, 59, 999_999, UTC),
    -timedelta(hours=838, minutes=59, seconds=58, milliseconds=910),
    "b",
)  # fmt: skip


def back(table: Table, packets: bytes) -> list[Row | None]:
    return [change.after for change in ResultRowsDecoder(table).decode(packets, 1, 1)]


def test_every_value_comes_back_from_the_binary_protocol() -> None:
    packets = ResultWriter(ALL).packets
    nothing = (1, *[None] * 12)
    odd = (
        0, 0, Decimal("0E-4"), -0.0, 5e-324, 0, "", b"", "0000-00-00", "2024-00-00 00:00:00.000",
        "0000-00-00 00:00:00.000000", timedelta(0), "",
    )  # fmt: skip
    rows = [ROW, nothing, odd]
    assert back(ALL, b"".join(map(packets, rows))) == rows
    assert [str(row[2]) for row in back(ALL, packets(odd)) if row] == ["0.0000"]


@pytest.mark.parametrize("size", [250, 251, 65_535, 65_536, 2**24 - 1, 2**24, 2**24 + 9])
def test_rows_of_any_size_come_back(size: int) -> None:
    table = Table("shop", "t", (Column("raw", "blob", length=4), Column("id", "int")), (1,))
    rows: list[Row] = [(b"x" * (size - 5), 1), (b"y" * size, 2), (b"", -3)]
    packets = b"".join(map(ResultWriter(table).packets, rows))
    assert back(table, packets) == rows
    found = list(PacketKeys(table).rows(packets))
    assert [key for key, _, _ in found] == [(1,), (2,), (-3,)]
    assert back(table, packets[found[1][1] : found[1][2]]) == [rows[1]]


@pytest.mark.parametrize("payload", range(2**24 - 6, 2**24 + 2))
def test_keys_are_read_of_rows_about_as_long_as_a_packet(payload: int) -> None:
    table = Table("shop", "t", (Column("raw", "blob", length=4), Column("id", "int")), (1,))
    head = 1 + 1 + 4 + 4  # the row's first byte, its NULL bits, the length of the bytes, the number
    packets = ResultWriter(table).packets((b"x" * (payload - head), 7)) + ResultWriter(table).packets(
        (b"", 8)
    )
    assert [key for key, _, _ in PacketKeys(table).rows(packets)] == [(7,), (8,)]


@given(st.lists(st.tuples(st.integers(-(2**63), 2**64), st.integers(-(2**63), 2**64))))
def test_keys_sort_as_bytes_like_integers(keys: list[tuple[int, int]]) -> None:
    assert [decode_key(data) for data in sorted(map(encode_key, keys))] == sorted(keys)


# --- merging


class World:
    """A table in one chunk, its rows as they were read, and what happened to them since."""

    def __init__(self, directory: Path, key: tuple[int, ...], kinds: Sequence[Any]) -> None:
        columns = tuple(Column(f"c{number}", kind, length=9) for number, kind in enumerate(kinds))
        self.table = Table("shop", "t", columns, key)
        by_key = bool(key) and all(kinds[index] != "varchar" for index in key)
        planned = TablePlan(0, self.table, (ChunkPlan(1),), by_key)
        self.plan = BackfillPlan(
            "mariadb", 1 << 31, "s", ("shop.*",), "b.1:4", "b.1:4", 1 << 40, (planned,), 2
        )
        self.directory = BackfillDirectory(directory)
        self.encode = RowBytes("s", self.table).encode

    def read(self, rows: Sequence[Row]) -> ChunkRecord:
        writer = ChunkWriter(self.directory, READ, self.plan, self.plan.tables[0], 1)
        for first in range(0, len(rows), 3):
            part = rows[first : first + 3]
            writer.add_packets(b"".join(map(ResultWriter(self.table).packets, part)), len(part))
            writer._end_piece()  # small ones, so that there are many
        return writer.finish("b.1:5", "b.1:5")

    def merged(self, record: ChunkRecord, changes: Sequence[MergedChange]) -> list[Row | None]:
        planned = self.plan.tables[0]
        writer = ChunkWriter(self.directory, MERGED, self.plan, planned, 1)
        with TemporaryDirectory() as name, ChunkFiles(self.directory, [record], Path(name)) as files:
            merge("s", planned, files.pieces(self.plan, planned, planned.chunks[0]), changes, writer)
        made = writer.finish("b.1:9", "b.1:9")
        rows = list(self.rows(made))
        assert made.rows == len(rows)
        return rows

    def rows(self, record: ChunkRecord) -> Iterator[Row | None]:
        planned = self.plan.tables[0]
        with TemporaryDirectory() as name, ChunkFiles(self.directory, [record], Path(name)) as files:
            for piece in files.pieces(self.plan, planned, planned.chunks[0]):
                yield from back(self.table, b"".join(raw.value for raw in piece))


KEYS = st.integers(-8, 8)
STEPS = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.integers(0, 9))), max_size=30)


@settings(deadline=None, max_examples=40)  # each opens two stores on disk
@given(st.sets(KEYS), STEPS)
def test_changes_by_integer_key_are_as_in_a_dict(read: set[int], steps: list[tuple[int, int | None]]) -> None:
    with TemporaryDirectory() as name, BackfillDirectory(Path(name)).held():
        world = World(Path(name), (0,), ("int", "int"))
        rows = {key: (key, -1) for key in sorted(read)}
        record = world.read(list(rows.values()))
        changes = []
        for key, value in steps:
            row = (key, 5) if value is None else (key, value)
            images = (row, None) if value is None else (None, row)
            changes.append(MergedChange(encode_key((key,)), world.encode(*images, None)))
            rows.pop(key, None)
            if value is not None:
                rows[key] = row
        changes.sort(key=lambda change: change.key)
        assert world.merged(record, changes) == [rows[key] for key in sorted(rows)]


@pytest.mark.parametrize("key", [(0,), ()])
@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from("abcd"), max_size=8), st.data())
def test_other_tables_have_the_same_rows_in_some_order(
    key: tuple[int, ...], read: list[str], data: Any
) -> None:
    with TemporaryDirectory() as name, BackfillDirectory(Path(name)).held():
        world = World(Path(name), key, ("varchar", "int"))
        rows: list[Row] = [(text, 0) for text in (sorted(set(read)) if key else read)]
        record = world.read(list(rows))
        changes = []
        for _ in range(data.draw(st.integers(0, 12))):
            before = data.draw(st.sampled_from([None, *rows]))
            free = (
                [t for t in "abcd" if t not in {row[0] for row in rows if row != before}] if key else "abcd"
            )
            after = (data.draw(st.sampled_from(free)), data.draw(st.integers(0, 2))) if free else None
            if before is not None and data.draw(st.booleans()):
                after = None
            if before is None and after is None:
                continue
            if before is not None:
                rows.remove(before)
            if after is not None:
                rows.append(after)
            changes.append(MergedChange(b"", world.encode(before, after, None)))
        assert sorted(map(repr, world.merged(record, changes))) == sorted(map(repr, rows))


def test_a_change_of_a_row_that_was_never_read_is_an_error(tmp_path: Path) -> None:
    with BackfillDirectory(tmp_path).held():
        world = World(tmp_path, (), ("varchar", "int"))
        record = world.read([("a", 1)])
        with pytest.raises(InvariantViolated, match="had not been read"):
            world.merged(record, [MergedChange(b"", world.encode(("b", 1), None, None))])


# --- files


def test_a_missing_or_damaged_file_is_said(tmp_path: Path) -> None:
    with BackfillDirectory(tmp_path).held():
        world = World(tmp_path, (0,), ("int", "varchar"))
        record = world.read([(number, "x" * 9) for number in range(300)])
        with pytest.raises(StoreError, match="has 100 of 101 blocks"):
            list(world.rows(replace(record, blocks=101)))
        path = tmp_path / record.file
        whole = bytearray(path.read_bytes())
        whole[len(whole) // 3] ^= 1
        path.write_bytes(whole)
        with pytest.raises(StoreError):
            list(world.rows(record))
        path.unlink()
        with pytest.raises(StoreError, match="is missing"):
            list(world.rows(record))


def test_keys_are_those_of_the_sorters_store(tmp_path: Path) -> None:
    """uid, table, commit ts, start ts and sequence, big-endian; each piece has a ts of its own."""
    with BackfillDirectory(tmp_path).held():
        world = World(tmp_path, (0,), ("int", "int"))
        record = world.read([(number, 0) for number in range(7)])
        planned = world.plan.tables[0]
        with TemporaryDirectory() as name, ChunkFiles(world.directory, [record], Path(name)) as files:
            pieces = list(files.pieces(world.plan, planned, planned.chunks[0]))
            assert files._db is not None
            keys = list(files._db.keys())
    first = world.plan.base + STRIDE
    assert [[raw.commit_ts - first for raw in piece] for piece in pieces] == [[0], [1], [2]]
    assert [int.from_bytes(key[:4], "big") for key in keys] == [1 << 31] * 3
    assert [int.from_bytes(key[12:20], "big") - first for key in keys] == [0, 1, 2]
    assert {len(key) for key in keys} == {36}
