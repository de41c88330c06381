"""TiDB's schema keys, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.codec.tidb import meta
from tidemill.codec.tidb.meta import MetaKey, decode_meta_key, encode_meta_key

from .ddl_vectors import VERSIONS, transactions


@pytest.mark.parametrize("version", VERSIONS)
def test_the_keys_of_a_real_tidb_are_taken_apart_and_put_together(version):
    seen = set()
    for _, written in transactions(version):
        for change, where, field, _ in written:
            if where.startswith("m:"):
                key = decode_meta_key(change.key)
                assert encode_meta_key(key) == change.key
                assert key.name.decode() == where[2:]
                if key.kind == "hash":
                    assert field in (key.field.decode(errors="replace"), key.field.hex())
                seen.add(key.kind)
    assert seen == ({"string", "hash"} if version == "v8.1.0" else {"string", "hash", "list", "list meta"})


def test_names_of_keys_are_those_of_tidb():
    expected = {
        "6d4442730000000000fa000000000000006844423a3631330000fd": meta.hash_key(
            meta.DATABASES, meta.database_field(613)
        ),
        "6d536368656d615665ff7273696f6e4b6579ff0000000000000000f70000000000000073": meta.string_key(
            meta.SCHEMA_VERSION
        ),
        "6d44444c4a6f624c69ff7374000000000000f9000000000000006c8000000000000000": meta.list_key(
            meta.DDL_JOBS, 0
        ),
        "6d44444c4a6f624c69ff7374000000000000f9000000000000004c": meta.list_meta_key(meta.DDL_JOBS),
        "6d446966663a333734ff0000000000000000f70000000000000073": meta.string_key(meta.schema_diff(374)),
        "6d4e657874476c6f62ff616c494400000000fb0000000000000073": meta.string_key(meta.NEXT_GLOBAL_ID),
    }
    assert {key.hex() for key in expected.values()} == set(expected)


KEYS = st.one_of(
    st.builds(MetaKey, st.binary(max_size=20), st.sampled_from(["string", "hash meta", "list meta"])),
    st.builds(MetaKey, st.binary(max_size=20), st.just("hash"), st.binary(max_size=20)),
    st.builds(MetaKey, st.binary(max_size=20), st.just("list"), index=st.integers(-(1 << 63), (1 << 63) - 1)),
)


@given(KEYS)
def test_any_key_comes_back(key):
    assert decode_meta_key(encode_meta_key(key)) == key


@given(st.binary(max_size=20), st.binary(max_size=20), st.binary(max_size=20))
def test_a_hash_has_its_own_stretch_of_keys(name, other, field):
    start, end = meta.hash_span(name)
    assert start <= meta.hash_key(name, field) < end
    if other != name:
        assert not start <= meta.hash_key(other, field) < end


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_list_has_its_own_stretch_of_keys(index):
    start, end = meta.list_span(meta.DDL_JOBS)
    assert start <= meta.list_key(meta.DDL_JOBS, index) < end
    assert not start <= meta.list_meta_key(meta.DDL_JOBS) < end


def test_the_bounds_of_a_list_are_two_signed_integers():
    assert meta.encode_list_meta(-1, 2) == b"\xff" * 8 + bytes(7) + b"\x02"


def test_fields_name_their_ids():
    assert meta.database_id(meta.database_field(17)) == 17
    assert meta.is_table_field(meta.table_field(17))
    assert not meta.is_table_field(b"TID:17")
    assert meta.history_field(0x18A) == bytes.fromhex("000000000000018a")


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"t\x80", "not a schema key: 7480"),
        (b"mDBs", "cut off"),
        (b"mDBs\0\0\0\0\0\xfa\0\0\0\0\0\0\0x", "unknown kind 0000000000000078"),
        (b"mDBs\0\0\0\0\0\xfa\0\0\0\0\0\0\0sx", "1 bytes too many"),
        (b"mDBs\0\0\0\0\0\xfa\0\0\0\0\0\0\0l\x80", "cut off"),
    ],
)
def test_what_is_not_a_schema_key_is_refused(raw, complaint):
    with pytest.raises(ValueError, match=complaint):
        decode_meta_key(raw)


def test_what_is_not_a_database_is_refused():
    with pytest.raises(ValueError, match="not a database"):
        meta.database_id(b"Table:3")
