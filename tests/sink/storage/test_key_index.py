"""The index of a copy's keys, a cache that is right whatever it missed; and the bytes of deletion vectors."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyroaring import BitMap64

from tidemill.errors import SinkError, StoreError
from tidemill.sink.files.directory import Directory
from tidemill.sink.files.lakes.copies.deletion_vectors import read_vector, write_vectors
from tidemill.sink.files.lakes.copies.key_index import KeyIndex, id_of
from tidemill.store.map import Map


@pytest.fixture
def index(tmp_path):
    index = KeyIndex(tmp_path / "keys")
    yield index
    index.close()


def places(keys, wanted, files):
    """Return the places of keys in a table with these files, each with the rows that are gone."""
    ids = {id_of(path): gone for path, gone in files.items()}
    found = keys.find(wanted, lambda file, rows: [file in ids and row not in ids[file] for row in rows], [])
    return [(one["file"].tobytes(), one["row"]) if one["file"] else None for one in found.now]


def put(keys, path, rows, committed=None):
    """Put keys with their rows."""
    keys.put(id_of(path), [*rows], [*rows.values()], committed)
    keys.know(path, id_of(path))


def test_a_place_counts_only_in_a_file_of_the_table(index):
    keys = index.keys("shop.orders", "id")
    put(keys, "a", {b"1": 0, b"2": 7})
    assert places(keys, [b"1", b"2", b"3"], {"a": {0}}) == [None, (id_of("a"), 7), None]
    assert places(keys, [b"1"], {"b": set()}) == [None]


def test_a_commit_that_failed_leaves_the_place_before_it(index):
    keys = index.keys("shop.orders", "id")
    put(keys, "a", {b"1": 5})
    for path in ("b", "c"):  # two files of one commit
        found = keys.find([b"1"], lambda _, rows: [True] * len(rows), [id_of("a")])
        put(keys, path, {b"1": 0}, found.committed)
    assert places(keys, [b"1"], {"a": {5}, "c": set()}) == [(id_of("c"), 0)]
    assert places(keys, [b"1"], {"a": set()}) == [(id_of("a"), 5)]


def test_it_outlives_its_process_and_forgets_what_it_is_told_to(tmp_path):
    index = KeyIndex(tmp_path / "keys")
    put(index.keys("t", "id"), "a", {b"1": 0})
    put(index.keys("u", "id"), "a", {b"1": 1})
    index.close()
    index.close()
    keys = index.keys("t", "id")
    assert keys.files == {"a": id_of("a")}
    keys.know("b", id_of("a"))  # with the same rows
    keys.forget([b"1"], ["a"])
    assert index.keys("t", "id").files == {"b": id_of("a")}
    assert places(keys, [b"1"], {"a": set()}) == [None]
    assert places(index.keys("u", "id"), [b"1"], {"a": set()}) == [(id_of("a"), 1)]
    assert index.keys("u", "id and name").files == {}
    assert places(index.keys("u", "id"), [b"1"], {"a": set()}) == [None]
    index.close()


def test_a_damaged_index_is_made_again(tmp_path):
    first = Map(tmp_path / "map")
    first.put([b"a"], [b"1"])
    with pytest.raises(StoreError, match="can't be opened"):
        Map(tmp_path / "map")
    first.close()
    (tmp_path / "map/CURRENT").write_bytes(b"nonsense")
    second = Map(tmp_path / "map")
    assert second.get([b"a"]) == [None]
    second.close()


# --- deletion vectors


def test_vectors_in_one_file_are_read_back(tmp_path):
    store = Directory(tmp_path)
    vectors = [BitMap64([2, 5]), BitMap64(range(70_000)), BitMap64([1, 2**33])]
    descriptors = write_vectors(store, ".", vectors)
    assert [read_vector(store, ".", one) for one in descriptors] == vectors
    assert [one["cardinality"] for one in descriptors] == [2, 70_000, 2]
    (path,) = tmp_path.glob("deletion_vector_*.bin")
    # version; then size, magic number, one bitmap whose upper half is 0, and its two numbers
    assert path.read_bytes()[:41].hex() == (
        "01" "00000024" "d1d33964" "0100000000000000" "00000000" "3a300000" "01000000" "0000" "0100"
        "10000000" "0200" "0500"
    )  # fmt: skip
    path.write_bytes(path.read_bytes()[:30] + b"x" + path.read_bytes()[31:])
    with pytest.raises(SinkError, match="is damaged"):
        read_vector(store, ".", descriptors[0])


def test_a_vector_in_the_log_is_read(tmp_path):
    # of the protocol's document: rows 3, 4, 7, 11, 18 and 29
    inline = {
        "storageType": "i",
        "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 44,
        "cardinality": 6,
    }
    assert list(read_vector(Directory(tmp_path), ".", inline)) == [3, 4, 7, 11, 18, 29]


def test_delta_rs_reads_the_vectors(tmp_path):
    write_deltalake(tmp_path / "t", pa.table({"n": list(range(8))}))
    log = tmp_path / "t/_delta_log"
    (add,) = [
        action["add"]
        for action in map(msgspec.json.decode, (log / f"{0:020}.json").read_bytes().splitlines())
        if "add" in action
    ]
    (vector,) = write_vectors(Directory(tmp_path), "t", [BitMap64([0, 7])])
    names = ["deletionVectors"]
    features = {"readerFeatures": names, "writerFeatures": names}
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"remove": {"path": add["path"], "dataChange": True}},
        {"add": {**add, "deletionVector": vector}},
    ]  # fmt: skip
    (log / f"{1:020}.json").write_bytes(b"\n".join(map(msgspec.json.encode, actions)))
    vectors = pa.table(DeltaTable(tmp_path / "t").deletion_vectors()).to_pylist()
    assert [one["selection_vector"] for one in vectors] == [[False, *[True] * 6, False]]
