"""Files whose lines are messages of an encoding."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from tidemill.errors import ConfigError
from tidemill.events import Chunk
from tidemill.sink import open_sink
from tidemill.sink.kind import ByFiles, NotOnSpark
from tidemill.sink.registry import given_sink
from tidemill.testing.changes import (
    ORDERS,
    MemoryStore,
    at,
    batch,
    chunk,
    create,
    delete,
    insert,
    transaction,
    update,
)
from tidemill.testing.sink_conformance import feed


def begun(path):
    """Return a store whose checkpoint is before the first change of a file without lines."""
    path.touch()
    store = MemoryStore()
    store.save(at(0))
    return store


def opened(path, store=None, **options):
    return open_sink("copy", f"file://{path}", feed="f", store=store or begun(path), options=options)


@pytest.mark.parametrize("encoding", ["canal-json", "debezium", "maxwell", "csv", "simple"])
def test_each_row_is_a_line_of_the_encoding(tmp_path, encoding):
    path = tmp_path / "rows"
    rows = [insert(ORDERS, 1, "a"), update(ORDERS, (1, "a"), (1, None)), delete(ORDERS, 1, None)]
    feed(opened(path, format=encoding), [transaction(2, *rows)])
    found = path.read_text().splitlines()
    if encoding == "simple":
        assert json.loads(found.pop(0))["type"] == "BOOTSTRAP"
        assert json.loads(found.pop())["type"] == "WATERMARK"
    assert len(found) == 3
    if encoding != "csv":
        assert all(json.loads(line) for line in found)


def test_the_format_may_be_in_the_url(tmp_path):
    path = tmp_path / "rows"
    sink = open_sink("copy", f"file://{path}?format=csv", feed="f", store=begun(path), options={})
    feed(sink, [transaction(2, insert(ORDERS, 1, "a"))])
    assert path.read_bytes() == b'"I","orders","shop",1,"a"\r\n'


def test_an_encoding_may_have_options_beside_a_format_in_the_url(tmp_path):
    path = tmp_path / "a b#c"
    url = f"file://{tmp_path}/a%20b%23c?format=csv"
    options = {"encoding": {"delimiter": ";"}}
    sink = open_sink("copy", url, feed="f", store=begun(path), options=options)
    feed(sink, [transaction(2, insert(ORDERS, 1, "a"))])
    assert path.read_bytes() == b'"I";"orders";"shop";1;"a"\r\n'


def test_a_watermark_follows_what_is_durable(tmp_path):
    path = tmp_path / "rows"
    sink = opened(path, format="canal-json", encoding={"enable-tidb-extension": True})
    feed(sink, [transaction(7, replace(insert(ORDERS, 1, "a"), commit_ts=7))])
    row, *_, watermark = map(json.loads, path.read_text().splitlines())
    assert row["_tidb"] == {"commitTs": 7}
    assert (watermark["type"], watermark["_tidb"]) == ("TIDB_WATERMARK", {"watermarkTs": 7})


def test_a_snapshot_begins_with_the_definitions_that_simple_needs(tmp_path):
    path = tmp_path / "rows"
    rows = chunk(2, ORDERS, None, insert(ORDERS, 1, "a"))
    loaded = [create(1, ORDERS), rows, transaction(3, chunk=Chunk(""))]
    feed(opened(path, MemoryStore(), format="simple"), loaded)
    found = map(json.loads, path.read_text().splitlines())
    definition, row = [line for line in found if line["type"] != "WATERMARK"]
    assert definition["type"] == "BOOTSTRAP"
    assert [column["name"] for column in definition["tableSchema"]["columns"]] == ["id", "note"]
    assert row["data"] == {"id": "1", "note": "a"}


def test_offsets_of_a_transaction_go_on_after_a_restart(tmp_path):
    path = tmp_path / "rows"
    store = begun(path)
    sink = opened(path, store, format="maxwell")
    sink.open()
    sink.write(batch(transaction(1, insert(ORDERS, 1, ""))))
    sink.flush()
    sink.write(batch(transaction(2, insert(ORDERS, 2, ""), last=False)))
    sink.close()
    feed(
        opened(path, store, format="maxwell"), [transaction(2, insert(ORDERS, 2, ""), insert(ORDERS, 3, ""))]
    )
    values = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(value["data"]["id"], value.get("xoffset")) for value in values] == [(1, None), (2, 0), (3, None)]


def test_options_that_are_wrong_or_make_no_lines_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="accepted: ndjson, canal-json"):
        opened(tmp_path / "rows", format="canal")
    with pytest.raises(ConfigError, match="line of text"):
        opened(
            tmp_path / "rows", format="canal-json", encoding={"large-message-handle-compression": "lz4"}
        ).open()
    with pytest.raises(ConfigError, match="line of text"):
        opened(tmp_path / "rows", format="simple", encoding={"encoding-format": "avro"}).open()
    with pytest.raises(ConfigError, match="ndjson has no such options"):
        opened(tmp_path / "rows", encoding={"time-zone": "UTC"})


@pytest.mark.parametrize("where", [("file:///x", {"format": "csv"}), ("file:///x?format=csv", {})])
def test_spark_refuses_files_of_messages(where):
    url, options = where
    found = given_sink("copy", url, options).kind.on_spark
    assert isinstance(found, NotOnSpark)


@pytest.mark.parametrize("scheme", ["directory", "parquet"])
def test_a_folder_of_any_name_is_written_by_spark(tmp_path, scheme):
    folder = tmp_path / "a b" / "c%20#?d"
    given = given_sink("copy", f"{scheme}://{quote(str(folder))}")
    way = given.kind.on_spark
    assert isinstance(way, ByFiles)
    store = way.target(given.target, given.options).store
    (tmp_path / "a b").mkdir()
    store.check()
    store.write("name", b"content")
    assert (folder / "name").read_bytes() == b"content"
