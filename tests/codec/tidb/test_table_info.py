"""TiDB's JSON of databases and tables, both ways."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec.structs import replace

from tidemill.codec.tidb import meta
from tidemill.codec.tidb.table_info import (
    PUBLIC,
    DbInfo,
    PartitionDefinition,
    PartitionInfo,
    TableInfo,
    decode_db_info,
    decode_table_info,
    encode_db_info,
    encode_table_info,
    holds_rows,
    partition_ids,
)

from .ddl_vectors import VERSIONS, transactions


def infos(version: str) -> list[bytes]:
    """Every table that TiDB wrote under the schema keys, at each step of its jobs."""
    return [
        written.change.value
        for _, transaction in transactions(version)
        for written in transaction
        if written.field.startswith("Table:") and written.change.value
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_tables_of_a_real_tidb_come_back(version):
    found = infos(version)
    assert len(found) > 20
    for data in found:
        info = decode_table_info(data)
        assert decode_table_info(encode_table_info(info)) == info


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_written_is_the_same_table_to_tidb(version):
    """Field by field, as far as they are kept; a view's text isn't."""
    for data in infos(version):
        theirs, ours = json.loads(data), json.loads(encode_table_info(decode_table_info(data)))
        assert ours.keys() <= theirs.keys()
        for name in ours.keys() - {"cols", "index_info", "view", "version"}:
            assert ours[name] == theirs[name], name
        for mine, real in zip(ours["cols"], theirs["cols"] or [], strict=True):
            for name in mine.keys() - {"dependences", "change_state_info", "type"}:
                assert mine[name] == real[name], name
            for name in mine["type"]:
                assert mine["type"][name] == real["type"][name], name
        for mine, real in zip(ours["index_info"], theirs["index_info"] or [], strict=True):
            for name in ("id", "idx_name", "idx_cols", "state", "is_unique", "is_primary"):
                assert mine[name] == real[name], name


def test_a_table_is_read_with_what_rows_need():
    data = next(data for data in infos("v8.1.0") if b'"c2"' in data and b'"datetime"' not in data)
    info = decode_table_info(data)
    assert (info.name, info.charset, info.collation, info.pk_is_handle) == (
        "t1", "utf8mb4", "utf8mb4_bin", True,
    )  # fmt: skip
    by_name = {column.name: column for column in info.columns}
    assert by_name["id"].type == 3
    assert by_name["id"].flags & 3 == 3
    assert by_name["b"].default == "x"
    assert by_name["b"].length == 20
    assert by_name["c1"].origin_default == "5"
    assert by_name["c2"].default == "CURRENT_TIMESTAMP"
    assert by_name["c2"].origin_default.startswith("2026-")
    assert by_name["c2"].state != PUBLIC, "the job has only begun"
    assert [(index.name, index.columns[0].name, index.unique) for index in info.indexes] == [
        ("ia", "a", False)
    ]


def test_databases_come_back():
    found = 0
    for version in VERSIONS:
        for _, transaction in transactions(version):
            for written in transaction:
                if written.where == "m:DBs":
                    found += 1
                    info = decode_db_info(written.change.value)
                    assert meta.database_field(info.id).decode() == written.field
                    assert decode_db_info(encode_db_info(info)) == info
                    ours, theirs = json.loads(encode_db_info(info)), json.loads(written.change.value)
                    assert ours.items() <= theirs.items()
    assert found == 6
    assert decode_db_info(encode_db_info(DbInfo(id=1, name="Ünï"))).name == "Ünï"


def test_partitions_have_keys_of_their_own_unless_partitioning_is_off():
    definitions = (PartitionDefinition(7, "p0", ("10",)), PartitionDefinition(8, "p1", ("MAXVALUE",)))
    info = TableInfo(id=5, name="t", partition=PartitionInfo(expression="`id`", definitions=definitions))
    assert partition_ids(info) == (7, 8)
    assert decode_table_info(encode_table_info(info)) == info
    assert partition_ids(replace(info, partition=replace(info.partition, enabled=False))) == ()
    assert partition_ids(TableInfo(id=5, name="t")) == ()


def test_views_sequences_and_temporary_tables_hold_no_rows():
    assert holds_rows(TableInfo(id=5, name="t"))
    for kind in ("is_view", "is_sequence", "is_temporary"):
        info = TableInfo(id=5, name="t", **{kind: True})
        assert not holds_rows(info)
        assert decode_table_info(encode_table_info(info)) == info


@pytest.mark.parametrize("data", [b"", b"{}", b'{"id":"x"}', b"[]"])
def test_what_is_no_info_is_refused(data):
    with pytest.raises((ValueError, msgspec.MsgspecError)):
        decode_table_info(data)
    with pytest.raises((ValueError, msgspec.MsgspecError)):
        decode_db_info(data)
