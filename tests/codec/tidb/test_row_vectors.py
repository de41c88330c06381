"""Rows and transactions that a real TiDB wrote, both ways."""

from __future__ import annotations

import pytest

from tidemill.codec.tidb.checksum import checksum_of
from tidemill.codec.tidb.key import decode_record_key
from tidemill.codec.tidb.layout import build_row, cells_of, layout_of
from tidemill.codec.tidb.row_decoder import RowDecoder
from tidemill.codec.tidb.row_encoder import RowEncoder
from tidemill.codec.tidb.table_info import decode_table_info
from tidemill.errors import SourceError

from .row_vectors import Vector, as_printed, load, read

FILES = ("rows", "rows_checksum")

NEED_A_HANDLE = (
    *("nulls", "nonclustered", "rowid", "part_list"),  # no clustered key
    *("gbk_bin_pk", "pk_varchar_f", "pk_unicode", "pk_0900"),  # sorted by tables of weights
)
"""Parts of the names of tables."""


@pytest.mark.parametrize("file", FILES)
def test_a_row_has_the_values_that_tidb_prints(file):
    vectors = load(file)
    for vector in vectors:
        decoder = RowDecoder("vec", vector.info)
        (row,) = decoder.decode([(vector.key, vector.value)])
        for column, value in zip(decoder.table.columns, row, strict=True):
            printed = vector.printed[column.name]
            if isinstance(value, float):  # a FLOAT is printed with six digits
                assert value == pytest.approx(float(printed), rel=1e-5 if column.kind == "float" else 0)
            else:
                assert as_printed(column, value, vector.zone) == printed, (vector.info.name, column.name)
    assert len(vectors) > 100


@pytest.mark.parametrize("file", FILES)
def test_all_columns_but_virtual_ones_are_there(file):
    for vector in load(file):
        table = RowDecoder("vec", vector.info).table
        virtual = {column.name for column in vector.info.columns if column.generated and not column.stored}
        assert {column.name for column in table.columns} == vector.printed.keys() - virtual - {"_tidb_rowid"}


@pytest.mark.parametrize("file", FILES)
def test_the_values_make_the_bytes_that_tidb_wrote(file):
    count = 0
    for vector in load(file):
        if vector.is_older_than_table() or "extra" in vector.checksums:
            continue
        encoder = RowEncoder(
            "vec", vector.info, row_format=vector.row_format, checksum=bool(vector.checksums)
        )
        table_id, handle = decode_record_key(vector.key)
        assert encoder.encode(_values(vector), handle, table_id) == (vector.key, vector.value)
        count += 1
    assert count > 100


def test_a_clustered_key_is_made_of_its_columns():
    made = 0
    for vector in load("rows"):
        table_id, _ = decode_record_key(vector.key)
        if any(word in vector.info.name for word in NEED_A_HANDLE):
            continue
        key, _ = RowEncoder("vec", vector.info).encode(_values(vector), table_id=table_id)
        assert key == vector.key
        made += 1
    assert made > 180


def _values(vector: Vector):
    decoder = RowDecoder("vec", vector.info)
    (row,) = decoder.decode([(vector.key, vector.value)])
    return tuple(
        vector.json_tree(column.name) if column.kind == "json" and value is not None else value
        for column, value in zip(decoder.table.columns, row, strict=True)
    )


def test_rows_of_one_table_are_read_together_whatever_their_heads():
    groups: dict[int, list[Vector]] = {}
    for vector in load("rows"):
        groups.setdefault(vector.info.id, []).append(vector)
    for group in groups.values():
        decoder = RowDecoder("vec", group[0].info)
        pairs = [(vector.key, vector.value) for vector in group]
        alone = [RowDecoder("vec", group[0].info).decode([pair])[0] for pair in pairs]
        assert decoder.decode(pairs) == alone
        assert decoder.decode([*pairs, *reversed(pairs)]) == [*alone, *reversed(alone)]
        assert decoder.decode([]) == []


# --- checksums -----------------------------------------------------------------------------------


def test_every_stored_checksum_is_verified():
    orphans = 0
    for vector in load("rows_checksum"):
        value = vector.value
        broken = value[:-1] + bytes([value[-1] ^ 1])
        if "extra" in vector.checksums:  # one of two suffices
            broken = broken[:-5] + bytes([broken[-5] ^ 1]) + broken[-4:]
        decoder = RowDecoder("vec", vector.info)
        orphans += bool(vector.cells().keys() - {column.id for column in vector.info.columns})
        with pytest.raises(SourceError, match="checksum") as raised:
            decoder.decode([(vector.key, broken)])
        assert f"vec.{vector.info.name}" in str(raised.value)
        assert vector.key.hex() in str(raised.value)
        assert RowDecoder("vec", vector.info, verify_checksums=False).decode([(vector.key, broken)])
    assert orphans, "rows from before a column was dropped"


def test_a_row_of_a_changing_table_carries_two_checksums():
    vectors = [vector for vector in load("rows_checksum") if "extra" in vector.checksums]
    assert vectors
    for vector in vectors:
        layout = layout_of(vector.value)
        stored, extra = vector.checksums["stored"], vector.checksums["extra"]
        assert build_row(cells_of(layout, vector.value), layout.nulls, [stored, extra]) == vector.value


def test_the_checksum_is_the_one_that_tidb_computed():
    for vector in load("rows_checksum"):
        if vector.is_older_than_table() or "0000-00-00" in str(vector.printed):
            continue
        encoder = RowEncoder("vec", vector.info, checksum=True)
        columns = encoder._columns
        assert checksum_of(columns, encoder._bare(_values(vector))) == vector.checksums["recomputed"]


# --- transactions --------------------------------------------------------------------------------


def test_the_rows_of_transactions_are_those_of_their_statements():
    infos, found = {}, {}
    for line in read("commits"):
        if line["kind"] == "table":
            info = decode_table_info(line["table_info_json"].encode())
            infos[line["table_id"]] = info
            continue
        for entry in line["entries"]:
            info = infos.get(entry["physical_id"])
            if info is None:  # a partition
                continue
            decoder = RowDecoder("feed", info)
            for which in ("value_hex", "old_value_hex"):
                if entry[which]:
                    pair = bytes.fromhex(entry["key_hex"]), bytes.fromhex(entry[which])
                    rows = decoder.decode([pair])
                    found.setdefault((line["sql"][0], which), []).append(rows[0])
    update = "update a set n=9.99 where id=1"
    assert [list(map(str, row)) for row in found[update, "old_value_hex"]] == [["1", "one", "1.10"]]
    assert [list(map(str, row)) for row in found[update, "value_hex"]] == [["1", "one", "9.99"]]
    deleted = found["delete from a where id=3", "old_value_hex"]
    assert deleted == [(3, "three", None)]
